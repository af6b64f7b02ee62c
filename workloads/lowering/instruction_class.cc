#include "workloads/lowering/instruction_class.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/lowering/transfers.h"
#include "workloads/passes/collectives/async_collectives.h"
#include "workloads/passes/loops/sink_initializers.h"
#include "workloads/passes/memory/placement.h"

namespace tpusim::lowering {

using hlo::Instruction;
using hlo::Opcode;

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

absl::StatusOr<InstructionClass> Classify(const Instruction& i) {
  if (passes::OnHost(i.shape())) {
    if (IsHostView(i)) return InstructionClass::kNothing;
    if (i.opcode() == Opcode::kDynamicUpdateSlice) return InstructionClass::kTransfer;
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
      return InstructionClass::kNothing;
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
    case Opcode::kGetDimensionSize:
      return InstructionClass::kScalar;
    case Opcode::kWhile:
      return InstructionClass::kLoop;
    case Opcode::kConditional:
      return InstructionClass::kBranch;
    case Opcode::kCall:
      return InstructionClass::kCall;
    case Opcode::kAllReduce:
    case Opcode::kAllGather:
    case Opcode::kReduceScatter:
    case Opcode::kAllToAll:
    case Opcode::kRaggedAllToAll:
    case Opcode::kCollectivePermute:
      return InstructionClass::kCollective;
    case Opcode::kAllReduceStart:
    case Opcode::kAllGatherStart:
    case Opcode::kCollectivePermuteStart:
      return InstructionClass::kStart;
    case Opcode::kAsyncStart:
      return hlo::IsCollective(WrappedBy(i).opcode()) ? InstructionClass::kStart
                                                      : InstructionClass::kCopyStart;
    case Opcode::kCopyStart:
      return InstructionClass::kCopyStart;
    case Opcode::kAllReduceDone:
    case Opcode::kAllGatherDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kAsyncDone:
    case Opcode::kCopyDone:
      return InstructionClass::kDone;
    case Opcode::kCustomCall:
      // Reserves memory and leaves it as it is.
      if (i.attrs().custom_call_target() == passes::kAllocateBuffer) {
        return InstructionClass::kNothing;
      }
      return passes::PlacementOf(i) ? InstructionClass::kTransfer : InstructionClass::kKernel;
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
      return InstructionClass::kKernel;
    default:
      break;
  }
  if (hlo::IsElementwise(i.opcode()) && i.shape().IsArray()) {
    const bool index = i.shape().IsScalar() && !hlo::IsFloating(i.shape().element_type) &&
                       !hlo::IsComplex(i.shape().element_type);
    return index ? InstructionClass::kScalar : InstructionClass::kKernel;
  }
  return NoRule(fmt::format("no rule to execute {}: op '{}' is not supported", i.Describe(),
                            hlo::OpcodeName(i.opcode())));
}

isa::Block ScalarBlock(const Instruction& i) {
  isa::Block block;
  // One slot of the scalar unit and its latency; division is a loop there.
  const bool divides = i.opcode() == Opcode::kDivide || i.opcode() == Opcode::kRemainder;
  block.scalar = Cycles(divides ? 32 : 2);
  return block;
}

std::string AxesOf(const Instruction& collective) {
  return hlo::FrontendAttribute(collective, "tpusim.axes").value_or("");
}

absl::StatusOr<collectives::CollectiveRequest> RequestOf(
    const Instruction& instruction, const std::vector<int64_t>& device_of_partition) {
  const Instruction& i = WrappedBy(instruction);
  collectives::CollectiveRequest request;
  request.name = instruction.name();
  request.axes = AxesOf(i);
  request.sparse_core = passes::IsOffLoaded(instruction);
  const auto devices = static_cast<int64_t>(device_of_partition.size());
  const auto device = [&](int64_t partition) -> absl::StatusOr<int64_t> {
    if (partition < 0 || partition >= devices) {
      return UserError(fmt::format("{} names partition {}, but there are only {}", i.Describe(),
                                   partition, devices));
    }
    return device_of_partition[static_cast<size_t>(partition)];
  };
  for (const Instruction* operand : i.operands()) {
    request.operand_bytes += operand->shape().ByteSize();
    // The other operands of a ragged all-to-all are the result's buffer and sizes.
    if (i.opcode() == Opcode::kRaggedAllToAll) break;
  }
  const hlo::Shape& shape = *hlo::Leaves(i.operand(0)->shape())[0];
  request.element_bytes = std::max<int64_t>(1, hlo::BitWidth(shape.element_type) / 8);
  switch (i.opcode()) {
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
      request.kind = collectives::CollectiveKind::kAllReduce;
      break;
    case Opcode::kAllGather:
    case Opcode::kAllGatherStart:
      request.kind = collectives::CollectiveKind::kAllGather;
      break;
    case Opcode::kReduceScatter:
      request.kind = collectives::CollectiveKind::kReduceScatter;
      break;
    case Opcode::kAllToAll:
    case Opcode::kRaggedAllToAll:
      request.kind = collectives::CollectiveKind::kAllToAll;
      break;
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
      request.kind = collectives::CollectiveKind::kPermute;
      break;
    default:
      return NoRule(fmt::format("no rule to execute {}: '{}' is not supported", i.Describe(),
                                hlo::OpcodeName(i.opcode())));
  }
  if ((request.kind == collectives::CollectiveKind::kAllGather ||
       request.kind == collectives::CollectiveKind::kReduceScatter) &&
      i.attrs().dimensions_size() > 0) {
    request.minor_dimension =
        shape.rank() > 1 && i.attrs().dimensions(0) == hlo::MinorDimension(shape);
  }
  if (request.kind == collectives::CollectiveKind::kPermute) {
    for (const auto& pair : i.attrs().source_target_pairs()) {
      ASSIGN_OR_RETURN(const int64_t source, device(pair.source()));
      ASSIGN_OR_RETURN(const int64_t target, device(pair.target()));
      request.pairs.emplace_back(source, target);
    }
    return request;
  }
  if (const auto sizes = hlo::RaggedSizes(i)) {
    const hlo::Shape& rows = i.operand(0)->shape();
    const Bytes row(rows.ByteSize().value() / std::max<int64_t>(1, rows.dims[0]));
    request.operand_bytes = Bytes(0);
    for (int64_t size : *sizes) {
      request.parts.push_back(row * size);
      request.operand_bytes += request.parts.back();
    }
  }
  return request;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> GroupsOf(
    const Instruction& collective, const std::vector<int64_t>& device_of_partition) {
  // Partitions that exist, as ReplicaGroups says.
  ASSIGN_OR_RETURN(
      auto groups,
      hlo::ReplicaGroups(WrappedBy(collective), static_cast<int64_t>(device_of_partition.size())));
  for (std::vector<int64_t>& group : groups) {
    for (int64_t& member : group) member = device_of_partition[member];
  }
  return groups;
}

std::string CategoryOf(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kDot:
    case Opcode::kRaggedDot:
    case Opcode::kConvolution:
      return "convolution fusion";
    case Opcode::kFusion:
      if (i.attrs().fusion_kind() == "kOutput") return "convolution fusion";
      return i.attrs().fusion_kind() == "kInput" ? "input fusion" : "loop fusion";
    case Opcode::kTranspose:
    case Opcode::kCopy:
    case Opcode::kReshape:
      return "data formatting";
    default:
      return hlo::IsElementwise(i.opcode()) ? "non-fusion elementwise"
                                            : std::string(hlo::OpcodeName(i.opcode()));
  }
}

}  // namespace tpusim::lowering
