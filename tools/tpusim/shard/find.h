// Finds the shardings of one program on one slice: drives the search with workers.
//
// The room answers which shardings make a program short; `Find` is its entry point. The search
// itself is in workloads/search, which has neither clock nor processes.
#ifndef TPUSIM_TOOLS_TPUSIM_SHARD_FIND_H_
#define TPUSIM_TOOLS_TPUSIM_SHARD_FIND_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/simulate.h"
#include "tools/tpusim/command_line/program_flags.h"
#include "tools/tpusim/find/judge.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/search/branch_and_bound.h"
#include "workloads/search/program.h"
#include "workloads/search/space.h"

namespace tpusim::tools {

struct FindOptions {
  std::string workload, config;
  std::vector<std::string> axes, fixed, forbidden;
  double gap = 0;        // see search::BranchAndBound
  double seconds = 600;  // when to stop with what is found; 0: when all is decided
  int jobs = 1;
  std::string store;  // "" = none
  bool keeps_constraints = false;
  bool all = false;                        // simulate also what cannot be the best
  bool may_donate = false;                 // candidates may have all arguments donated
  std::vector<std::string> may_constrain;  // values that candidates may have constraints for
  ProgramFlags program;
  MachineFlags machine;
};

// The program, the slice and the spaces of a search. It does not move: its parts refer to each
// other.
struct FindProblem {
  FindOptions options;
  std::string name;  // of the program
  Machine machine;
  compiler::CompileOptions compile;
  sim::SimulationOptions simulation;
  search::Program program;
  std::vector<search::Space> spaces;  // by variant
  std::vector<Source> sources;        // likewise

  const configs::Config& config() const { return machine.config; }
};
const search::Space& SpaceOf(const FindProblem& problem, const search::Candidate& candidate);
const search::Variant& VariantOf(const FindProblem& problem, const search::Candidate& candidate);
// Dimensions of arguments that could be split and are no choice of any of the spaces: by name, and
// what each follows; "": it is left whole. What nothing in the spaces beats, these may.
std::vector<std::pair<std::string, std::string>> LeftOutOf(const FindProblem& problem);
// Errors: of the program, the slice, what is fixed or forbidden.
absl::StatusOr<std::unique_ptr<FindProblem>> ProblemOf(const FindOptions& options);

// Returns the verdict on a candidate, or on the program as it is, if it is for as many devices.
// What cannot be shorter than `cutoff` is not simulated to its end; what the compiler refuses is
// impossible. Error: a bug of ours.
absl::StatusOr<search::Verdict> VerdictOn(const FindProblem& problem,
                                          const search::Candidate& candidate, Picoseconds cutoff,
                                          Judge& judge);
absl::StatusOr<search::Verdict> VerdictOnProgram(const FindProblem& problem, Judge& judge);

struct FindOutcome {
  std::optional<search::Verdict> as_it_is;  // if it is for as many devices
  // It is one of the answers: nothing is fixed or forbidden that it might not keep to.
  bool as_it_is_counts = false;
  std::vector<search::Found> found;  // the best first
  Picoseconds lower_bound{0};        // of all candidates that fit
  search::Tally tally;
  std::optional<Bytes> smallest_too_large;
  std::string refused;   // why the first was that was refused; "" = none was
  bool stopped = false;  // by the time
  double seconds = 0;

  // Returns the step of the best, or of the program as it is where nothing is shorter.
  std::optional<Picoseconds> shortest() const;
  // Returns how much shorter than that any candidate may be, as a share of it.
  double gap() const;
};

// Errors: of workers and the store; the first error of ours.
absl::StatusOr<FindOutcome> Find(const FindProblem& problem);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_SHARD_FIND_H_
