#include "workloads/hlo/analysis/execution.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {

namespace {

// Which part of an array on the host is meant: whoever moves it moves that part.
bool IsHostView(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kFusion: {
      const std::vector<Instruction*> members = i.called()[0]->instructions();
      return std::all_of(members.begin(), members.end(), [](const Instruction* m) {
        return m->opcode() == Opcode::kParameter || m->opcode() == Opcode::kConstant ||
               m->opcode() == Opcode::kBitcast || IsHostView(*m);
      });
    }
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<Execution> ExecutionOf(const Instruction& i) {
  if (OnHost(i.shape())) {
    if (IsHostView(i)) return Execution::kNothing;
    if (i.opcode() == Opcode::kDynamicUpdateSlice) return Execution::kTransfer;
  }
  switch (i.opcode()) {
    case Opcode::kParameter:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kBitcast:
    case Opcode::kConstant:
    case Opcode::kOptBarrier:
    case Opcode::kAfterAll:
    case Opcode::kAddDependency:
    case Opcode::kDomain:
    case Opcode::kAsyncUpdate:
      return Execution::kNothing;
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
    case Opcode::kGetDimensionSize:
      return Execution::kScalar;
    case Opcode::kWhile:
      return Execution::kLoop;
    case Opcode::kConditional:
      return Execution::kBranch;
    case Opcode::kCall:
      return Execution::kCall;
    case Opcode::kAllReduce:
    case Opcode::kAllGather:
    case Opcode::kReduceScatter:
    case Opcode::kAllToAll:
    case Opcode::kRaggedAllToAll:
    case Opcode::kCollectivePermute:
      return Execution::kCollective;
    case Opcode::kAllReduceStart:
    case Opcode::kAllGatherStart:
    case Opcode::kCollectivePermuteStart:
      return Execution::kStart;
    case Opcode::kAsyncStart:
      return IsCollective(WrappedBy(i).opcode()) ? Execution::kStart : Execution::kCopyStart;
    case Opcode::kCopyStart:
      return Execution::kCopyStart;
    case Opcode::kAllReduceDone:
    case Opcode::kAllGatherDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kAsyncDone:
    case Opcode::kCopyDone:
      return Execution::kDone;
    case Opcode::kCustomCall:
      // Reserves memory and leaves it as it is.
      if (i.attrs().custom_call_target() == kAllocateBuffer) {
        return Execution::kNothing;
      }
      return PlacementOf(i) ? Execution::kTransfer : Execution::kKernel;
    case Opcode::kFusion:
    case Opcode::kDot:
    case Opcode::kRaggedDot:
    case Opcode::kConvolution:
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
    case Opcode::kMap:
    case Opcode::kBroadcast:
    case Opcode::kIota:
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kPad:
    case Opcode::kConcatenate:
    case Opcode::kReverse:
    case Opcode::kCopy:
    case Opcode::kBitcastConvert:
    case Opcode::kGather:
    case Opcode::kScatter:
    case Opcode::kSort:
    case Opcode::kTopk:
    case Opcode::kRngBitGenerator:
    case Opcode::kFft:
    case Opcode::kCholesky:
    case Opcode::kTriangularSolve:
      return Execution::kKernel;
    default:
      break;
  }
  if (IsElementwise(i.opcode()) && i.shape().IsArray()) {
    const bool index = i.shape().IsScalar() && !IsFloating(i.shape().element_type) &&
                       !IsComplex(i.shape().element_type);
    return index ? Execution::kScalar : Execution::kKernel;
  }
  return NoRule(fmt::format("no rule to execute {}: op '{}' is not supported", i.Describe(),
                            OpcodeName(i.opcode())));
}

}  // namespace tpusim::hlo
