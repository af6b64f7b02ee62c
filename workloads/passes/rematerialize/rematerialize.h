// Computes values again where keeping them takes more memory than there is.
//
// The scheduled program is asked what is live at every moment (memory_plan.h). As long as
// that is more than the TPU compiler allows itself (95 % of what programs may use, by default), a
// value that lies unread through such a moment can be dropped behind the reader before it and
// computed once more in front of the reader behind it. What that costs is the time of the
// kernel, so often as its loop runs; what it saves are its bytes, less those of operands that
// have to live longer for it. The cheapest per byte come first. (A value that is only read
// behind the moment is moved there, which costs nothing.)
//
// Then the plan is made anew, until the program fits or nothing helps any more. The copies
// are real instructions: the simulation executes them.
#ifndef TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_REMATERIALIZE_H_
#define TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_REMATERIALIZE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// The module must be scheduled and stays so; the context must have costs. `percent` of the
// usable HBM may be live; 0: as much as the chip's compiler allows. Does nothing to programs that
// fit.
absl::StatusOr<bool> Rematerialize(hlo::Module& module, const PassContext& context,
                                   int64_t percent);

// Computing a value once more, for some of its users.
//
// A value is an array that one instruction makes: its result, or one of the results of a
// fusion, of which the copy then computes nothing but that. Users read it directly or under
// other names (bitcasts), which are copied with it.
struct RecomputedValue {
  hlo::Instruction* maker = nullptr;
  int64_t leaf = 0;  // of a tuple: which of its elements
};

// Whether it gives the same whenever it is computed, and its users can be told apart: no
// collective, no custom call, nothing random, nothing in place, no loops.
bool CanBeRecomputed(const RecomputedValue& value);

// Those that read it, under whatever name; nullopt: a tuple that is not taken apart here
// has it (a result of the computation, an operand of a loop).
std::optional<std::vector<hlo::Instruction*>> ReadersOf(const RecomputedValue& value);

// Operands of the maker that it is computed from, by number.
std::vector<size_t> OperandsFor(const RecomputedValue& value);

// Adds a copy of the maker that makes this value alone.
hlo::Instruction* Recompute(const RecomputedValue& value);

// `readers` take the copy instead. Returns names that had to be copied for that, operands
// before users.
std::vector<hlo::Instruction*> Redirect(const RecomputedValue& value, hlo::Instruction* copy,
                                        const std::vector<hlo::Instruction*>& readers);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_REMATERIALIZE_H_
