#include <string>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/merge_reduces.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/combine.h"
#include "workloads/passes/collectives/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;

// Whether `i` combines the results of two all-reduces as they combine elements.
bool CombinesAllReduces(const Instruction& i) {
  if (i.operands().size() != 2 || i.operand(0) == i.operand(1) || i.has_control_edges()) {
    return false;
  }
  const std::string kind = AllReduceKind(*i.operand(0));
  if (kind.empty() || kind != AllReduceKind(*i.operand(1))) return false;
  for (const Instruction* sum : i.operands()) {
    if (sum->users().size() != 1) return false;
  }
  return hlo::ReducerOperation(*i.operand(0)->called()[0]) == i.opcode();
}

}  // namespace

absl::StatusOr<bool> ReassociateAllReduces(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      if (!CombinesAllReduces(*i)) continue;
      Instruction *a = i->operand(0), *b = i->operand(1);
      Instruction* local =
          computation->Add(i->opcode(), i->shape(), {a->operand(0), b->operand(0)}, i->name(), i);
      Instruction* sum = computation->Add(a->opcode(), i->shape(), {local}, a->name(), a);
      sum->set_called(a->called());
      context.records.Add(reasons::kReassociated, sum->name(),
                          {{"first", a->name()}, {"second", b->name()}});
      i->ReplaceAllUsesWith(sum);
      for (Instruction* dead : {i, a, b}) computation->Remove(dead);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
