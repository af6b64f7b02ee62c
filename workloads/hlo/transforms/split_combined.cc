#include "workloads/hlo/transforms/split_combined.h"

#include <algorithm>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"

namespace tpusim::hlo {
namespace {

bool IsTakenApart(const Instruction& i) {
  return CombinesAcrossDevices(i.opcode()) && !IsAsyncStart(i.opcode()) && i.shape().IsTuple() &&
         !i.IsRoot() && !i.has_control_edges() &&
         std::all_of(i.users().begin(), i.users().end(), [](const Instruction* user) {
           return user->opcode() == Opcode::kGetTupleElement && !user->has_control_edges();
         });
}

}  // namespace

void SplitCombined(Module& module) {
  for (Computation* computation : module.computations()) {
    std::vector<Instruction*> combined;
    for (Instruction* i : computation->instructions()) {
      if (IsTakenApart(*i)) combined.push_back(i);
    }
    for (Instruction* i : Walk(combined)) {
      for (Instruction* part : Walk(i->users())) {
        Instruction* one = computation->Add(
            i->opcode(), part->shape(), {i->operand(part->attrs().tuple_index())}, i->name(), i);
        one->set_called(i->called());
        part->ReplaceAllUsesWith(one);
        computation->Remove(part);
      }
      computation->Remove(i);
    }
  }
}

}  // namespace tpusim::hlo
