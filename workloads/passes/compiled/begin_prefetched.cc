#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/compiled/compiled.h"
#include "workloads/passes/compiled/order_edit.h"
#include "workloads/passes/pipeline/reasons.h"

namespace tpusim::passes {

using hlo::Instruction;
using hlo::Opcode;

absl::StatusOr<bool> BeginPrefetched(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  OrderEdit order(module.entry());
  for (Instruction* start : hlo::Walk(module.entry()->PostOrder())) {
    if (start->opcode() != Opcode::kCopyStart ||
        !start->attrs().has_cross_program_prefetch_index()) {
      continue;
    }
    Instruction* done = hlo::DoneOf(*start);
    if (done == nullptr || start->users().size() != 1) continue;
    Instruction* there =
        module.entry()->Add(Opcode::kBitcast, done->shape(), {start->operand(0)}, "prefetched");
    order.Insert(start, there);
    context.records.Add(reasons::kPrefetched, start->operand(0)->name());
    start->MoveControlTo(there, there);
    done->MoveControlTo(there, there);
    done->ReplaceAllUsesWith(there);
    module.entry()->Remove(done);
    module.entry()->Remove(start);
    changed = true;
  }
  return changed;
}

}  // namespace tpusim::passes
