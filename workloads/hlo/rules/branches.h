// The branch of a conditional that runs.
//
// What the user states is written onto the conditional, as the attribute tpusim.branch. Otherwise
// a predicate that depends on nothing but the partition id is evaluated, partition by partition.
// Anything else is data: then the longest branch is assumed.
//
// A stated branch is the only one that runs: all that asks what runs, how long or how often, asks
// here. Memory is another matter: a program has room for every branch that it may take.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_BRANCHES_H_
#define TPUSIM_WORKLOADS_HLO_RULES_BRANCHES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Whether it is the number of a branch, or "longest".
bool IsBranchOf(const Instruction& conditional, std::string_view branch);
// Writes it; whether that changed anything.
bool StateBranch(Instruction* conditional, const std::string& branch);
// Returns the stated branch, whether or not the conditional has it.
std::optional<std::string> WrittenBranch(const Instruction& conditional);

struct BranchChoice {
  std::optional<int32_t> taken;  // nullopt: the longest
  bool stated = false;
};
BranchChoice BranchOf(const Instruction& conditional, int64_t partition);

// The computations that control flow may run: `called`, without branches that are stated not to
// be taken.
std::vector<Computation*> RunBy(const Instruction& control_flow);

// A loop whose passes take different branches of one conditional in its body, and how often
// each: where that is assumed of the loop (assumed_trips.h).
struct LoopInTurns {
  const Instruction* conditional = nullptr;
  int64_t trips = 0;
  std::vector<int64_t> of_branches;
};
// nullopt: it is not, or the user states another count or a branch.
std::optional<LoopInTurns> TurnsOf(const Instruction& loop, int64_t trips);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_BRANCHES_H_
