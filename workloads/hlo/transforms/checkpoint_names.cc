#include "workloads/hlo/transforms/checkpoint_names.h"

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"

namespace tpusim::hlo {
namespace {

// As in tools/python/tpusim/checkpoint_names.py.
constexpr char kNameAttribute[] = "tpusim.checkpoint_name";

}  // namespace

std::optional<std::string> CheckpointName(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  if ((opcode != Opcode::kReducePrecision && opcode != Opcode::kOptBarrier) ||
      !instruction.attrs().has_frontend_attributes() || !instruction.shape().IsArray() ||
      instruction.operands().size() != 1 || instruction.operand(0)->shape().IsTuple()) {
    return std::nullopt;
  }
  return FrontendAttribute(instruction, kNameAttribute);
}

void RemoveCheckpointName(Instruction* named) { RemoveFrontendAttribute(named, kNameAttribute); }

void DropCheckpointNames(Module& module) {
  for (Computation* computation : module.computations()) {
    for (Instruction* i : Walk(computation->instructions())) {
      if (!CheckpointName(*i) || i->has_control_edges()) continue;
      Instruction* value = i->operand(0);
      // A result may say how it is sharded.
      const bool says =
          i->attrs().has_sharding() || i->attrs().frontend_attributes().map().size() > 1;
      if (says) {
        value = computation->Add(Opcode::kCopy, i->shape(), {value}, i->name(), i);
        pb::HloInstructionProto& attrs = value->mutable_attrs();
        *attrs.mutable_frontend_attributes() = i->attrs().frontend_attributes();
        if (i->attrs().has_sharding()) *attrs.mutable_sharding() = i->attrs().sharding();
        RemoveCheckpointName(value);
      }
      i->ReplaceAllUsesWith(value);
      computation->Remove(i);
    }
  }
}

}  // namespace tpusim::hlo
