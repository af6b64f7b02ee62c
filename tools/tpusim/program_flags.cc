#include "tools/tpusim/program_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "configs/number_text.h"
#include "configs/quantity_text.h"
#include "configs/status_macros.h"
#include "workloads/kernels/custom_cost.h"
#include "workloads/passes/passes.h"
#include "workloads/passes/pipeline/pipeline.h"
#include "workloads/passes/pipeline/statements.h"
#include "workloads/sharding/stated_constraints.h"

namespace tpusim::tools {
namespace {

// LOOP=N, split at the last '='; false if N is not a count.
bool ParseTripCount(const std::string& text, std::pair<std::string, int64_t>* parsed) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return false;
  parsed->first = text.substr(0, equals);
  parsed->second = configs::NumberIn<int64_t>(text.substr(equals + 1)).value_or(-1);
  return parsed->second >= 0;
}

std::string CheckTripCount(const std::string& text) {
  std::pair<std::string, int64_t> ignored;
  if (ParseTripCount(text, &ignored)) return "";
  return fmt::format("\"{}\" is not LOOP=N, such as 'while.3=10' or '*=4'", text);
}

// NAME=k or NAME=longest.
bool ParseBranch(const std::string& text, std::pair<std::string, std::string>* parsed) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) return false;
  *parsed = {text.substr(0, equals), text.substr(equals + 1)};
  return parsed->second == "longest" ||
         parsed->second.find_first_not_of("0123456789") == std::string::npos;
}

std::string CheckBranch(const std::string& text) {
  std::pair<std::string, std::string> ignored;
  if (ParseBranch(text, &ignored)) return "";
  return fmt::format("\"{}\" is not NAME=k or NAME=longest, such as 'conditional.3=1'", text);
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
bool ParseKernelCost(const std::string& text, kernels::NamedCost* parsed) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return false;
  parsed->name = text.substr(0, equals);
  std::vector<std::string> parts;
  std::istringstream figures(text.substr(equals + 1) + ",");
  for (std::string part; std::getline(figures, part, ',');) parts.push_back(part);
  if (parts.size() % 2 == 1) {
    parsed->cost.time = ParseTime(parts.back());
    if (!parsed->cost.time) return false;
    parts.pop_back();
  }
  if (parts.empty()) return true;
  if (parts.size() != 2) return false;
  const std::optional<int64_t> flops = ParseAmount(parts[0]), bytes = ParseAmount(parts[1]);
  if (!flops || !bytes) return false;
  parsed->cost.flops = Flops(*flops);
  parsed->cost.bytes = Bytes(*bytes);
  return true;
}

std::string CheckKernelCost(const std::string& text) {
  kernels::NamedCost ignored;
  if (ParseKernelCost(text, &ignored)) return "";
  return fmt::format(
      "\"{}\" is not NAME=FLOPS,BYTES, NAME=TIME or NAME=FLOPS,BYTES,TIME, "
      "FLOPS and BYTES whole numbers up to 9e18, such as "
      "'flash*=2.2e9,1.6e7' or 'flash*=12.5us'",
      text);
}

// NAME=TIME or NAME=TIME,LATENCY
bool ParseCost(const std::string& text, cost::StatedCost* parsed) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return false;
  const size_t comma = text.find(',', equals);
  const std::optional<Picoseconds> time = ParseTime(text.substr(equals + 1, comma - equals - 1));
  const std::optional<Picoseconds> latency = comma == std::string::npos
                                                 ? std::optional(Picoseconds(0))
                                                 : ParseTime(text.substr(comma + 1));
  if (!time || !latency) return false;
  *parsed = {text.substr(0, equals), *time, *latency};
  return true;
}

std::string CheckCost(const std::string& text) {
  cost::StatedCost ignored;
  if (ParseCost(text, &ignored)) return "";
  return fmt::format(
      "\"{}\" is not NAME=TIME or NAME=TIME,LATENCY, such as 'all-gather*=12.5us,1us'", text);
}

std::string CheckRagged(const std::string& text) {
  if (passes::ParseRaggedOverride(text)) return "";
  return fmt::format(
      "\"{}\" is not NAME=SIZE,SIZE,..., such as 'ragged-dot.3=128,0,64,64' (rows), "
      "'*=0.5,0.25,0.25,0' (shares, at most 1 in all) or '*=uniform'",
      text);
}

std::string CheckConstraint(const std::string& text) {
  const auto parsed = sharding::ParseStatedConstraint(text);
  return parsed.ok() ? "" : Message(parsed.status());
}

std::string CheckAlgorithm(const std::string& text) {
  const auto parsed = collectives::ParseAlgorithmOverride(text);
  return parsed.ok() ? "" : Message(parsed.status());
}

