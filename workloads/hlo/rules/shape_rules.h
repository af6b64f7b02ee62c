// Shape rules, one per opcode: what op_rules.cc lists.
//
// Private to this folder. A rule checks the operands and attributes of one
// instruction and returns the shape that they imply; `OwnType` and the
// instruction's own shape fill in what they leave open.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_SHAPE_RULES_H_
#define TPUSIM_WORKLOADS_HLO_RULES_SHAPE_RULES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ir.h"

// Returns a user error with a formatted message unless the condition holds.
#define TPUSIM_REQUIRE(condition, ...) \
  if (!(condition)) return ::tpusim::UserError(fmt::format(__VA_ARGS__))

namespace tpusim::hlo::shape_rules {

using Dims = std::vector<int64_t>;
using Result = absl::StatusOr<Shape>;
using Rule = Result(const Instruction&);

inline bool InRange(int64_t d, int64_t rank) { return d >= 0 && d < rank; }
// Every element a dimension of `rank`, none twice.
bool AreDims(const Dims& dims, int64_t rank);
bool Contains(const Dims& dims, int64_t d);

inline const Shape& In(const Instruction& i, size_t n) { return i.operand(n)->shape(); }
inline PrimitiveType OwnType(const Instruction& i) { return i.shape().element_type; }
// One shape, or a tuple of several: how variadic ops return.
Shape OneOrTuple(std::vector<Shape> shapes);
std::vector<Shape> OperandShapes(const Instruction& i, size_t count);
absl::Status RequireArrays(const Instruction& i);
// Operands [first, end) are integer scalars, or (older form) one vector with
// `count` elements.
absl::Status CheckIndices(const Instruction& i, size_t first, int64_t count);
// Equal, or both floating.
bool Compatible(PrimitiveType a, PrimitiveType b);

// ---- Elementwise (shape_elementwise.cc) ------------------------------------
Rule Elementwise;

// ---- Rearrangements and pieces (shape_arrays.cc) ---------------------------
Rule Broadcast, Reshape, Bitcast, BitcastConvert, Transpose, Reverse, Slice, DynamicSlice,
    DynamicUpdateSlice, Concatenate, Pad, Iota, GetDimensionSize, SetDimensionSize;

// ---- Products, transforms, solvers, random bits (shape_algebra.cc) ---------
Rule Dot, RaggedDot, ScaledDot, Convolution, Fft, Cholesky, TriangularSolve, Rng, RngBitGenerator,
    RngState;

// ---- Scalar computations over arrays (shape_reductions.cc) -----------------
absl::StatusOr<Dims> WindowedDims(const Dims& bounds, const std::vector<WindowDim>& window);
Rule Reduce, ReduceWindow, SelectAndScatter, Sort, Map, TopK;

// ---- Indexed access (shape_indexed.cc) -------------------------------------
Rule Gather, Scatter;

// ---- Collectives (shape_collectives.cc) ------------------------------------
// The results are the operands: all-reduce, collective-broadcast.
Rule SameAsOperands;
Rule AllReduce, AllReduceStart, AllReduceDone, AllGather, AllGatherStart, ReduceScatter, AllToAll,
    RaggedAllToAll, CollectivePermute, CollectivePermuteStart;

// ---- What runs beside the program (shape_async.cc) -------------------------
Rule AsyncStart;
// async-update: the tuple that it is given.
Rule AsyncUpdate;
// Element 1 of the start's tuple: async-done, all-gather-done,
// collective-permute-done.
Rule DoneOfSecond;
Rule CopyStart, CopyDone, Send, SendDone, Recv, RecvDone, Infeed, Outfeed, AfterAll;

}  // namespace tpusim::hlo::shape_rules

#endif  // TPUSIM_WORKLOADS_HLO_RULES_SHAPE_RULES_H_
