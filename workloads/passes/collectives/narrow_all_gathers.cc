#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/ring.h"
#include "workloads/passes/pipeline/reasons.h"

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

Computation* AddPlus(hlo::Module* module, PrimitiveType type) {
  Computation* plus = module->AddComputation("region_add");
  const hlo::Shape scalar = hlo::MakeShape(type, {});
  Instruction* left = plus->AddParameter(0, scalar, "");
  Instruction* right = plus->AddParameter(1, scalar, "");
  plus->set_root(plus->Add(Opcode::kAdd, scalar, {left, right}));
  return plus;
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
  sum->set_called({AddPlus(computation->parent(), type)});
  gather->ReplaceAllUsesWith(sum);
  computation->Remove(gather);
}

}  // namespace

absl::StatusOr<bool> SumNarrowAllGathers(hlo::Module& module, const PassContext& context) {
  TPUSIM_CHECK(context.cost != nullptr, "groups of all-gathers without a cost model");
  const int64_t lanes = context.target.chip().vpu.lanes;
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      if (!IsNarrowGather(*i, lanes)) continue;
      ASSIGN_OR_RETURN(const cost::CollectiveGroups groups, context.cost->GroupsOf(*i));
      context.records.Add(reasons::kGatherSummed, i->name(),
                          {{"elements", i->operand(0)->shape().ElementCount()}, {"lanes", lanes}});
      Sum(i, groups.partitions);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
