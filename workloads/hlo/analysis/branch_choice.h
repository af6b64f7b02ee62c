// Answers which branch of a conditional each partition takes.
//
// What the user states is written onto the conditional (rules/branches.h). Otherwise a selector
// that follows from constants and the partition is evaluated. Anything else is data: then the
// longest branch is assumed.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_BRANCH_CHOICE_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_BRANCH_CHOICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/hlo/analysis/known_values.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

struct BranchChoice {
  std::optional<int32_t> taken;  // nullopt: the longest
  bool stated = false;
};
BranchChoice BranchOf(const Instruction& conditional, int64_t partition, const KnownValues& values);

// A loop whose iterations take different branches of one conditional in its body, and how often
// each, where that is assumed of the loop (rules/assumed_trips.h).
struct LoopInTurns {
  const Instruction* conditional = nullptr;
  int64_t trips = 0;
  std::vector<int64_t> of_branches;
};
// nullopt: nothing of that kind is assumed, or the user states another count or a branch.
std::optional<LoopInTurns> TurnsOf(const Instruction& loop, int64_t trips,
                                   const KnownValues& values);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_BRANCH_CHOICE_H_
