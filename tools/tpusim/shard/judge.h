// What a candidate comes to: it is compiled and simulated, as far as that is needed.
//
//   partitioned   another candidate may be the same program on the same devices
//   compiled      no schedule of it may be short enough (search/compiled_bound.h)
//   approximate   where devices differ much, a simulation that is off by no more than it says
//   simulated     as `tpusim run` would with the candidate's options
//
// A judge lives in a worker and keeps kernels and programs that it has seen.
#ifndef TPUSIM_TOOLS_TPUSIM_SHARD_JUDGE_H_
#define TPUSIM_TOOLS_TPUSIM_SHARD_JUDGE_H_

#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "sim/simulate.h"
#include "tools/tpusim/command_line/program_flags.h"
#include "workloads/compiler/compile.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/search/branch_and_bound.h"
#include "workloads/search/program.h"
#include "workloads/search/space.h"

namespace tpusim::tools {

class Judge {
 public:
  // The program, the options and the machine must live as long. It is compiled for `compiled_for`,
  // null: for the machine.
  Judge(const search::Program& program, const configs::Config& machine,
        const configs::Config* compiled_for, const compiler::CompileOptions& options,
        const sim::SimulationOptions& simulation);

  // A candidate that cannot be shorter than `cutoff` is not simulated to its end. Error: one of
  // ours.
  absl::StatusOr<search::Verdict> Of(const search::Space& space, const search::Candidate& candidate,
                                     Picoseconds cutoff);
  // The program as it is, if it is for as many devices.
  absl::StatusOr<search::Verdict> AsItIs();

 private:
  using Bound = absl::StatusOr<Picoseconds>(const hlo::Module& module, const target::Target& target,
                                            cost::ChipCostModel& costs);
  absl::StatusOr<Picoseconds> OnMachine(Bound bound, const hlo::Module& module,
                                        cost::ChipCostModel& costs);
  absl::StatusOr<search::Verdict> Of(const search::Variant& variant,
                                     const compiler::CompileOptions& options, Picoseconds cutoff);

  const search::Program& program_;
  const configs::Config& machine_;
  const configs::Config* const compiled_for_;
  const compiler::CompileOptions& options_;
  const sim::SimulationOptions& simulation_;
  compiler::Common common_;                  // of what it is compiled for
  std::unique_ptr<compiler::Common> costs_;  // of the machine, where that is another
  std::set<std::string> seen_;               // partitioned modules, by what tells them apart
};

// For the way between processes.
std::string ToText(const search::Candidate& candidate, Picoseconds cutoff);
std::pair<search::Candidate, Picoseconds> CandidateOf(const std::string& text);
std::string ToText(const search::Verdict& verdict);
search::Verdict VerdictOf(const std::string& text);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_SHARD_JUDGE_H_
