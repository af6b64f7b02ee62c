// Values out of nothing: each device makes its own part.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {

using hlo::Instruction;

absl::StatusOr<Instruction*> Iota(const LocalOp& op) {
  const int64_t dim = hlo::OnlyDimension(op.global);
  return IotaShard(op.builder, op.shape, dim, op.choice.results[0].dims[dim].axes);
}

}  // namespace tpusim::spmd::ops
