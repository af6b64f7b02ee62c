// Which branch of a conditional a device takes.
//
// What the user says wins. Otherwise a predicate that depends on nothing but
// the partition id is evaluated, device by device. Anything else is data: then
// the longest branch is assumed, and the assumption is listed.
#ifndef TPUSIM_WORKLOADS_LOWERING_BRANCHES_H_
#define TPUSIM_WORKLOADS_LOWERING_BRANCHES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

// "NAME=k" or "NAME=longest"; NAME is a conditional's name or a glob.
using BranchOverrides = std::vector<std::pair<std::string, std::string>>;

struct BranchChoice {
  std::optional<int32_t> taken;  // nullopt: the longest
  bool overridden = false;       // by the user
};

// Error: an override by a branch that the conditional does not have.
absl::StatusOr<BranchChoice> ChooseBranch(const hlo::Instruction& conditional, int64_t partition,
                                          const BranchOverrides& overrides);

// A loop whose passes take different branches of one conditional in its body, and how often
// each: where that is assumed of the loop (hlo/rules/assumed_trips.h).
struct LoopInTurns {
  const hlo::Instruction* conditional = nullptr;
  int64_t trips = 0;
  std::vector<int64_t> of_branches;
};
// nullopt: it is not, or the user states another count or a branch. Error: as ChooseBranch.
absl::StatusOr<std::optional<LoopInTurns>> TurnsOf(const hlo::Instruction& loop, int64_t trips,
                                                   const BranchOverrides& overrides);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_BRANCHES_H_
