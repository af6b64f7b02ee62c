#include "workloads/hlo/transforms/checkpoint_names.h"

#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"

namespace tpusim::hlo {
void AddName(Instruction* value, const std::string& name) {
  // An element of a tuple that is put together here is what was put there.
  while (value->opcode() == Opcode::kGetTupleElement &&
         value->operand(0)->opcode() == Opcode::kTuple) {
    value = value->operand(0)->operand(static_cast<size_t>(value->attrs().tuple_index()));
  }
  std::vector<std::string> names = annotations::kNames.Of(*value).value_or(std::vector<std::string>());
  names.push_back(name);
  annotations::kNames.Set(value, names);
}

std::optional<std::string> CheckpointName(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  if ((opcode != Opcode::kReducePrecision && opcode != Opcode::kOptBarrier) ||
      !instruction.attrs().has_frontend_attributes() || !instruction.shape().IsArray() ||
      instruction.operands().size() != 1 || instruction.operand(0)->shape().IsTuple()) {
    return std::nullopt;
  }
  return annotations::kCheckpointName.Of(instruction);
}

void RemoveCheckpointName(Instruction* named) { annotations::kCheckpointName.Drop(named); }

void DropCheckpointNames(Module& module) {
  for (Computation* computation : module.computations()) {
    for (Instruction* i : Walk(computation->instructions())) {
      const std::optional<std::string> name = CheckpointName(*i);
      if (!name || i->has_control_edges()) continue;
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
      AddName(value, *name);
    }
  }
}

void MoveNames(const Instruction* from, Instruction* to) {
  if (const auto names = annotations::kNames.Of(*from)) annotations::kNames.Set(to, *names);
}

std::vector<std::string> TakeNames(Instruction* value) {
  std::vector<std::string> names = annotations::kNames.Of(*value).value_or(std::vector<std::string>());
  annotations::kNames.Drop(value);
  return names;
}

}  // namespace tpusim::hlo