std::string CheckPasses(const std::string& text) {
  const auto parsed = passes::ParsePipeline(text);
  return parsed.ok() ? "" : Message(parsed.status());
}

}  // namespace

void AddWorkloadFlags(CLI::App& app, std::string& workload, std::string& config) {
  app.add_option("workload", workload,
                 "What tpusim.export wrote, any HLO proto, or HLO text; - is stdin")
      ->type_name("WORKLOAD.pb")
      ->required();
  app.add_option("-c,--config", config,
                 "The slice, such as v5e-4x2, or a JSON file (default: the workload's)")
      ->type_name("CONFIG");
}

void AddPassFlags(CLI::App& app, ProgramFlags& flags) {
  app.add_option("--set", flags.overrides,
                 "Override a parameter; `tpusim configs CHIP` lists their names")
      ->type_name("PARAMETER=VALUE")
      ->allow_extra_args(false);
  app.add_option("--trip-count", flags.trip_counts,
                 "How often a loop runs whose trip count is data; LOOP may be a glob")
      ->type_name("LOOP=N")
      ->allow_extra_args(false)
      ->check(CLI::Validator(CheckTripCount, ""));
  app.add_option("--kernel-cost", flags.kernel_costs,
                 "What one call of an opaque kernel (custom call) costs, or how long it takes "
                 "(12.5us); NAME may be a glob")
      ->type_name("NAME=[FLOPS,BYTES][,TIME]")
      ->allow_extra_args(false)
      ->check(CLI::Validator(CheckKernelCost, ""));
  app.add_option("--branch", flags.branches,
                 "Which branch a conditional takes whose predicate is data (default: the longest); "
                 "NAME may be a glob")
      ->type_name("NAME=K|longest")
      ->allow_extra_args(false)
      ->check(CLI::Validator(CheckBranch, ""));
  app.add_option("--ragged", flags.ragged,
                 "Rows (or shares of them, with a decimal point) per group of a ragged dot, or per "
                 "receiver of a ragged all-to-all (default: all equal); NAME may be a glob")
      ->type_name("NAME=S0,S1,...|uniform")
      ->allow_extra_args(false)
      ->check(CLI::Validator(CheckRagged, ""));
  app.add_flag("--donate", flags.donate,
               "As if the caller donated all arguments: results of their shapes take their place");
  app.add_option("--passes", flags.passes,
                 "The passes of the compiler that run, in this order, with options and groups that "
                 "are repeated (simplify,fixpoint(layout,simplify),fuse,schedule), or, as -NAME, "
                 "those of the default that do not; `tpusim opt --help` lists all")
      ->type_name("PASS{OPTION=VALUE},...")
      ->check(CLI::Validator(CheckPasses, ""));
  app.add_flag("!--no-verify-passes", flags.verify_passes,
               "Do not check the module after every pass that changes it");
  app.add_flag("--pass-timings", flags.pass_timings,
               "Say on stderr how long passes took and what they changed");
}

void AddCostFlag(CLI::App& app, ProgramFlags& flags) {
  app.add_option(
         "--cost", flags.costs,
         "What if this kernel, collective or transfer took so long (40us), behind a latency "
         "that uses nothing? Passes that ask for its cost hear this; NAME may be a glob, "
         "the first that matches counts")
      ->type_name("NAME=TIME[,LATENCY]")
      ->allow_extra_args(false)
      ->check(CLI::Validator(CheckCost, ""));
}

void AddExplainFlag(CLI::App& app, ProgramFlags& flags) {
  app.add_option("--explain", flags.explain, "Also print why this pass decided as it did")
      ->type_name("PASS")
      ->allow_extra_args(false);
}

