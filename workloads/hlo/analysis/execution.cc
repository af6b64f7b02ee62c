#include "workloads/hlo/analysis/execution.h"

#include <fmt/format.h>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/host_transfer.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/shape_proto.h"
#include "workloads/hlo/rules/host_callback.h"

namespace tpusim::hlo {

namespace {

// Whether an access to an array in host memory only names a part of it or updates it there.
bool StaysOnHost(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
      return OnHost(i.shape());
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<Execution> ExecutionOf(const Instruction& i) {
  const Opcode opcode = i.opcode();
  if (!IsAsyncStart(opcode) && HostTransferOf(i)) return Execution::kTransfer;
  if (StaysOnHost(i)) return Execution::kNothing;
  if (IsFree(opcode)) return Execution::kNothing;
  if (RunsOnScalarCore(opcode)) return Execution::kScalar;
  if (opcode == Opcode::kWhile) return Execution::kLoop;
  if (opcode == Opcode::kConditional) return Execution::kBranch;
  if (opcode == Opcode::kCall) return Execution::kCall;
  if (IsAsyncDone(opcode)) return Execution::kDone;
  if (IsAsyncStart(opcode)) {
    return IsCollective(WrappedBy(i).opcode()) ? Execution::kStart : Execution::kCopyStart;
  }
  if (IsCollective(opcode)) return Execution::kCollective;
  if (opcode == Opcode::kCustomCall) {
    // They reserve memory, or say what lies in it, and leave it as it is.
    if (IsCallOf(i, kAllocateBuffer) || IsCallOf(i, kConcatBitcast)) return Execution::kNothing;
    // The report names it (kernels::FreeHostCallbacks), unless its cost is stated, which counts.
    if (IsCallOf(i, kHostExecute) && OnHost(i.shape()) && !annotations::kKernelCost.On(i)) {
      return Execution::kNothing;
    }
    return PlacementOf(i) ? Execution::kTransfer : Execution::kKernel;
  }
  if (RunsAsKernel(opcode)) return Execution::kKernel;
  if (IsElementwise(opcode) && i.shape().IsArray()) {
    const bool scalar = i.shape().IsScalar() || (i.shape().ElementCount() == 1 &&
                                                 IsScalarSpace(i.shape().layout.memory_space));
    return scalar ? Execution::kScalar : Execution::kKernel;
  }
  return NoRule(fmt::format("no rule to execute {}: op '{}' is not supported", i.Describe(),
                            OpcodeName(i.opcode())));
}

}  // namespace tpusim::hlo
