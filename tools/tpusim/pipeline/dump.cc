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
#include "workloads/compiler/session.h"
#include "workloads/passes/passes.h"
#include "workloads/sharding/propagation/propagate.h"

namespace tpusim::tools {
namespace {

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

// Adds what is written before a program is partitioned. What there is to decide does not depend on
// what the options decide.
absl::Status AddSharded(const Source& source, const compiler::CompileOptions& options,
                        Files& files) {
  ASSIGN_OR_RETURN(hlo::ImportedWorkload imported, source.import());
  ASSIGN_OR_RETURN(std::string names, compiler::NamesText(imported));
  files.Add("names.txt", std::move(names));
  ASSIGN_OR_RETURN(compiler::NormalisedProgram program,
                   compiler::Normalise(std::move(imported), options.remat));
  ASSIGN_OR_RETURN(std::string decisions, compiler::DecisionsText(program));
  files.Add("decisions.txt", std::move(decisions));
  ASSIGN_OR_RETURN(const sharding::ShardedModule sharded,
                   compiler::State(std::move(program), options));
  files.Add("sharded.txt", sharding::ToString(sharded));
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
  compiler::CompileOptions options = CompileOptionsOf(flags);
  if (!imported.partitioned) RETURN_IF_ERROR(AddSharded(source, options, files));
  ASSIGN_OR_RETURN(const passes::Pipeline pipeline,
                   passes::ParsePipeline(imported.compiled ? passes::CompiledPipeline()
                                                           : options.passes));
  options.explain = passes::NamesOf(passes::WithAnnotations(pipeline));
  std::string plan;
  const auto add_stages =
      [&](compiler::PartitionedProgram partitioned,
          const Machine& machine) -> absl::StatusOr<compiler::CompileResult> {
    const auto add = [&](std::string_view name, const hlo::Module& module) {
      files.Add(name, hlo::ToString(module, print));
    };
    add("partitioned.hlo", partitioned.module());
    ASSIGN_OR_RETURN(auto simplified, std::move(partitioned).Simplify());
    add("simplified.hlo", simplified.module());
    ASSIGN_OR_RETURN(auto kernels, std::move(simplified).BuildKernels());
    RETURN_IF_ERROR(kernels.CheckNothingOpen());
    add("optimized.hlo", kernels.module());
    ASSIGN_OR_RETURN(auto scheduled, std::move(kernels).Schedule());
    add("schedule.hlo", scheduled.module());
    plan = buffers::ToString(scheduled.memory());
    return std::move(scheduled).Lower(machine.ToLowerFor());
  };
  compiler::Session session;
  ASSIGN_OR_RETURN(const Prepared prepared,
                   Prepare(source, config, flags, options, session, add_stages));
  files.Add("explained.txt", DecisionsOf(prepared.compiled.pass_runs));
  files.Add("plan.txt", plan);
  files.Add("kernels.txt", KernelsText(prepared.compiled.program, prepared.config.chip));
  files.Add("streams.txt", isa::Disassemble(prepared.compiled.program));
  RETURN_IF_ERROR(WriteFolder("--dump", folder, files.files()));
  if (!flags.quiet) PrintWarnings(WarningsOf(prepared));
  return absl::OkStatus();
}

}  // namespace tpusim::tools
