#include <limits>

#include "workloads/compiler/stages.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/expand_bitcasts.h"
#include "workloads/hlo/transforms/join_async.h"
#include "workloads/hlo/transforms/split_combined.h"
#include "workloads/hlo/transforms/unfuse.h"

namespace tpusim::compiler {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

bool IsUnwrittenMemory(const Instruction& i) {
  return i.opcode() == Opcode::kCustomCall &&
         i.attrs().custom_call_target() == hlo::kAllocateBuffer;
}

void Poison(Instruction* memory) {
  hlo::Computation* computation = memory->parent();
  const PrimitiveType type = memory->shape().element_type;
  const bool whole = hlo::IsIntegral(type) || type == PrimitiveType::kPred;
  Instruction* value =
      whole ? hlo::AddIntConstant(computation, PrimitiveType::kS32, 0x5a5a5a5b, "poison")
            : hlo::AddConstant(computation, PrimitiveType::kF32,
                               std::numeric_limits<double>::quiet_NaN(), "poison");
  if (value->shape().element_type != type) {
    value = computation->Add(Opcode::kConvert, hlo::MakeScalarShape(type), {value});
  }
  memory->ReplaceAllUsesWith(
      computation->Add(Opcode::kBroadcast, hlo::MakeShape(type, memory->shape().dims), {value}));
}

void DropLayouts(hlo::Shape* shape) {
  shape->layout = {};
  for (hlo::Shape& element : shape->tuple) DropLayouts(&element);
}

}  // namespace

void MakeExecutable(hlo::Module& module) {
  for (hlo::Computation* computation : module.computations()) computation->DropOrder();
  hlo::Unfuse(module);
  hlo::JoinAsync(module);
  hlo::SplitCombined(module);
  hlo::ExpandBitcasts(module);  // needs the layouts
  for (hlo::Computation* computation : module.computations()) {
    bool poisoned = false;
    for (Instruction* i : computation->instructions()) {
      if (IsUnwrittenMemory(*i)) {
        Poison(i);
        poisoned = true;
      }
      hlo::Shape shape = i->shape();
      DropLayouts(&shape);
      if (i->opcode() == Opcode::kConstant) {
        // As its literal stands.
        const auto& order = i->attrs().literal().shape().layout().minor_to_major();
        shape.layout.minor_to_major = {order.begin(), order.end()};
      }
      i->set_shape(std::move(shape));
    }
    if (poisoned) computation->RemoveDead();
  }
  module.Cleanup();
  // Of the entry as the file had it: with layouts.
  module.mutable_fields().clear_host_program_shape();
  module.mutable_fields().clear_schedule();
}

}  // namespace tpusim::compiler
