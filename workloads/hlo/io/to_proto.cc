// Module -> HloModuleProto, in the form that XLA loads: callees before callers,
// operands before users, 64-bit ids, program shapes and layouts everywhere.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "configs/status_macros.h"
#include "workloads/hlo/io/wire.h"
#include "workloads/hlo/ir/shape_proto.h"

namespace tpusim::hlo {
namespace {

void FillProgramShape(const Computation& computation, pb::ProgramShapeProto* shape) {
  for (const Instruction* parameter : computation.parameters()) {
    *shape->add_parameters() = ShapeToProto(parameter->shape());
    shape->add_parameter_names(parameter->name());
  }
  *shape->mutable_result() = ShapeToProto(computation.root()->shape());
}

// The file's layout of the entry is kept as long as it still fits the entry.
bool SameProgram(const pb::ProgramShapeProto& file, const pb::ProgramShapeProto& entry) {
  if (file.parameters_size() != entry.parameters_size()) return false;
  const auto same = [](const pb::ShapeProto& a, const pb::ShapeProto& b) {
    const auto shape_a = ShapeFromProto(a);
    const auto shape_b = ShapeFromProto(b);
    return shape_a.ok() && shape_b.ok() && SameDims(*shape_a, *shape_b);
  };
  for (int i = 0; i < file.parameters_size(); ++i) {
    if (!same(file.parameters(i), entry.parameters(i))) return false;
  }
  return same(file.result(), entry.result());
}

}  // namespace

pb::HloModuleProto ToProto(const Module& module) {
  TPUSIM_CHECK(module.entry() != nullptr, "no entry computation");
  pb::HloModuleProto proto = module.fields();
  proto.set_name(module.name());
  proto.set_entry_computation_name(module.entry()->name());

  const std::vector<Computation*> computations = module.PostOrder();
  std::unordered_set<const Computation*> fused;
  for (const Computation* computation : computations) {
    for (const Instruction* instruction : computation->instructions()) {
      if (instruction->opcode() != Opcode::kFusion) continue;
      for (const Computation* called : instruction->called()) fused.insert(called);
    }
  }

  std::unordered_map<const Computation*, int64_t> computation_ids;
  for (const Computation* computation : computations) {
    const int64_t computation_id = static_cast<int64_t>(computation_ids.size()) + 1;
    computation_ids[computation] = computation_id;
    pb::HloComputationProto& out = *proto.add_computations();
    out = computation->attrs();
    out.set_name(computation->name());
    out.set_id(computation_id);
    out.set_is_fusion_computation(fused.contains(computation));
    FillProgramShape(*computation, out.mutable_program_shape());
    std::unordered_map<const Instruction*, int64_t> ids;
    for (const Instruction* instruction : computation->PostOrder()) {
      const int64_t id = computation_id << 32 | static_cast<int64_t>(ids.size());
      ids[instruction] = id;
      pb::HloInstructionProto& to = *out.add_instructions();
      to = instruction->attrs();
      to.set_name(instruction->name());
      to.set_opcode(std::string(OpcodeName(instruction->opcode())));
      *to.mutable_shape() = ShapeToProto(instruction->shape());
      to.set_id(id);
      for (const Instruction* operand : instruction->operands()) {
        to.add_operand_ids(ids.at(operand));
      }
      for (const Instruction* before : instruction->control_predecessors()) {
        to.add_control_predecessor_ids(ids.at(before));
      }
      for (const Computation* called : instruction->called()) {
        to.add_called_computation_ids(computation_ids.at(called));
      }
    }
    out.set_root_id(ids.at(computation->root()));
    if (!computation->schedule().empty()) {
      auto& sequence = (*proto.mutable_schedule()->mutable_sequences())[computation_id];
      for (const Instruction* instruction : computation->schedule()) {
        sequence.add_instruction_ids(ids.at(instruction));
      }
    }
  }
  proto.set_entry_computation_id(computation_ids.at(module.entry()));

  pb::ProgramShapeProto entry_shape;
  FillProgramShape(*module.entry(), &entry_shape);
  if (!SameProgram(proto.host_program_shape(), entry_shape)) {
    *proto.mutable_host_program_shape() = entry_shape;
  }
  return proto;
}

std::string SerializeDeterministic(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    TPUSIM_CHECK(message.SerializeToCodedStream(&out), "message does not serialize");
  }
  return bytes;
}

}  // namespace tpusim::hlo
