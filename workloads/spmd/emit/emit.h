// Small pieces of HLO that several families need: index arithmetic on s32 scalars
// and arrays, slices along one dimension, selections.
#ifndef TPUSIM_WORKLOADS_SPMD_EMIT_EMIT_H_
#define TPUSIM_WORKLOADS_SPMD_EMIT_EMIT_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "workloads/spmd/emit/builder.h"

namespace tpusim::spmd {

hlo::Instruction* Binary(Builder& builder, hlo::Opcode opcode, hlo::Instruction* a,
                         hlo::Instruction* b);
// "EQ", "LT", ...; the result has the shape of `a`.
hlo::Instruction* Compare(Builder& builder, std::string_view direction, hlo::Instruction* a,
                          hlo::Instruction* b);
// A scalar, or an array whose dimensions become `to` of the result, made as large as `dims`.
hlo::Instruction* Spread(Builder& builder, hlo::Instruction* value,
                         const std::vector<int64_t>& dims, const std::vector<int64_t>& to = {});
// `pred` may be a scalar, `otherwise` too.
hlo::Instruction* Select(Builder& builder, hlo::Instruction* pred, hlo::Instruction* value,
                         hlo::Instruction* otherwise);
hlo::Instruction* Convert(Builder& builder, hlo::Instruction* value, hlo::PrimitiveType type);
// An index, s32 from then on, kept within [0, high].
hlo::Instruction* ClampIndex(Builder& builder, hlo::Instruction* index, int64_t high);
// s32: a plus a number.
hlo::Instruction* Plus(Builder& builder, hlo::Instruction* a, int64_t b);
// [start, start + size * stride) by `stride` of one dimension, the others whole.
hlo::Instruction* SliceDim(Builder& builder, hlo::Instruction* value, int64_t dim, int64_t start,
                           int64_t limit, int64_t stride = 1);
// `size` elements of one dimension from the s32[] `start` on.
hlo::Instruction* DynamicSliceDim(Builder& builder, hlo::Instruction* value, int64_t dim,
                                  hlo::Instruction* start, int64_t size);
hlo::Instruction* PadDim(Builder& builder, hlo::Instruction* value, int64_t dim, int64_t low,
                         int64_t high, hlo::Instruction* fill);
// A dimension of one element repeated `size` times.
hlo::Instruction* Repeat(Builder& builder, hlo::Instruction* value, int64_t dim, int64_t size);
// s32: 0, 1, 2, ... along `dim`.
hlo::Instruction* IotaAlong(Builder& builder, const std::vector<int64_t>& dims, int64_t dim);

// One device's part of an iota along `dim`, which is split by `axes`: 0, 1, 2, ... counted
// over the whole dimension.
hlo::Instruction* IotaShard(Builder& builder, const hlo::Shape& shape, int64_t dim,
                            const sharding::Axes& axes);

// The smallest value of a type (minus infinity if it has one), or the largest.
hlo::Instruction* Extreme(Builder& builder, hlo::PrimitiveType type, bool largest);
// Running sums: s32[n] -> s32[n], element i the sum of the elements up to and with i.
hlo::Instruction* RunningSum(Builder& builder, hlo::Instruction* values);

// s32[]: the entry of this device's shard number along the axes.
hlo::Instruction* EntryOfShard(Builder& builder, const sharding::Axes& axes,
                               const std::vector<int64_t>& table);
// pred[]: this device has that shard along the axes.
hlo::Instruction* HasShard(Builder& builder, const sharding::Axes& axes, int64_t shard);
// Both; the second if there is no first yet.
hlo::Instruction* And(Builder& builder, hlo::Instruction* a, hlo::Instruction* b);
// `value` from `start` of dimension `dim` on, in an array of `size` elements that are zero
// elsewhere. `start` makes its instruction when it is needed.
template <typename Start>
hlo::Instruction* AmongZeros(Builder& builder, hlo::Instruction* value, int64_t dim, int64_t size,
                             hlo::Instruction* zero, const Start& start) {
  hlo::Shape wide = value->shape();
  wide.dims[dim] = size;
  std::vector<hlo::Instruction*> operands(wide.rank() + 2,
                                          builder.Constant(hlo::PrimitiveType::kS32, 0));
  operands[0] = Spread(builder, zero, wide.dims);
  operands[1] = value;
  operands[dim + 2] = start();
  return builder.Add(hlo::Opcode::kDynamicUpdateSlice, wide, operands);
}

// The operation that combines partial results of an op.
struct Combiner {
  hlo::Opcode opcode = hlo::Opcode::kAdd;
  hlo::PrimitiveType type = hlo::PrimitiveType::kInvalid;
};
// Sums of values of which all but one are zero: `or` for booleans, else `add`.
Combiner SumOf(hlo::PrimitiveType type);

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_EMIT_EMIT_H_
