// The judge of a trial of a program: it compiles and simulates the program as far as is needed.
//
//   partitioned   another trial may have been the same program on the same devices
//   simplified    no schedule of it may be short enough (search/compiled_bound.h)
//   compiled      likewise, with a tighter bound
//   approximate   where devices differ much, a simulation that is off by no more than it says
//   simulated     as `tpusim run` would with the trial's options
//
// Candidates of `tpusim shard`, variants of `tpusim advise` and slices of `tpusim fit` are trials.
// A judge keeps kernels, decisions about collectives and verdicts that it has come to. It lives in
// a process: what it knows before workers are begun (pool.h), they know.
#ifndef TPUSIM_TOOLS_TPUSIM_FIND_JUDGE_H_
#define TPUSIM_TOOLS_TPUSIM_FIND_JUDGE_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "sim/simulate.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/compiler/session.h"
#include "workloads/search/branch_and_bound.h"

namespace tpusim::tools {

struct Trial {
  const Source& source;  // normalised
  const Machine& machine;
  const ProgramFlags& flags;  // of the run that is varied, for `tpusim opt` (broken_pass.h)
  const compiler::CompileOptions& options;
  // Identifies all that the outcome depends on beside the partitioned program.
  std::string key;
  // The simulation; null: the program is only compiled, which says whether it fits.
  const sim::SimulationOptions* simulation = nullptr;
  // Whether a bound will do: what cannot be shorter than `cutoff`, or takes more than --max-events,
  // is not simulated to its end.
  bool bounds = false;
  Picoseconds cutoff{INT64_MAX};
};

class Judge {
 public:
  Judge() = default;
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  compiler::Session& session() { return session_; }

  // Returns the verdict; one that says that the trial equals another has that one's. Errors: of the
  // compiler and the simulation, but for a program that does not fit.
  absl::StatusOr<search::Verdict> Of(const Trial& trial);

  // Returns what identifies a partitioned program with the key of a trial.
  static std::string Identity(const compiler::PartitionedProgram& program, const std::string& key);
  // Keeps the verdict on a program that was compiled and simulated elsewhere.
  void Know(const std::string& identity, search::Verdict verdict);

 private:
  // The peak of the latest program that was compiled for a slice and not simulated.
  struct Peak {
    search::Verdict verdict;
    std::string key;
    // PlacePartitions finds from these where its partitions would run.
    tpusim::Workload workload;
    sharding::Mesh mesh;
  };

  absl::StatusOr<search::Verdict> Compiled(const Trial& trial);
  // Returns the peak on another slice on which every question of the compiler has the same answer;
  // null: none is known.
  const search::Verdict* KnownPeak(const Trial& trial);
  // Bounds are those of the machine: its speeds count, not those that the compiler knows of.
  absl::StatusOr<Picoseconds> BoundOf(const compiler::SimplifiedProgram& program,
                                      const Trial& trial);
  absl::StatusOr<Picoseconds> BoundOf(const compiler::KernelProgram& program, const Trial& trial);
  template <typename Bound>
  absl::StatusOr<Picoseconds> OnMachine(Bound bound, const hlo::Module& module,
                                        cost::ChipCostModel& costs, const Trial& trial);
  absl::Status Simulate(const Trial& trial, const isa::PodProgram& program,
                        search::Verdict& verdict);

  compiler::Session session_;
  std::map<std::string, search::Verdict> known_;       // by identity
  std::map<const compiler::SliceCache*, Peak> peaks_;  // by the slice that is compiled for
};

// Convert to and from the texts that processes exchange.
std::string ToText(const search::Candidate& candidate, Picoseconds cutoff);
std::pair<search::Candidate, Picoseconds> CandidateOf(const std::string& text);
std::string ToText(const search::Verdict& verdict);
search::Verdict VerdictOf(const std::string& text);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_FIND_JUDGE_H_
