// Computing a value once more, for some of its users.
//
// A value is an array that one instruction makes: its result, or one of the results of a
// fusion, of which the copy then computes nothing but that. Users read it directly or under
// other names (bitcasts), which are copied with it.
#ifndef TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_RECOMPUTE_H_
#define TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_RECOMPUTE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

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

#endif  // TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_RECOMPUTE_H_
