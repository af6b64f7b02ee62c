// tpusim compile: the program after any stage of the compiler.
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "configs/config.h"
#include "configs/names.h"
#include "configs/printable.h"
#include "configs/status_macros.h"
#include "sim/results/report/atomic_file.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/find/lower_bounds.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/pipeline/dump.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/hlo/io/attached_workload.h"
#include "workloads/hlo/io/literal_text.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/wire.h"
#include "workloads/passes/passes.h"

namespace tpusim::tools {
namespace {

using compiler::Stage;

const std::map<std::string, Stage>& Stages() {
  static const auto* const stages = new std::map<std::string, Stage>{
      {"names", Stage::kNames},           {"decisions", Stage::kDecisions},
      {"sharded", Stage::kSharded},       {"partitioned", Stage::kPartitioned},
      {"optimized", Stage::kOptimized},   {"schedule", Stage::kSchedule},
      {"executable", Stage::kExecutable}, {"streams", Stage::kStreams},
  };
  return *stages;
}

constexpr char kBounds[] = "bounds";

struct CompileFlags {
  std::string workload, config;
  Stage emit = Stage::kStreams;
  bool emit_given = false;
  bool bounds = false;  // emitted in place of a stage
  bool large_constants = false, json = false;
  std::string output, dump;
  std::vector<std::string> dump_after;
  ProgramFlags program;
};

// Stages whose module XLA can compile.
bool HasBinaryForm(Stage stage) {
  return stage == Stage::kPartitioned || stage == Stage::kExecutable;
}

bool IsBinary(const CompileFlags& flags) { return flags.output.ends_with(".pb"); }

// Returns equal bytes for equal modules, whatever order maps are kept in.
std::string Serialized(const hlo::Module& module, const Prepared& prepared) {
  hlo::pb::HloModuleProto proto = hlo::ToProto(module);
  // So it can be read back.
  tpusim::Workload workload = prepared.compiled.workload;
  workload.set_name(prepared.name);
  if (configs::LoadConfig(prepared.config.name, {}).ok()) {  // not from a file
    workload.set_config(prepared.config.name);
  }
  hlo::AttachWorkload(workload, proto);
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  proto.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// Whether the stage is one of those before a program is partitioned, which are text.
bool IsSharding(Stage stage) { return stage < Stage::kPartitioned; }

// Returns the text of a stage before partitioning.
absl::StatusOr<std::string> ShardingText(const CompileFlags& flags,
                                         const compiler::CompileOptions& options,
                                         hlo::ImportedWorkload imported) {
  if (flags.emit == Stage::kNames) return compiler::NamesText(imported);
  ASSIGN_OR_RETURN(compiler::NormalisedProgram program,
                   compiler::Normalise(std::move(imported), options.remat));
  if (flags.emit == Stage::kDecisions) {
    const std::pair<bool, const char*> given[] = {{!options.mesh.empty(), "--mesh"},
                                                  {!options.arguments.empty(), "--shard"},
                                                  {!options.constraints.empty(), "--constrain"}};
    for (const auto& [is_given, option] : given) {
      if (!is_given) continue;
      return UserError(fmt::format(
          "{}: what there is to decide does not depend on it; leave it out, or --emit sharded",
          option));
    }
    return compiler::DecisionsText(program);
  }
  ASSIGN_OR_RETURN(const sharding::ShardedModule sharded,
                   compiler::State(std::move(program), options));
  return sharding::ToString(sharded);
}

std::string Text(const compiler::CompileResult& result, Stage stage,
                 const hlo::PrintOptions& print) {
  return stage == Stage::kStreams ? isa::Disassemble(result.program)
                                  : hlo::ToString(*result.module, print);
}

std::string AsJson(const CompileFlags& flags, const Prepared& prepared, const std::string& text) {
  using Json = nlohmann::ordered_json;
  const compiler::CompileResult& compiled = prepared.compiled;
  std::string stage;
  for (const auto& [name, value] : Stages()) {
    if (value == flags.emit) stage = name;
  }
  Json dumps = Json::array();
  for (const auto& [what, text] : compiled.dumps) dumps.push_back({{"what", what}, {"text", text}});
  Json json = results::HeadOf("tpusim.compile/1", ThisProducer());
  json.update(Json{{"workload", prepared.name},
                   {"config", prepared.config.name},
                   {"stage", stage},
                   {"text", text},
                   {"dumps", std::move(dumps)},
                   {"passes", PassRunsJson(compiled.pass_runs)},
                   {"warnings", WarningsOf(prepared)}});
  return results::JsonText(json);
}

absl::Status Compile(const CompileFlags& flags) {
  if (!flags.dump.empty()) {
    return Dump(flags.workload, flags.config, flags.program, {flags.large_constants}, flags.dump);
  }
  if (flags.bounds) {
    ASSIGN_OR_RETURN(const LowerBounds bounds,
                     LowerBoundsOf(flags.workload, flags.config, flags.program));
    return PrintResult(ToJsonText(bounds));
  }
  const bool binary = IsBinary(flags);
  RETURN_IF_ERROR(CheckOutputs({{"-o", flags.output}}, InputsOf(flags.workload, flags.config)));
  compiler::CompileOptions options = CompileOptionsOf(flags.program);
  options.dump_after = flags.dump_after;
  options.print.large_constants = flags.large_constants;
  // A dump needs its pass to run, whatever else is asked for.
  const bool asks = !flags.dump_after.empty() || !flags.program.explain.empty();
  ASSIGN_OR_RETURN(const Source source, SourceOf(flags.workload));
  Prepared prepared;
  std::string stage_text;
  if (IsSharding(flags.emit)) {
    ASSIGN_OR_RETURN(Opened opened, Open(source, flags.config, flags.program));
    prepared.name = opened.name;
    prepared.config = opened.machine.config;
    ASSIGN_OR_RETURN(stage_text, ShardingText(flags, options, std::move(opened.imported)));
  } else {
    const Stage last =
        asks ? std::max(flags.emit_given ? flags.emit : Stage::kSchedule, Stage::kSchedule)
             : flags.emit;
    compiler::Session session;
    ASSIGN_OR_RETURN(prepared, Prepare(source, flags.config, flags.program, options, session,
                                       Until(last)));
    if (!binary) stage_text = Text(prepared.compiled, flags.emit, options.print);
  }
  if (flags.json) return PrintResult(AsJson(flags, prepared, stage_text));

  std::string bytes;
  for (const auto& [what, text] : prepared.compiled.dumps) {
    bytes += fmt::format("// {}\n{}\n", what, text);
  }
  if (flags.emit_given || !asks) {
    if (binary) {
      const hlo::Module& module = *prepared.compiled.module;
      RETURN_IF_ERROR(hlo::CheckConstantsHaveValues(module));
      bytes = Serialized(module, prepared);
    } else {
      bytes += stage_text;
      if (!bytes.ends_with('\n')) bytes += '\n';
    }
  }
  if (flags.output.empty()) {
    RETURN_IF_ERROR(PrintResult(bytes));
  } else {
    if (!binary) bytes = configs::PrintableLines(bytes);
    RETURN_IF_ERROR(results::WriteFileAtomically(flags.output, bytes));
  }
  if (!flags.program.quiet) PrintWarnings(WarningsOf(prepared));
  return absl::OkStatus();
}

}  // namespace

Command AddCompile(CLI::App& parent) {
  auto flags = std::make_shared<CompileFlags>();
  CLI::App* app = parent.add_subcommand("compile", "Print the program after a compiler stage");
  AddWorkloadFlags(*app, flags->workload, flags->config);
  CLI::Option* emit = app->add_option_function<std::string>(
      "--emit",
      [flags](const std::string& name) {
        flags->bounds = name == kBounds;
        if (!flags->bounds) flags->emit = Stages().at(name);
        flags->emit_given = true;
      },
      "The stage; default: streams");
  emit->type_name("bounds|decisions|sharded|partitioned|optimized|schedule|executable|streams")
      ->check(CLI::Validator(
          [](std::string& name) -> std::string {
            if (name == kBounds || Stages().contains(name)) return "";
            std::vector<std::string> names = {kBounds};
            for (const auto& [stage, value] : Stages()) names.push_back(stage);
            return fmt::format("no stage \"{}\"; the nearest is {}", name,
                               configs::Nearest(name, names));
          },
          ""));
  CLI::Option* output =
      app->add_option("-o,--output", flags->output,
                      "Write to this file instead of stdout; stages partitioned and executable "
                      "write an HloModuleProto to FILE.pb")
          ->type_name("FILE");
  CLI::Option* after =
      app->add_option("--dump-after", flags->dump_after, "Also print the module after this pass")
          ->type_name("PASS")
          ->allow_extra_args(false);
  AddExplainFlag(*app, flags->program);
  CLI::Option* json =
      app->add_flag("--json", flags->json, "Print JSON: the text, dumps, passes and warnings");
  app->add_option("--dump", flags->dump,
                  "Write every stage, the decisions of all passes, kernels, memory plan and "
                  "streams into this folder, a file each, instead of printing one; the folder "
                  "is new or empty")
      ->type_name("DIR")
      ->excludes(emit, output, after, json, app->get_option("--explain"));
  app->add_flag("--print-large-constants", flags->large_constants,
                "Print all elements of large constants instead of {...}, so that tpusim opt can "
                "read the text");
  AddProgramFlags(*app, flags->program);
  AddExamples(*app,
              {{"tpusim compile step.pb --emit partitioned", "what one device executes"},
               {"tpusim compile step.pb --explain fusion", "why kernels are what they are"},
               {"tpusim compile step.pb --dump stages", "every stage in a folder, for diff"},
               {"tpusim compile step.pb --emit executable -o step.hlo.pb", "for XLA to run"}},
              fmt::format("Passes (tpusim opt --help says what they do):\n  {}\n",
                          Spaced(passes::DefaultPipeline())));
  app->callback([flags] {
    const bool asks = !flags->dump_after.empty() || !flags->program.explain.empty();
    if (flags->emit_given && flags->emit < Stage::kOptimized && asks) {
      throw CLI::ValidationError(
          flags->dump_after.empty() ? "--explain" : "--dump-after",
          "is of passes, and they come after this stage: emit a later one, or leave --emit out");
    }
    if (flags->bounds && (asks || flags->json || !flags->output.empty())) {
      throw CLI::ValidationError("--emit bounds", "is printed as JSON, and alone");
    }
    if (flags->json && !flags->output.empty()) {
      throw CLI::ValidationError("--json", "is printed; leave -o out");
    }
    if (flags->json && !flags->emit_given && asks) {
      flags->emit = Stage::kSchedule;  // which is where a dump ends
    }
    if (IsBinary(*flags) && (!HasBinaryForm(flags->emit) || asks)) {
      throw CLI::ValidationError(
          "-o " + flags->output,
          "only --emit partitioned and executable have a binary form; for text, do not call the "
          "file .pb");
    }
  });
  return {app, [flags] { return Compile(*flags); }};
}

}  // namespace tpusim::tools
