// A reduce of a reduce with the same operation is one reduce over the dimensions of both.
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

// If `outer` reduces a reduce with that operation, both starting from its identity, and
// nothing else uses that one: `outer` then reduces what it reduced, and true.
bool MergeWithOperand(Instruction* outer);

// A reduce over dimensions of extent one, some or all, without them; null if it has none.
Instruction* ReduceWithoutOnes(Instruction* reduce);
// A reduce of a reshape that puts in or takes out extents of one: of what was reshaped. Null
// if it is another.
Instruction* ReduceOfReshape(Instruction* reduce);

// All of these in a computation, but not of operands for which `fixed` holds. What is merged
// is removed.
bool MergeReduces(Computation* computation, const std::function<bool(const Instruction*)>& fixed);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_MERGE_REDUCES_H_
