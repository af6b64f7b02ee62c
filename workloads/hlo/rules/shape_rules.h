// Shape rules, one per opcode: what shape_inference.cc looks up.
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
Result Elementwise(const Instruction& i);

// ---- Rearrangements and pieces (shape_arrays.cc) ---------------------------
Result Broadcast(const Instruction& i);
Result Reshape(const Instruction& i);
Result Bitcast(const Instruction& i);
Result BitcastConvert(const Instruction& i);
Result Transpose(const Instruction& i);
Result Reverse(const Instruction& i);
Result Slice(const Instruction& i);
Result DynamicSlice(const Instruction& i);
Result DynamicUpdateSlice(const Instruction& i);
Result Concatenate(const Instruction& i);
Result Pad(const Instruction& i);
Result Iota(const Instruction& i);
Result GetDimensionSize(const Instruction& i);
Result SetDimensionSize(const Instruction& i);

// ---- Products, transforms, solvers, random bits (shape_algebra.cc) ---------
Result Dot(const Instruction& i);
Result RaggedDot(const Instruction& i);
Result ScaledDot(const Instruction& i);
Result Convolution(const Instruction& i);
Result Fft(const Instruction& i);
Result Cholesky(const Instruction& i);
Result TriangularSolve(const Instruction& i);
Result Rng(const Instruction& i);
Result RngBitGenerator(const Instruction& i);
Result RngState(const Instruction& i);

// ---- Scalar computations over arrays (shape_reductions.cc) -----------------
absl::StatusOr<Dims> WindowedDims(const Dims& bounds, const std::vector<WindowDim>& window);
Result Reduce(const Instruction& i);
Result ReduceWindow(const Instruction& i);
Result SelectAndScatter(const Instruction& i);
Result Sort(const Instruction& i);
Result Map(const Instruction& i);
Result TopK(const Instruction& i);

// ---- Indexed access (shape_indexed.cc) -------------------------------------
Result Gather(const Instruction& i);
Result Scatter(const Instruction& i);

// ---- Collectives (shape_collectives.cc) ------------------------------------
// The results are the operands: all-reduce, collective-broadcast.
Result SameAsOperands(const Instruction& i);
Result AllReduce(const Instruction& i);
Result AllReduceStart(const Instruction& i);
Result AllReduceDone(const Instruction& i);
Result AllGather(const Instruction& i);
Result AllGatherStart(const Instruction& i);
Result ReduceScatter(const Instruction& i);
Result AllToAll(const Instruction& i);
Result RaggedAllToAll(const Instruction& i);
Result CollectivePermute(const Instruction& i);
Result CollectivePermuteStart(const Instruction& i);

// ---- What runs beside the program (shape_async.cc) -------------------------
Result AsyncStart(const Instruction& i);
// async-update: the tuple that it is given.
Result AsyncUpdate(const Instruction& i);
// Element 1 of the start's tuple: async-done, all-gather-done,
// collective-permute-done.
Result DoneOfSecond(const Instruction& i);
Result CopyStart(const Instruction& i);
Result CopyDone(const Instruction& i);
Result Send(const Instruction& i);
Result SendDone(const Instruction& i);
Result Recv(const Instruction& i);
Result RecvDone(const Instruction& i);
Result Infeed(const Instruction& i);
Result Outfeed(const Instruction& i);
Result AfterAll(const Instruction& i);

}  // namespace tpusim::hlo::shape_rules

#endif  // TPUSIM_WORKLOADS_HLO_RULES_SHAPE_RULES_H_