void AddProgramFlags(CLI::App& app, ProgramFlags& flags) {
  AddPassFlags(app, flags);
  app.add_flag("--recompile", flags.recompile,
               "Let the compiler know speeds that --set changes; otherwise the program is the one "
               "for the chip as it is, and only the machine that runs it is faster or slower");
  app.add_option("--xla-flags", flags.xla_flags,
                 "Flags of the TPU compiler, as in LIBTPU_INIT_ARGS, that `tpusim configs CHIP "
                 "--compiler` names; others are named in a warning")
      ->type_name("\"--xla_...=VALUE ...\"");
  app.add_option("--constrain", flags.constraints,
                 "As if the program had a with_sharding_constraint on this value (a name that "
                 "`tpusim compile --emit sharded` shows, several, or a glob)")
      ->type_name("VALUE=P('x', None)")
      ->allow_extra_args(false)
      ->check(CLI::Validator(CheckConstraint, ""));
  app.add_option("--device-order", flags.device_order,
                 "Which device runs partition i: 'ids', or a list 0,1,3,2 (default: the workload's "
                 "coordinates, else JAX's make_mesh order)")
      ->type_name("ids|0,1,...");
  app.add_option(
         "--algorithm", flags.algorithms,
         "How collectives are done: as the TPU compiler would, axis by axis where that is not "
         "known (compiler, the default), the fastest of all ways (best), or one by name, for "
         "all or one KIND of them (all-reduce, all-gather, reduce-scatter, all-to-all)")
      ->type_name("[KIND=]ALGORITHM")
      ->allow_extra_args(false)
      ->check(CLI::Validator(CheckAlgorithm, ""));
  CLI::Option* quiet = app.add_flag("-q,--quiet", flags.quiet, "Print errors only");
  app.add_flag("-v,--verbose", flags.verbose, "Say on stderr what is being done")->excludes(quiet);
}

std::vector<cost::StatedCost> StatedCostsOf(const ProgramFlags& flags) {
  std::vector<cost::StatedCost> costs;
  for (const std::string& text : flags.costs) {
    TPUSIM_CHECK(ParseCost(text, &costs.emplace_back()), "the parser lets no other form through");
  }
  return costs;
}

compiler::CompileOptions CompileOptionsOf(const ProgramFlags& flags) {
  compiler::CompileOptions options;
  for (const std::string& text : flags.trip_counts) {
    std::pair<std::string, int64_t> parsed;
    TPUSIM_CHECK(ParseTripCount(text, &parsed), "the parser lets no other form through");
    options.trip_counts.push_back(std::move(parsed));
  }
  for (const std::string& text : flags.branches) {
    std::pair<std::string, std::string> parsed;
    TPUSIM_CHECK(ParseBranch(text, &parsed), "the parser lets no other form through");
    options.stated.branches.push_back(std::move(parsed));
  }
  for (const std::string& text : flags.kernel_costs) {
    kernels::NamedCost parsed;
    TPUSIM_CHECK(ParseKernelCost(text, &parsed), "the parser lets no other form through");
    options.stated.kernel_costs.push_back(std::move(parsed));
  }
  for (const std::string& text : flags.ragged) {
    std::optional<passes::RaggedOverride> parsed = passes::ParseRaggedOverride(text);
    TPUSIM_CHECK(parsed, "the parser lets no other form through");
    options.stated.ragged.push_back(*std::move(parsed));
  }
  for (const std::string& text : flags.constraints) {
    auto parsed = sharding::ParseStatedConstraint(text);
    TPUSIM_CHECK(parsed.ok(), "the parser lets no other form through");
    options.constraints.push_back(*std::move(parsed));
  }
  options.device_order = flags.device_order;
  options.stated.donate = flags.donate;
  options.passes = flags.passes;
  options.explain = flags.explain;
  options.verify_passes = flags.verify_passes;
  for (const std::string& text : flags.algorithms) {
    absl::StatusOr<collectives::AlgorithmOverride> parsed =
        collectives::ParseAlgorithmOverride(text);
    TPUSIM_CHECK(parsed.ok(), "the parser lets no other form through");
    options.algorithms.push_back(*std::move(parsed));
  }
  return options;
}

void AddMachineFlags(CLI::App& app, MachineFlags& flags) {
  app.add_option(
         "--fold", flags.fold,
         "Simulate one of all devices that do the same (on), every one (off), or one of all that "
         "differ only in where transfers go (approximate); auto (default): on, unless that takes "
         "too long, and then off by no more than the summary says")
      ->type_name("auto|on|off|approximate")
      ->check(CLI::IsMember({"auto", "on", "off", "approximate"}));
  app.add_option("--detail", flags.detail,
                 "Move time over steps of kernels and passes of loops that repeat (default), or "
                 "execute every one")
      ->type_name("kernel|tile")
      ->check(CLI::IsMember({"kernel", "tile"}));
  app.add_option("--slow", flags.slow,
                 "A straggler: the clock of a chip runs at this share, "
                 "such as chip=3:0.8")
      ->type_name("chip=N:SHARE")
      ->allow_extra_args(false);
  app.add_option("--link", flags.links,
                 "A degraded link: chip, direction and share of its rate, "
                 "such as 3:x+=0.5; 0 = dead")
      ->type_name("N:DIR=SHARE")
      ->allow_extra_args(false);
  app.add_option("--max-events", flags.max_events,
                 "Give up after so many simulated instructions (default: 1000000000, minutes)")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, std::numeric_limits<int64_t>::max()));
}

}  // namespace tpusim::tools
