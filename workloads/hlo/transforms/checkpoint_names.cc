#include "workloads/hlo/transforms/checkpoint_names.h"

#include "absl/strings/str_split.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"

namespace tpusim::hlo {
namespace {

// As in tools/python/tpusim/checkpoint_names.py.
constexpr char kNameAttribute[] = "tpusim.checkpoint_name";
// Of a value that a name was dropped from: its names, one per line.
constexpr char kNamesAttribute[] = "tpusim.names";

}  // namespace

void AddName(Instruction* value, const std::string& name) {
  // An element of a tuple that is put together here is what was put there.
  while (value->opcode() == Opcode::kGetTupleElement &&
         value->operand(0)->opcode() == Opcode::kTuple) {
    value = value->operand(0)->operand(static_cast<size_t>(value->attrs().tuple_index()));
  }
  std::string names = FrontendAttribute(*value, kNamesAttribute).value_or("");
  if (!names.empty()) names += '\n';
  SetFrontendAttribute(value, kNamesAttribute, names + name);
}

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
  if (const auto names = FrontendAttribute(*from, kNamesAttribute)) {
    SetFrontendAttribute(to, kNamesAttribute, *names);
  }
}

std::vector<std::string> TakeNames(Instruction* value) {
  const std::optional<std::string> names = FrontendAttribute(*value, kNamesAttribute);
  if (!names) return {};
  RemoveFrontendAttribute(value, kNamesAttribute);
  return absl::StrSplit(*names, '\n');
}

}  // namespace tpusim::hlo
