#include <algorithm>
#include <vector>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/combine.h"
#include "workloads/passes/pipeline/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Of the result; where all that is done with it is to round it, of what that leaves.
Bytes CountedBytes(const Instruction& all_reduce) {
  const hlo::Shape& shape = all_reduce.shape();
  const Instruction* i = &all_reduce;
  while (i->users().size() == 1 && !i->IsRoot()) {
    i = i->users()[0];
    if (i->opcode() == Opcode::kConvert) return std::min(shape.ByteSize(), i->shape().ByteSize());
    const bool same = hlo::IsIndexMap(i->opcode()) && i->shape().IsArray() &&
                      i->shape().ElementCount() == shape.ElementCount();
    if (!same) break;
  }
  return shape.ByteSize();
}

void CombineSums(const std::vector<Instruction*>& members) {
  std::vector<Instruction*> operands;
  std::vector<hlo::Shape> shapes;
  for (const Instruction* member : members) {
    operands.push_back(member->operand(0));
    shapes.push_back(member->shape());
  }
  const std::vector<Instruction*> parts = AddCombined(members, operands, shapes);
  for (size_t n = 0; n < members.size(); ++n) {
    members[n]->ReplaceAllUsesWith(parts[n]);
    members[n]->parent()->Remove(members[n]);
  }
}

}  // namespace

absl::StatusOr<bool> CombineAllReduces(hlo::Module& module, const PassContext& context) {
  const configs::Policy& policy = context.target.policy();
  const CombineRule rule = {AllReduceKind, CountedBytes, policy.all_reduce_combined_bytes,
                            static_cast<size_t>(policy.all_reduce_combined_arrays), CombineSums};
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    changed |=
        CombineCollectives(*computation, rule, context.records, reasons::kAllReducesCombined);
  }
  return changed;
}

}  // namespace tpusim::passes
