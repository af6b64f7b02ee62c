#include "workloads/passes/async_collectives.h"

#include "workloads/hlo/opcode.h"
#include "workloads/passes/control.h"

namespace tpusim::passes {

using hlo::Instruction;
using hlo::Opcode;

absl::Status MakeCollectivesAsync(hlo::Module& module, const Target&) {
  for (hlo::Computation* computation : ControlComputations(module)) {
    for (Instruction* i : computation->PostOrder()) {
      if (i->opcode() != Opcode::kCollectivePermute || i->operands().size() != 1) continue;
      // The start owns the source, the destination and two synchronisation flags.
      const hlo::Shape flag = hlo::MakeShape(hlo::PrimitiveType::kU32, {});
      Instruction* start =
          computation->Add(Opcode::kCollectivePermuteStart,
                           hlo::MakeTupleShape({i->operand(0)->shape(), i->shape(), flag, flag}),
                           {i->operand(0)}, i->name() + "-start");
      start->mutable_attrs() = i->attrs();  // who sends to whom, over which axes
      Instruction* done = computation->Add(Opcode::kCollectivePermuteDone, i->shape(), {start},
                                           i->name() + "-done");
      *done->mutable_attrs().mutable_metadata() = i->attrs().metadata();
      i->ReplaceAllUsesWith(done);
      computation->Remove(i);
    }
  }
  return absl::OkStatus();
}

}  // namespace tpusim::passes
