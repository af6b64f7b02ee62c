// Finds the instruction that computes a value, and the array that an instruction only names.
//
// Copies, optimization barriers, bitcasts to the same shape, moves between memories, sharding
// constraints, roundings to the precision that the type has anyway, and tuples that are taken apart
// again leave a *value* as it is: two instructions with one underlying instruction are one value,
// perhaps in several buffers. Of these, bitcasts, barriers and domains leave it in its *array* as
// well: their result is another name of the operand (which arrays share a buffer otherwise is a
// question for alias.h).
//
// A loop therefore keeps an element of its carry in one of two ways: its body hands the array on,
// or each iteration has the same value.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_UNDERLYING_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_UNDERLYING_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Targets of custom calls that constrain a sharding and return their operand.
inline constexpr char kShardingConstraint[] = "Sharding";
inline constexpr char kResultShardingConstraint[] = "xla.sdy.FuncResultSharding";
inline constexpr char kPropagationBarrier[] = "xla.sdy.PropagationBarrier";

// Whether the result is the array that the operand is: of a bitcast, a barrier or a domain. False
// for loops and asynchronous operations, which may put another one in its place.
bool NamesOperand(const Instruction& instruction);
// Whether the instruction reads no array but only names them: NamesOperand, a tuple, or an element.
bool OnlyNames(const Instruction& instruction);

// Whether the result has the elements of the only operand, in an array of the same shape.
bool KeepsValue(const Instruction& instruction);

// The instruction that computes the value. `barriers`, if it is not null, receives the optimization
// barriers that were looked through.
Instruction* Underlying(Instruction* value, std::vector<Instruction*>* barriers = nullptr);
const Instruction* Underlying(const Instruction* value);
// The instruction that computes the value, in whatever computation: elements of a carry that no
// iteration changes are followed to what the loop begins with, and arguments to the only call.
// `caller_of` returns the only instruction that calls a computation; null: there are several, or
// none.
using CallerOf = std::function<const Instruction*(const Computation&)>;
const Instruction* Underlying(const Instruction* value, const CallerOf& caller_of);

// Element `index` of a tuple that an instruction of the same computation puts together, looked for
// through barriers and copies; null if none does.
Instruction* TupleElement(Instruction* tuple, int64_t index);
const Instruction* TupleElement(const Instruction* tuple, int64_t index);

// The number of the element if `read` takes one from a tuple that is a parameter of `computation`,
// as the body and the condition of a loop read what it carries; else -1.
int64_t CarriedElement(const Instruction& read, const Computation& computation);

// Whether the body of a loop returns element `index` of the carry as the array that it got, which
// the loop neither copies nor writes.
bool ForwardsElement(const Instruction& loop, int64_t index);
// Whether element `index` of the carry has the same value in all iterations, be it in a copy.
bool IsInvariant(const Instruction& loop, int64_t index);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_UNDERLYING_H_
