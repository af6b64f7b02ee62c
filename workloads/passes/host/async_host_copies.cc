#include "workloads/hlo/analysis/host_transfer.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/split_async.h"
#include "workloads/passes/host/carried_copies.h"
#include "workloads/passes/host/host.h"
#include "workloads/passes/host/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

void SplitPlacement(Instruction* i) {
  Computation* computation = i->parent();
  Instruction* start =
      computation->Add(Opcode::kCopyStart,
                       hlo::MakeTupleShape({i->shape(), i->operand(0)->shape(),
                                            hlo::MakeShape(hlo::PrimitiveType::kU32, {})}),
                       {i->operand(0)}, "copy-start", i);
  hlo::ReplaceWithPair(i, start,
                       computation->Add(Opcode::kCopyDone, i->shape(), {start}, "copy-done"));
}

}  // namespace

absl::StatusOr<bool> MakeHostCopiesAsync(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      if (!hlo::HostTransferOf(*i) || hlo::IsAsyncStart(i->opcode())) continue;
      context.records.Add(reasons::kHostCopyAsync, i->name());
      if (i->opcode() == Opcode::kCustomCall) {
        SplitPlacement(i);
      } else {
        hlo::WrapInAsync(i);
      }
      changed = true;
    }
  }
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      if (i->opcode() == Opcode::kWhile) changed |= SendBeforeOverwriting(i);
    }
  }
  return changed;
}

}  // namespace tpusim::passes
