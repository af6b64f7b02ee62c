#include "tools/tpusim/subcommands/validate_profile.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "configs/status_macros.h"
#include "sim/results/measured/profile.h"
#include "sim/results/measured/profile_comparison.h"
#include "sim/results/report/atomic_file.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/pipeline/pipeline.h"

namespace tpusim::tools {
namespace {

constexpr size_t kProfileRows = 20;
// The width where stdout is no terminal.
constexpr size_t kProfileColumns = 160;

}  // namespace

absl::Status ValidateProfile(const ProfileFlags& flags, const ProgramFlags& program,
                             const MachineFlags& machine) {
  std::vector<InputPath> inputs = InputsOf(flags.workload, flags.config);
  inputs.push_back({"profile", flags.profile});
  RETURN_IF_ERROR(CheckOutputs({{"--report", flags.report}}, inputs));
  ASSIGN_OR_RETURN(const Prepared prepared,
                   Prepare(flags.workload, flags.config, program, CompileOptionsOf(program)));
  ASSIGN_OR_RETURN(results::Profile profile,
                   results::ReadProfile(flags.profile, prepared.compiled.program.info.module_name));
  ASSIGN_OR_RETURN(const Simulated simulated, Simulate(prepared, machine));
  const results::ProfileComparison comparison =
      results::CompareProfile(std::move(profile), prepared.compiled.program.info,
                              simulated.timeline, prepared.compiled.by_tpu_compiler);
  if (!flags.report.empty()) {
    nlohmann::ordered_json json = results::HeadOf("tpusim.profile_comparison/1", ThisProducer());
    json["workload"] = prepared.name;
    json["config"] = prepared.config.name;
    json.update(results::ProfileComparisonJson(comparison));
    RETURN_IF_ERROR(results::WriteFileAtomically(flags.report, results::JsonText(json)));
  }
  if (!program.quiet && flags.report != results::kStdout) {
    RETURN_IF_ERROR(PrintResult(results::ProfileComparisonText(
        comparison, flags.top > 0 ? flags.top : kProfileRows, ResultColumns(kProfileColumns))));
  }
  if (!program.quiet) PrintWarnings(simulated.report.warnings);
  return absl::OkStatus();
}

}  // namespace tpusim::tools
