// Recomputes values where keeping them takes more memory than there is.
//
// The memory plan (memory_plan.h) says what is live at every moment. While that is more than the
// TPU compiler allows (95 % of what programs may use, by default), a value that is not read around
// such a moment can be freed behind the reader before it and computed once more in front of the
// reader behind it. The cost is the time of the kernel, as often as its loop runs; the gain is its
// bytes, less those of operands that have to live longer for it. The cheapest per byte come first.
// (A value that is only read behind the moment is moved there, at no cost.)
//
// Then the plan is made anew, until the program fits or nothing helps any more. The copies are real
// instructions: the simulation executes them.
//
// The room answers which values are computed again so that a program fits; `Rematerialize` is its
// entry point. What jax.checkpoint recomputes is the program's own choice (remat/policies.h).
#ifndef TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_REMATERIALIZE_H_
#define TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_REMATERIALIZE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Recomputes values until `percent` of the usable HBM, or with 0 as much as the chip's compiler
// allows, suffices; returns whether anything changed. The module must be scheduled and stays so;
// the context must have costs.
absl::StatusOr<bool> Rematerialize(hlo::Module& module, const PassContext& context,
                                   int64_t percent);

// A value to compute once more for some of its users: an array that one instruction makes, which is
// its result or one of the results of a fusion. A copy of a fusion computes only that result. Users
// read the value directly or under other names (bitcasts), which are copied with it.
struct RecomputedValue {
  hlo::Instruction* maker = nullptr;
  int64_t leaf = 0;  // the element, if the result is a tuple
};

// Whether the value is the same whenever it is computed, and its users are known: its maker is no
// collective, custom call, random number generator, update in place or loop.
bool CanBeRecomputed(const RecomputedValue& value);

// Returns the instructions that read the value, under any name. nullopt: it is an element of a
// tuple that is not taken apart here (a result of the computation, an operand of a loop).
std::optional<std::vector<hlo::Instruction*>> ReadersOf(const RecomputedValue& value);

// Returns the operands of the maker that the value is computed from, by number.
std::vector<size_t> OperandsFor(const RecomputedValue& value);

// Adds a copy of the maker that makes this value alone.
hlo::Instruction* Recompute(const RecomputedValue& value);

// Makes `readers` take the copy. Returns the names that were copied for that, operands before
// users.
std::vector<hlo::Instruction*> Redirect(const RecomputedValue& value, hlo::Instruction* copy,
                                        const std::vector<hlo::Instruction*>& readers);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_REMATERIALIZE_H_
