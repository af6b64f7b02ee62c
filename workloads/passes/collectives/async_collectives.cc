#include <string>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/split_async.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/reasons.h"
#include "workloads/target/async_form.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

hlo::Shape Flag() { return hlo::MakeShape(hlo::PrimitiveType::kU32, {}); }

// The start owns the source, the destination and, of permutes, two flags.
void Split(Instruction* i, Opcode start_opcode, Opcode done_opcode, hlo::Shape shape) {
  Computation* computation = i->parent();
  Instruction* start =
      computation->Add(start_opcode, std::move(shape), {i->operand(0)}, i->name() + "-start");
  start->mutable_attrs() = i->attrs();  // which device sends to which, over which axes
  hlo::ReplaceWithPair(i, start,
                       computation->Add(done_opcode, i->shape(), {start}, i->name() + "-done"));
}

void OffLoad(Instruction* i) {
  hlo::WrapInAsync(i)->mutable_attrs().set_async_execution_thread(
      std::string(hlo::kSparseCoreThread));
}

}  // namespace

absl::StatusOr<bool> MakeCollectivesAsync(hlo::Module& module, const PassContext& context,
                                          const target::AsyncOptions& options) {
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      const std::string name = i->name();
      switch (target::AsyncFormOf(*i, context.target, options)) {
        case target::AsyncForm::kNone:
          if (hlo::IsCollective(i->opcode())) {
            context.records.Add(reasons::kStaysWhole, name,
                                {{"why", target::WhySynchronous(*i, context.target)}});
          }
          continue;
        case target::AsyncForm::kPermute:
          Split(i, Opcode::kCollectivePermuteStart, Opcode::kCollectivePermuteDone,
                hlo::MakeTupleShape({i->operand(0)->shape(), i->shape(), Flag(), Flag()}));
          break;
        case target::AsyncForm::kOffLoaded:
          OffLoad(i);
          break;
        case target::AsyncForm::kGather:
          Split(i, Opcode::kAllGatherStart, Opcode::kAllGatherDone,
                hlo::MakeTupleShape({i->operand(0)->shape(), i->shape()}));
          break;
      }
      context.records.Add(reasons::kCut, name);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
