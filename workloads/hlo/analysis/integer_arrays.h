// Evaluates operations on arrays of integers whose operands are known.
//
// One element of an elementwise operation is integer_arithmetic.h; here are the operations that
// move elements or combine many of them: reverse, transpose, pad, dynamic-update-slice, select,
// clamp, gather, scatter, reduce, reduce-window and sort.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_INTEGER_ARRAYS_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_INTEGER_ARRAYS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The elements of an array in row-major order, or an index with one number per dimension.
using Integers = std::vector<int64_t>;

// Calls `call` with the index of each element of `shape`, in row-major order.
void ForEachIndex(const Shape& shape, const std::function<void(const Integers&)>& call);
// The position in row-major order of the element at `index`.
size_t FlatIndex(const Shape& shape, const Integers& index);

// Returns the results of an instruction, one per leaf of its shape, computed from the elements of
// all operands. nullopt: the opcode or this form of it has no rule, or the computation that it
// calls has an instruction without one.
std::optional<std::vector<Integers>> EvaluateIntegers(const Instruction& instruction,
                                                      const std::vector<Integers>& operands);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_INTEGER_ARRAYS_H_
