#include "tools/tpusim/command_line/program_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_split.h"
#include "configs/compiler_files.h"
#include "configs/name_value.h"
#include "configs/number_text.h"
#include "configs/quantity_text.h"
#include "configs/status_macros.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/passes/passes.h"
#include "workloads/passes/pipeline/pipeline.h"
#include "workloads/passes/pipeline/statements.h"
#include "workloads/remat/policies.h"
#include "workloads/sharding/stated/stated_constraints.h"
#include "workloads/sharding/stated/stated_shardings.h"

namespace tpusim::tools {
namespace {

// LOOP=N
std::optional<std::pair<std::string, int64_t>> ParseTripCount(const std::string& text) {
  const auto parts = configs::ParseNameAndValue(text);
  const int64_t count = parts ? configs::NumberIn<int64_t>(parts->value).value_or(-1) : -1;
  if (count < 0) return std::nullopt;
  return std::pair(std::string(parts->name), count);
}

// NAME=k or NAME=longest.
std::optional<std::pair<std::string, std::string>> ParseBranch(const std::string& text) {
  const auto parts = configs::ParseNameAndValue(text);
  const bool good = parts && !parts->value.empty() &&
                    (parts->value == "longest" ||
                     parts->value.find_first_not_of("0123456789") == std::string_view::npos);
  if (!good) return std::nullopt;
  return std::pair(std::string(parts->name), std::string(parts->value));
}

// FLOPs or bytes: 1e12 is easier to write than its digits.
std::optional<int64_t> ParseAmount(const std::string& text) {
  try {
    size_t used = 0;
    const double amount = std::stod(text, &used);
    if (used != text.size() || !(amount >= 0 && amount < 9e18) || amount != std::floor(amount))
      return std::nullopt;
    return static_cast<int64_t>(amount);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// "12.5us": a number and its unit, more than nothing and less than a day.
std::optional<Picoseconds> ParseTime(const std::string& text) {
  if (text.empty() || text.back() != 's') return std::nullopt;
  const std::optional<configs::QuantityText> time = configs::ParseQuantity(text, "ns");
  if (!time || time->factor || !(time->value >= 1e-3 && time->value < 86400e9)) return std::nullopt;
  return FromSeconds(time->value * 1e-9);
}

// NAME=FLOPS,BYTES or NAME=TIME or NAME=FLOPS,BYTES,TIME
std::optional<kernels::NamedCost> ParseKernelCost(const std::string& text) {
  const auto named = configs::ParseNameAndValue(text);
  if (!named) return std::nullopt;
  kernels::NamedCost parsed;
  parsed.name = named->name;
  std::vector<std::string> parts = absl::StrSplit(std::string(named->value), ',');
  if (parts.size() % 2 == 1) {
    parsed.cost.time = ParseTime(parts.back());
    if (!parsed.cost.time) return std::nullopt;
    parts.pop_back();
  }
  if (parts.empty()) return parsed;
  if (parts.size() != 2) return std::nullopt;
  const std::optional<int64_t> flops = ParseAmount(parts[0]), bytes = ParseAmount(parts[1]);
  if (!flops || !bytes) return std::nullopt;
  parsed.cost.flops = Flops(*flops);
  parsed.cost.bytes = Bytes(*bytes);
  return parsed;
}

// NAME=TIME or NAME=TIME,LATENCY
std::optional<cost::StatedCost> ParseCost(const std::string& text) {
  const auto named = configs::ParseNameAndValue(text);
  if (!named) return std::nullopt;
  const std::pair<std::string, std::string> times =
      absl::StrSplit(std::string(named->value), absl::MaxSplits(',', 1));
  const bool has_latency = named->value.find(',') != std::string_view::npos;
  const std::optional<Picoseconds> time = ParseTime(times.first);
  const std::optional<Picoseconds> latency =
      has_latency ? ParseTime(times.second) : std::optional(Picoseconds(0));
  if (!time || !latency) return std::nullopt;
  return cost::StatedCost{std::string(named->name), *time, *latency};
}

// Texts that `parse` takes for an optional value; of others the parser says what they are not.
template <typename Parse>
CLI::Validator Is(Parse parse, std::string what) {
  return CLI::Validator(
      [parse, what = std::move(what)](const std::string& text) {
        return parse(text) ? "" : fmt::format("\"{}\" is not {}", text, what);
      },
      "");
}

// Texts of which `parse` says itself what is wrong.
template <typename Parse>
CLI::Validator IsTakenBy(Parse parse) {
  return CLI::Validator(
      [parse](const std::string& text) {
        const auto parsed = parse(text);
        return parsed.ok() ? "" : Message(parsed.status());
      },
      "");
}

// Takes a text by parsing it into `value`, once: the file that it names may be a pipe.
template <typename Parse, typename Value>
CLI::Validator ReadOnce(Parse parse, Value& value) {
  return CLI::Validator(
      [parse, &value](const std::string& text) {
        auto parsed = parse(text);
        if (!parsed.ok()) return Message(parsed.status());
        value = *std::move(parsed);
        return std::string();
      },
      "");
}

// Whole numbers of 64 bits: the parser alone would take the largest for any that is larger.
CLI::Validator IsWholeFrom(int64_t least) {
  return CLI::Validator(
      [least](const std::string& text) {
        const std::optional<int64_t> number = configs::NumberIn<int64_t>(text);
        return number && *number >= least
                   ? ""
                   : fmt::format("\"{}\" is no whole number from {} to {}", text, least,
                                 std::numeric_limits<int64_t>::max());
      },
      "");
}

// The values of texts that the parser has checked by parsing them.
template <typename Parse>
auto Parsed(const std::vector<std::string>& texts, Parse parse) {
  std::vector<std::remove_cvref_t<decltype(parse("").value())>> values;
  for (const std::string& text : texts) values.push_back(parse(text).value());
  return values;
}

// An option with a value that may be given several times.
CLI::Option* AddRepeated(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                         const std::string& value_name, const std::string& description) {
  return app.add_option(name, values, description)->type_name(value_name)->allow_extra_args(false);
}

}  // namespace

void AddWorkloadFlags(CLI::App& app, std::string& workload, std::string& config) {
  app.add_option("workload", workload,
                 "A file of tpusim.export, an HLO proto, or HLO text; - is stdin")
      ->type_name("WORKLOAD.pb")
      ->required();
  app.add_option("-c,--config", config,
                 "Slice, such as v5e-4x2, or a JSON file (default: the workload's)")
      ->type_name("CONFIG");
}

void AddPassFlags(CLI::App& app, ProgramFlags& flags) {
  AddRepeated(app, "--set", flags.overrides, "PARAMETER=VALUE",
              "Override a parameter; `tpusim configs CHIP` lists their names");
  app.add_option("--compiler", flags.compiler,
                 "TPU compiler whose policy holds (default: the one that compiled the module, else "
                 "the newest)")
      ->type_name("NAME")
      ->check(CLI::IsMember(configs::CompilerNames()));
  app.add_option("--xla-flags", flags.xla_flags,
                 "Flags of the TPU compiler, as in LIBTPU_INIT_ARGS; `tpusim configs CHIP "
                 "--compiler` lists those that are modelled, others give a warning")
      ->type_name("\"--xla_...=VALUE ...\"");
  AddRepeated(app, "--trip-count", flags.trip_counts, "LOOP=N",
              "Trip count of a loop that depends on data; LOOP may be a glob")
      ->check(Is(ParseTripCount, "LOOP=N, such as 'while.3=10' or '*=4'"));
  AddRepeated(app, "--kernel-cost", flags.kernel_costs, "NAME=[FLOPS,BYTES][,TIME]",
              "Cost of one call of an opaque kernel (custom call), or its time (12.5us); NAME "
              "may be a glob")
      ->check(Is(ParseKernelCost,
                 "NAME=FLOPS,BYTES, NAME=TIME or NAME=FLOPS,BYTES,TIME, FLOPS and BYTES whole "
                 "numbers up to 9e18, such as 'flash*=2.2e9,1.6e7' or 'flash*=12.5us'"));
  AddRepeated(app, "--branch", flags.branches, "NAME=K|longest",
              "Branch taken by a conditional that depends on data (default: the longest); NAME "
              "may be a glob")
      ->check(Is(ParseBranch, "NAME=k or NAME=longest, such as 'conditional.3=1'"));
  AddRepeated(app, "--ragged", flags.ragged, "NAME=S0,S1,...|uniform",
              "Rows per group of a ragged dot, or per receiver of a ragged all-to-all; with a "
              "decimal point, shares of all rows (default: equal); NAME may be a glob")
      ->check(Is(passes::ParseRaggedOverride,
                 "NAME=SIZE,SIZE,..., such as 'ragged-dot.3=128,0,64,64' (rows), "
                 "'*=0.5,0.25,0.25,0' (shares, at most 1 in all) or '*=uniform'"));
  app.add_option("--routing",
                 "How often experts are asked for, where --ragged does not say it: all equally "
                 "(default), by a power of their rank, or as in a JSON file of rows per expert, a "
                 "list for each layer")
      ->type_name("uniform|zipf:S|FILE")
      ->check(ReadOnce(passes::ParseRouting, flags.routing));
  app.add_option("--kernel-time", flags.kernel_time,
                 "Kernel times of a module that the TPU compiler wrote: simulated, or as the "
                 "compiler estimated them")
      ->type_name("machine|compiler")
      ->check(CLI::IsMember({"machine", "compiler"}));
  app.add_flag("--donate", flags.donate,
               "Donate all arguments: results of equal shape reuse their buffers");
  app.add_option("--passes", flags.passes,
                 "Compiler passes to run, in this order, with options and repeated groups: "
                 "simplify,fixpoint(layout,simplify),fuse,schedule. -NAME is the default "
                 "pipeline without NAME; `tpusim opt --help` lists all passes")
      ->type_name("PASS{OPTION=VALUE},...")
      ->check(IsTakenBy(passes::ParsePipeline));
  app.add_flag("!--no-verify-passes", flags.verify_passes,
               "Do not check the module after every pass that changes it");
  app.add_flag("--pass-timings", flags.pass_timings,
               "Print the time and the changes of each pass on stderr");
}

void AddPlacementFlags(CLI::App& app, ProgramFlags& flags) {
  app.add_option("--device-order", flags.device_order,
                 "Device of each partition: 'ids', or a list 0,1,3,2 (default: the workload's "
                 "coordinates, else JAX's make_mesh order)")
      ->type_name("ids|0,1,...");
  AddRepeated(app, "--algorithm", flags.algorithms, "[KIND=]ALGORITHM",
              "Algorithm of collectives: the TPU compiler's choice where it is known, else axis "
              "by axis (compiler, the default), the fastest (best), or one by name; for all "
              "collectives or one KIND (all-reduce, all-gather, reduce-scatter, all-to-all)")
      ->check(IsTakenBy(collectives::ParseAlgorithmOverride));
}

void AddCostFlag(CLI::App& app, ProgramFlags& flags) {
  AddRepeated(app, "--cost", flags.costs, "NAME=TIME[,LATENCY]",
              "Time of a kernel, collective or transfer (40us) for passes that ask for its "
              "cost, with a latency in front that uses no resource; NAME may be a glob, the "
              "first match counts")
      ->check(Is(ParseCost, "NAME=TIME or NAME=TIME,LATENCY, such as 'all-gather*=12.5us,1us'"));
}

void AddExplainFlag(CLI::App& app, ProgramFlags& flags) {
  AddRepeated(app, "--explain", flags.explain, "PASS",
              "Also print the decisions of this pass, with their reasons");
}

void AddProgramFlags(CLI::App& app, ProgramFlags& flags) {
  AddPassFlags(app, flags);
  app.add_flag("--recompile", flags.recompile,
               "Compile for the speeds that --set states; otherwise the program is compiled for "
               "the chip as it is and runs on the changed machine");
  app.add_option("--mesh", flags.mesh,
                 "Replace the program's mesh; its shardings refer to axes by name")
      ->type_name("NAME=SIZE,...")
      ->check(IsTakenBy(sharding::ParseStatedMesh));
  AddRepeated(app, "--shard", flags.arguments, "ARGUMENT=P('x', None)",
              "Replace the sharding of an argument (a name such as \"params['w']\"; * stands "
              "for any text)")
      ->check(IsTakenBy(sharding::ParseStatedConstraint));
  AddRepeated(app, "--constrain", flags.constraints, "VALUE=P('x', None)",
              "Add a with_sharding_constraint on a value: a name that `tpusim compile --emit "
              "sharded` shows, several names, or a glob; a name of checkpoint_name; or the end "
              "of a path of scopes")
      ->check(IsTakenBy(sharding::ParseStatedConstraint));
  AddRepeated(app, "--remat", flags.remat, "NAME=saved|offloaded|recomputed",
              "Rematerialisation policy of the values with this checkpoint_name, in a program "
              "that recomputes them in its backward pass; * stands for any text, the first "
              "match counts; `tpusim compile --emit names` lists names")
      ->check(IsTakenBy(remat::ParseStatedPolicy));
  AddRepeated(app, "--donate-argument", flags.donated, "ARGUMENT",
              "Donate this argument: the first result of equal type and sharding reuses its "
              "buffer; * stands for any text");
  AddRepeated(app, "--keep-argument", flags.kept, "ARGUMENT",
              "Do not donate this argument; * stands for any text")
      ->excludes("--donate");
  AddPlacementFlags(app, flags);
  CLI::Option* quiet = app.add_flag("-q,--quiet", flags.quiet, "Print errors only");
  app.add_flag("-v,--verbose", flags.verbose, "Print progress on stderr")->excludes(quiet);
}

std::vector<cost::StatedCost> StatedCostsOf(const ProgramFlags& flags) {
  return Parsed(flags.costs, ParseCost);
}

compiler::CompileOptions CompileOptionsOf(const ProgramFlags& flags) {
  compiler::CompileOptions options;
  options.trip_counts = Parsed(flags.trip_counts, ParseTripCount);
  options.stated.branches = Parsed(flags.branches, ParseBranch);
  options.stated.kernel_costs = Parsed(flags.kernel_costs, ParseKernelCost);
  options.stated.ragged = Parsed(flags.ragged, passes::ParseRaggedOverride);
  options.stated.routing = flags.routing;
  if (!flags.mesh.empty()) options.mesh = *sharding::ParseStatedMesh(flags.mesh);
  options.arguments = Parsed(flags.arguments, sharding::ParseStatedConstraint);
  options.constraints = Parsed(flags.constraints, sharding::ParseStatedConstraint);
  options.remat = Parsed(flags.remat, remat::ParseStatedPolicy);
  options.donated = flags.donated;
  options.kept = flags.kept;
  options.algorithms = Parsed(flags.algorithms, collectives::ParseAlgorithmOverride);
  options.device_order = flags.device_order;
  options.stated.donate = flags.donate;
  options.stated.compiler_times = flags.kernel_time == "compiler";
  options.passes = flags.passes;
  options.explain = flags.explain;
  options.verify_passes = flags.verify_passes;
  return options;
}

void AddTo(configs::Digest& digest, const ProgramFlags& flags) {
  const auto& [overrides, recompile, compiler, xla_flags, trip_counts, branches, kernel_time,
               kernel_costs, costs, ragged, routing, mesh, arguments, constraints, remat, donated,
               kept, device_order, algorithms, donate, passes, explain, verify_passes, pass_timings,
               quiet, verbose] = flags;
  digest.Add(overrides, recompile, compiler, xla_flags, trip_counts, branches, kernel_time,
             kernel_costs, costs, ragged, mesh, arguments, constraints, remat, donated, kept,
             device_order, algorithms, donate, passes, verify_passes);
  digest.Add(routing.exponent);  // a file counts by what is in it
  for (const std::vector<int64_t>& layer : routing.layers) digest.Add(layer);
}

void AddTo(configs::Digest& digest, const MachineFlags& flags) {
  const auto& [fold, detail, slow, links, max_events, exact_under] = flags;
  digest.Add(fold, detail, slow, links, max_events, exact_under);
}

void AddMachineFlags(CLI::App& app, MachineFlags& flags) {
  app.add_option(
         "--fold", flags.fold,
         "Devices to simulate: one of each class that behaves exactly alike (on), all (off), or "
         "one of each class with equal devices and groups (approximate); auto (default): on, "
         "unless that takes too long (--exact-under), then approximate, with an error bound in "
         "the summary")
      ->type_name("auto|on|off|approximate")
      ->check(CLI::IsMember({"auto", "on", "off", "approximate"}));
  app.add_option("--detail", flags.detail,
                 "Skip grid steps of kernels and iterations of loops that repeat (kernel, "
                 "default), or execute each (tile)")
      ->type_name("kernel|tile")
      ->check(CLI::IsMember({"kernel", "tile"}));
  AddRepeated(app, "--slow", flags.slow, "chip=N:SHARE",
              "Straggler: the clock of a chip runs at this share, such as chip=3:0.8");
  AddRepeated(app, "--link", flags.links, "N:DIR=SHARE",
              "Degraded link: chip, direction and share of its rate, such as 3:x+=0.5; 0 = dead");
  app.add_option("--exact-under", flags.exact_under,
                 "With --fold auto: largest predicted number of events for which all classes "
                 "are simulated exactly (default: 2000000, a second)")
      ->type_name("N")
      ->check(IsWholeFrom(0));
  app.add_option("--max-events", flags.max_events,
                 "Stop after this many simulated instructions (default: 1000000000, minutes)")
      ->type_name("N")
      ->check(IsWholeFrom(1));
}

}  // namespace tpusim::tools
