// Finds the arrays that a loop reads or writes slot by slot.
//
// What a scan goes over (its xs) lies in an array with a slot per iteration, of which each
// iteration reads one; what it stacks (its ys, what it keeps for its gradient) is an element of the
// carry into which each iteration writes a slot. A loop that writes every slot once leaves nothing
// of what was there before.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_LOOP_STACKS_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_LOOP_STACKS_H_

#include <cstdint>
#include <optional>

#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// One slot of an array: extent 1 along one dimension, all of the array along the others.
struct SlotAccess {
  Instruction* access = nullptr;  // the dynamic-slice or dynamic-update-slice
  int64_t dimension = -1;         // -1: it takes all of the array
  Instruction* index = nullptr;   // along that dimension; null if there is none
};
// nullopt: the instruction is another operation, or takes another part of the array.
std::optional<SlotAccess> SlotOf(Instruction* access);

// Whether the iterations take every slot once, from the first on or from the last.
enum class SlotOrder { kNone, kAscending, kDescending };
SlotOrder OrderOf(const SlotAccess& slot, const LoopFacts& loop);

// An element of the carry of which each iteration writes a slot, and which the body returns.
struct LoopStack {
  int64_t element = -1;
  SlotAccess slot;         // of a dynamic-update-slice
  bool only_written = false;  // nothing else reads the element, in the body or the condition
};
std::optional<LoopStack> StackOf(const Instruction& loop, int64_t element);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_LOOP_STACKS_H_
