// In which order updates in place and the other readers of what they change can run.
//
// Dynamic-update-slices and scatters overwrite an operand, loops the initial values that
// their bodies replace. One that runs after all others that read the old contents can have
// their buffer; one that has to run before some of them needs a copy. The order here lets
// them wait for as long as anything else can run. It is only one of those that are possible, but
// because all decisions follow one order, they never contradict each other.
#ifndef TPUSIM_WORKLOADS_PASSES_COPIES_UPDATE_ORDER_H_
#define TPUSIM_WORKLOADS_PASSES_COPIES_UPDATE_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

// An operand that an instruction overwrites: that of its own, or of the tuple that a loop
// starts from.
struct Overwrite {
  hlo::Instruction* user = nullptr;
  size_t operand = 0;
  const hlo::Instruction* value() const { return user->operand(operand); }
};
std::vector<Overwrite> OverwritesOf(hlo::Instruction& instruction);

// The place of every instruction. Time in proportion to instructions and reads, but for
// the sorting of what is ready.
std::unordered_map<const hlo::Instruction*, int64_t> OrderWithLateUpdates(
    const hlo::Computation& computation, const hlo::AliasAnalysis& storage);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COPIES_UPDATE_ORDER_H_
