// Merges a reduce of a reduce with the same operation into one reduce over the dimensions of both.
//
// Such pairs come from vectorised gradients: a bias is summed over what it was broadcast to,
// then over the batch. Split over devices, the first sum would be exchanged with the batch
// dimension still in it.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_MERGE_REDUCES_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_MERGE_REDUCES_H_

#include <functional>
#include <optional>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The operation of a reducer that applies one to its two parameters.
std::optional<Opcode> ReducerOperation(const Computation& reducer);
// op(x, value) is x; +0 counts for sums, as in XLA, although -0 + 0 is 0.
bool IsIdentity(Opcode op, const Instruction& value);
// Whether all elements are 0: a constant, perhaps converted, copied or broadcast.
bool IsZero(const Instruction& value);

// Makes `outer` reduce the operand of the reduce that it reduces, and returns true, if both have
// one operation, start from its identity, and nothing else uses the inner one.
bool MergeWithOperand(Instruction* outer);

// Returns a reduce without its dimensions of extent one; null if it has none.
Instruction* ReduceWithoutOnes(Instruction* reduce);
// Returns a reduce of the operand of a reshape that adds or removes extents of one; null if
// `reduce` reduces anything else.
Instruction* ReduceOfReshape(Instruction* reduce);

// Applies all of these to a computation, except to operands for which `fixed` holds, and removes
// the reduces that were merged.
bool MergeReduces(Computation* computation, const std::function<bool(const Instruction*)>& fixed);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_MERGE_REDUCES_H_
