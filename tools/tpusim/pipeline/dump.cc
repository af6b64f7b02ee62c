#include "tools/tpusim/pipeline/dump.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "configs/printable.h"
#include "configs/status_macros.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/kernel_text.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/passes/passes.h"

namespace tpusim::tools {
namespace {

using compiler::Stage;

// Files are numbered as they come.
class Files {
 public:
  void Add(std::string_view name, std::string text) {
    if (!text.ends_with('\n')) text += '\n';
    files_.push_back({fmt::format("{:02}-{}", files_.size(), name), configs::PrintableLines(text)});
  }
  const std::vector<FolderFile>& files() const { return files_; }

 private:
  std::vector<FolderFile> files_;
};

// Stages whose end is text: nothing comes after them in their compilation.
absl::Status AddSharded(const Source& source, const std::string& config, const ProgramFlags& flags,
                        Files& files) {
  constexpr std::pair<Stage, const char*> kStages[] = {{Stage::kNames, "names.txt"},
                                                       {Stage::kDecisions, "decisions.txt"},
                                                       {Stage::kSharded, "sharded.txt"}};
  for (const auto& [stage, name] : kStages) {
    compiler::CompileOptions options = CompileOptionsOf(flags);
    options.until = stage;
    // What there is to decide does not depend on what is decided.
    if (stage == Stage::kDecisions) {
      options.mesh.clear();
      options.arguments.clear();
      options.constraints.clear();
    }
    ASSIGN_OR_RETURN(Prepared prepared, Prepare(source, config, flags, options));
    files.Add(name, std::move(prepared.compiled.sharded_text));
  }
  return absl::OkStatus();
}

std::string DecisionsOf(const std::vector<passes::PassRun>& runs) {
  std::string text;
  for (const passes::PassRun& run : runs) {
    text += fmt::format("// decisions of {}\n{}\n", run.pass, passes::DecisionsOf(run));
  }
  return text;
}

}  // namespace

absl::Status Dump(const std::string& workload, const std::string& config,
                  const ProgramFlags& flags, const hlo::PrintOptions& print,
                  const std::string& folder) {
  RETURN_IF_ERROR(CheckOutputFolder("--dump", folder));
  ASSIGN_OR_RETURN(const Source source, SourceOf(workload));
  ASSIGN_OR_RETURN(const hlo::ImportedWorkload imported, source.import());
  Files files;
  files.Add("imported.hlo", hlo::ToString(*imported.module, print));
  if (!imported.partitioned) {
    ProgramFlags once = flags;
    once.verbose = once.pass_timings = false;
    RETURN_IF_ERROR(AddSharded(source, config, once, files));
  }
  compiler::CompileOptions options = CompileOptionsOf(flags);
  ASSIGN_OR_RETURN(const passes::Pipeline pipeline,
                   passes::ParsePipeline(imported.compiled ? passes::CompiledPipeline()
                                                           : options.passes));
  options.explain = passes::NamesOf(passes::WithAnnotations(pipeline));
  const auto add = [&](std::string_view name) {
    return [&files, &print, name](const hlo::Module& module, auto&&) {
      files.Add(name, hlo::ToString(module, print));
      return true;
    };
  };
  options.watch.partitioned = add("partitioned.hlo");
  options.watch.simplified = add("simplified.hlo");
  options.watch.optimized = add("optimized.hlo");
  std::string plan;
  options.watch.scheduled = [&](const hlo::Module& module, const buffers::MemoryPlan& memory) {
    files.Add("schedule.hlo", hlo::ToString(module, print));
    plan = buffers::ToString(memory);
    return true;
  };
  ASSIGN_OR_RETURN(const Prepared prepared, Prepare(source, config, flags, options));
  files.Add("explained.txt", DecisionsOf(prepared.compiled.pass_runs));
  files.Add("plan.txt", plan);
  files.Add("kernels.txt", KernelsText(prepared.compiled.program, prepared.config.chip));
  files.Add("streams.txt", isa::Disassemble(prepared.compiled.program));
  RETURN_IF_ERROR(WriteFolder("--dump", folder, files.files()));
  if (!flags.quiet) PrintWarnings(WarningsOf(prepared));
  return absl::OkStatus();
}

}  // namespace tpusim::tools
