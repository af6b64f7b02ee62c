#include "tools/tpusim/find/variant_judge.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "configs/status_macros.h"
#include "tools/tpusim/find/key.h"

namespace tpusim::tools {

absl::StatusOr<std::unique_ptr<VariantJudge>> VariantJudge::Of(const std::string& file,
                                                               const ProgramFlags& flags) {
  ASSIGN_OR_RETURN(hlo::ImportedWorkload imported, hlo::ImportFile(file));
  ASSIGN_OR_RETURN(compiler::NormalisedProgram program,
                   compiler::Normalise(std::move(imported), CompileOptionsOf(flags).remat));
  return std::unique_ptr<VariantJudge>(new VariantJudge(file, std::move(program)));
}

int64_t VariantJudge::partitions() const {
  return std::max<int64_t>(1, compiler::PartitionsOf(program_.imported));
}

absl::StatusOr<std::string> VariantJudge::SliceOf(const std::string& config) const {
  return config.empty() ? NamedSlice(source_.file, program_.imported.workload) : config;
}

absl::StatusOr<Prepared> VariantJudge::Compiled(const std::string& slice,
                                                const ProgramFlags& flags,
                                                const MachineFlags& machine, const Look& look) {
  const auto stages =
      [&](compiler::PartitionedProgram partitioned,
          const Machine& on) -> absl::StatusOr<compiler::CompileResult> {
    latest_ = Judge::Identity(partitioned, OutcomeKey(slice, flags, &machine));
    ASSIGN_OR_RETURN(auto simplified, std::move(partitioned).Simplify());
    ASSIGN_OR_RETURN(auto kernels, std::move(simplified).BuildKernels());
    ASSIGN_OR_RETURN(auto scheduled, std::move(kernels).Schedule());
    RETURN_IF_ERROR(scheduled.CheckFits());
    if (look != nullptr) look(scheduled);
    return std::move(scheduled).Lower(on.ToLowerFor());
  };
  return Prepare(source_, slice, flags, CompileOptionsOf(flags), judge_.session(), stages);
}

void VariantJudge::Know(const results::Report& report) {
  search::Verdict verdict;
  verdict.kind = search::Verdict::Kind::kSimulated;
  verdict.peak = report.peak.hbm();
  verdict.usable = report.usable.hbm();
  verdict.step = report.step_time;
  judge_.Know(latest_, std::move(verdict));
}

absl::StatusOr<search::Verdict> VariantJudge::Of(const std::string& slice,
                                                 const ProgramFlags& flags,
                                                 const MachineFlags* machine) {
  ASSIGN_OR_RETURN(const Machine on,
                   MachineOf(slice, flags, CompilerOfProgram(program_.imported.workload)));
  const compiler::CompileOptions options = CompileOptionsOf(flags);
  std::optional<sim::SimulationOptions> simulation;
  if (machine != nullptr) {
    ASSIGN_OR_RETURN(simulation, SimulationOptionsOf(on.config, *machine));
  }
  return judge_.Of({.source = source_,
                    .machine = on,
                    .flags = flags,
                    .options = options,
                    .key = OutcomeKey(slice, flags, machine),
                    .simulation = simulation ? &*simulation : nullptr});
}

}  // namespace tpusim::tools
