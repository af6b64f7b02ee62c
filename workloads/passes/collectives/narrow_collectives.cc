// Collectives that leave less than a row to a device become all-reduces.

#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/plain_operations.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/reasons.h"
#include "workloads/passes/collectives/ring.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

bool IsNarrowGather(const Instruction& i, int64_t lanes) {
  if (i.opcode() != Opcode::kAllGather || i.operands().size() != 1 || !i.shape().IsArray() ||
      i.has_control_edges()) {
    return false;
  }
  const hlo::Shape& part = i.operand(0)->shape();
  const bool adds = hlo::IsFloating(part.element_type) || hlo::IsIntegral(part.element_type);
  return adds && part.rank() == 1 && part.ElementCount() < lanes;
}

void Sum(Instruction* gather, const std::vector<std::vector<int64_t>>& groups) {
  Computation* computation = gather->parent();
  const PrimitiveType type = gather->shape().element_type;
  Instruction* part = gather->operand(0);
  Instruction* zeros = computation->Add(Opcode::kBroadcast, gather->shape(),
                                        {hlo::AddConstant(computation, type, 0)}, "", gather);
  Instruction* begin = Ring(groups, "", 0).Begin(computation, part->shape().dims[0], *gather);
  Instruction* placed = computation->Add(Opcode::kDynamicUpdateSlice, gather->shape(),
                                         {zeros, part, begin}, "", gather);
  Instruction* sum =
      computation->Add(Opcode::kAllReduce, gather->shape(), {placed}, "all-reduce", gather);
  sum->mutable_attrs() = gather->attrs();
  hlo::SetDimensions(sum, {});
  sum->set_called({hlo::AddReducer(*computation->parent(), Opcode::kAdd, type, "region_add")});
  gather->ReplaceAllUsesWith(sum);
  computation->Remove(gather);
}

}  // namespace

absl::StatusOr<bool> SumNarrowAllGathers(hlo::Module& module, const PassContext& context) {
  const int64_t lanes = context.target.chip().vpu.lanes;
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      if (!IsNarrowGather(*i, lanes)) continue;
      ASSIGN_OR_RETURN(const cost::CollectiveGroups groups, context.cost.GroupsOf(*i));
      context.records.Add(reasons::kGatherSummed, i->name(),
                          {{"elements", i->operand(0)->shape().ElementCount()}, {"lanes", lanes}});
      Sum(i, groups.partitions);
      changed = true;
    }
  }
  return changed;
}

namespace {

bool IsSumAndSlice(const Instruction& i, const configs::Policy& policy) {
  if (i.opcode() != Opcode::kReduceScatter || i.operands().size() != 1 || !i.shape().IsArray() ||
      i.has_control_edges()) {
    return false;
  }
  if (hlo::IsIntegral(i.shape().element_type)) return true;
  if (!hlo::annotations::kReshard.On(i)) return false;
  const int64_t dim = hlo::OnlyDimension(i);
  const hlo::Shape& shape = i.shape();
  if (hlo::MinorToMajor(shape)[0] != dim) return false;
  const hlo::Shape row = hlo::MakeShape(shape.element_type, {shape.dims[dim]});
  return row.ByteSize() < policy.reduce_scatter_least_row_bytes;
}

void Widen(Instruction* scatter, const std::vector<std::vector<int64_t>>& groups) {
  Computation* computation = scatter->parent();
  const int64_t dim = hlo::OnlyDimension(*scatter);
  Instruction* sum = computation->Add(Opcode::kAllReduce, scatter->operand(0)->shape(),
                                      {scatter->operand(0)}, "all-reduce", scatter);
  sum->mutable_attrs() = scatter->attrs();
  hlo::SetDimensions(sum, {});
  sum->set_called(scatter->called());
  Instruction* begin = Ring(groups, "", 0).Begin(computation, scatter->shape().dims[dim], *scatter);
  Instruction* zero = hlo::AddIntConstant(computation, PrimitiveType::kS32, 0);
  std::vector<Instruction*> operands = {sum};
  for (int64_t d = 0; d < scatter->shape().rank(); ++d) operands.push_back(d == dim ? begin : zero);
  Instruction* part =
      computation->Add(Opcode::kDynamicSlice, scatter->shape(), operands, "", scatter);
  hlo::SetDynamicSliceSizes(part, scatter->shape().dims);
  scatter->ReplaceAllUsesWith(part);
  computation->Remove(scatter);
}

}  // namespace

absl::StatusOr<bool> WidenNarrowReduceScatters(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      if (!IsSumAndSlice(*i, context.target.policy())) continue;
      ASSIGN_OR_RETURN(const cost::CollectiveGroups groups, context.cost.GroupsOf(*i));
      context.records.Add(reasons::kScatterWidened, i->name(), {{"shape", i->shape().ToString()}});
      Widen(i, groups.partitions);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
