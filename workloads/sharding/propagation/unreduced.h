// Partial sums that the program leaves unreduced pass through linear ops.
//
// A value that is unreduced over an axis is the sum of what the devices along it hold.
// Twice the value is twice every part: a linear op works on parts, and they are added up
// once, where the program asks for the sum. All that is not linear (a sine, a product of
// two such values, a sum with a value that is whole) gets the sum.
//
// The parts of other values make their largest or least together (Reduction). What only moves
// elements passes on such parts, and so does the same reduction; all else gets the whole value.
#ifndef TPUSIM_WORKLOADS_SHARDING_PROPAGATION_UNREDUCED_H_
#define TPUSIM_WORKLOADS_SHARDING_PROPAGATION_UNREDUCED_H_

#include <vector>

#include "workloads/hlo/ir/ir.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/sharding/propagation/propagate.h"
#include "workloads/sharding/propagation/propagation_graph.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::sharding {

// The operation that makes a value of its parts, and what it makes; others than minimum and maximum
// count as sums.
hlo::Opcode OpcodeOf(Reduction reduction);
Reduction ReductionOf(hlo::Opcode opcode);

// Whether the parts of the result come from parts of the operands marked in `partial` (one
// per operand) and all of the others, where the parts make up values by `reduction`.
bool PassesParts(const hlo::Instruction& op, const std::vector<char>& partial,
                 Reduction reduction);

// The operands that are unreduced over the very axes over which the result of `op` is;
// none if that is no linear op of theirs.
std::vector<char> PartialOperands(const ShardedModule& sharded, const hlo::Instruction& op);

// Carries unreduced what enters a loop and comes out of its body unreduced.
void CarryUnreduced(PropagationGraph& graph);
// Results of linear ops stay unreduced as long as all of their users can take them: linear
// ops and sharding constraints.
void PassUnreduced(ShardedModule& sharded);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_PROPAGATION_UNREDUCED_H_
