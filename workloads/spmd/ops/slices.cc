// Slices: sizes of dimensions that are taken whole shrink with the shard.
#include "workloads/hlo/attributes.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {

using hlo::Instruction;

absl::StatusOr<Instruction*> Slice(const LocalOp& op) {
  Instruction* slice = SameOpOn(op, op.operands);
  std::vector<hlo::SliceDim> dims = hlo::GetSlice(op.global);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (op.global.shape().dims[d] == op.global.operand(0)->shape().dims[d]) {
      dims[d] = {0, op.shape.dims[d], 1};
    }
  }
  hlo::SetSlice(slice, dims);
  return slice;
}

// A start index of a dimension that is taken whole is clamped to 0, globally as
// well as locally, so the indices stay.
absl::StatusOr<Instruction*> DynamicSlice(const LocalOp& op) {
  Instruction* slice = SameOpOn(op, op.operands);
  hlo::SetDynamicSliceSizes(slice, op.shape.dims);
  return slice;
}

}  // namespace tpusim::spmd::ops
