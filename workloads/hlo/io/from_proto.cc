// HloModuleProto -> Module: resolves ids and interned payloads, upgrades old
// spellings, keeps everything else as attributes.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/late_operands.h"
#include "workloads/hlo/io/wire.h"
#include "workloads/hlo/ir/shape_proto.h"

namespace tpusim::hlo {
namespace {

// Ids used to be small and unique in the module and are now
// `computation id << 32 | local id`; either way they resolve inside one
// computation.
int64_t LocalKey(int64_t id, int64_t computation_id) {
  return (id >> 32) == computation_id ? id & 0xffffffff : id;
}

// Convolutions always carry a sparsity message; a dense one is empty.
bool IsSparse(const pb::HloInstructionProto& proto) {
  const auto says_something = [](const std::string& bytes) { return !bytes.empty(); };
  return proto.dot_sparsity_size() > 0 ||
         std::any_of(proto.sparsity_config().begin(), proto.sparsity_config().end(),
                     says_something);
}

class Builder {
 public:
  explicit Builder(pb::HloModuleProto* proto) : proto_(*proto) {}

  absl::StatusOr<std::unique_ptr<Module>> Build() {
    module_ = std::make_unique<Module>(proto_.name().empty() ? "module" : proto_.name());
    pb::HloModuleProto& fields = module_->mutable_fields();
    CopyModuleFields(&fields);
    for (pb::HloComputationProto& computation : *proto_.mutable_computations()) {
      RETURN_IF_ERROR(AddComputation(&computation));
    }
    RETURN_IF_ERROR(SetEntry());
    RETURN_IF_ERROR(SetSchedules());
    JoinLateOperands(*module_);
    ReadOperandsThemselves(*module_);
    RETURN_IF_ERROR(Verify(*module_));
    return std::move(module_);
  }

 private:
  void CopyModuleFields(pb::HloModuleProto* fields) {
    // The rest of the file, and no memory of the computations: a cleared field
    // would keep it.
    google::protobuf::RepeatedPtrField<pb::HloComputationProto> computations;
    computations.Swap(proto_.mutable_computations());
    *fields = proto_;
    computations.Swap(proto_.mutable_computations());
    fields->clear_name();
    fields->clear_entry_computation_name();
    fields->clear_entry_computation_id();
    fields->clear_schedule();
    fields->clear_payloads();
  }

  absl::Status AddComputation(pb::HloComputationProto* computation_proto) {
    pb::HloComputationProto& proto = *computation_proto;
    Computation* computation = module_->AddComputation(proto.name());
    if (!computations_.emplace(proto.id(), computation).second) {
      return UserError(fmt::format("two computations have the id {}: the second is {}", proto.id(),
                                   proto.name()));
    }
    pb::HloComputationProto& attrs = computation->mutable_attrs();
    attrs.set_execution_thread(proto.execution_thread());
    attrs.GetReflection()->MutableUnknownFields(&attrs)->MergeFrom(
        proto.GetReflection()->GetUnknownFields(proto));
    auto& instructions = instructions_[computation];
    instructions.reserve(proto.instructions_size());
    // Taken out of the file's message one by one: what the IR does not keep is free
    // for what it makes of the next.
    std::vector<pb::HloInstructionProto*> taken(proto.instructions_size());
    proto.mutable_instructions()->ExtractSubrange(0, proto.instructions_size(), taken.data());
    std::vector<std::unique_ptr<pb::HloInstructionProto>> owned(taken.begin(), taken.end());
    for (std::unique_ptr<pb::HloInstructionProto>& instruction : owned) {
      const absl::Status status =
          AddInstruction(&instruction, proto.id(), computation, &instructions);
      if (!status.ok()) {
        return absl::Status(status.code(),
                            fmt::format("instruction {} of computation {}: {}", instruction->name(),
                                        proto.name(), Message(status)));
      }
    }
    const auto root = instructions.find(LocalKey(proto.root_id(), proto.id()));
    if (root == instructions.end()) {
      return UserError(fmt::format("computation {}: no instruction has the root id {}",
                                   proto.name(), proto.root_id()));
    }
    computation->set_root(root->second);
    if (!proto_.schedule().sequences().contains(proto.id())) instructions_.erase(computation);
    return absl::OkStatus();
  }

  // The message becomes the instruction's attributes unless there is an error.
  absl::Status AddInstruction(std::unique_ptr<pb::HloInstructionProto>* message,
                              int64_t computation_id, Computation* computation,
                              std::unordered_map<int64_t, Instruction*>* by_id) {
    pb::HloInstructionProto& proto = **message;
    std::optional<Opcode> opcode = OpcodeFromName(proto.opcode());
    const auto old_direction = OldCompareDirection(proto.opcode());
    if (old_direction.has_value()) opcode = Opcode::kCompare;
    if (!opcode.has_value()) return NoRule(fmt::format("unknown opcode '{}'", proto.opcode()));
    if (IsSparse(proto)) return NoRule("sparse operands are not supported");
    ASSIGN_OR_RETURN(Shape shape, ShapeFromProto(proto.shape()));
    const auto resolve = [&](int64_t id, std::string_view what) -> absl::StatusOr<Instruction*> {
      const auto it = by_id->find(LocalKey(id, computation_id));
      if (it != by_id->end()) return it->second;
      return UserError(fmt::format(
          "{} id {} is no instruction that comes before it in its computation", what, id));
    };
    std::vector<Instruction*> operands;
    operands.reserve(proto.operand_ids_size());
    for (int64_t id : proto.operand_ids()) {
      ASSIGN_OR_RETURN(Instruction * operand, resolve(id, "operand"));
      operands.push_back(operand);
    }
    Instruction* instruction =
        computation->Add(*opcode, std::move(shape), std::move(operands), proto.name());
    if (!by_id->emplace(LocalKey(proto.id(), computation_id), instruction).second) {
      return UserError(fmt::format("the id {} is taken", proto.id()));
    }
    for (int64_t id : proto.control_predecessor_ids()) {
      ASSIGN_OR_RETURN(Instruction * before, resolve(id, "control predecessor"));
      instruction->AddControlPredecessor(before);
    }
    std::vector<Computation*> called;
    for (int64_t id : proto.called_computation_ids()) {
      const auto it = computations_.find(id);
      if (it == computations_.end() || it->second == computation) {
        return UserError(
            fmt::format("called computation id {} is no computation that comes before it", id));
      }
      called.push_back(it->second);
    }
    instruction->set_called(std::move(called));
    RETURN_IF_ERROR(SetAttributes(&proto, old_direction));
    ShareAttributes(std::move(**message), instruction);
    return absl::OkStatus();
  }

  // Layers that are copies of one have equal attributes, most of which is where they come from.
  void ShareAttributes(pb::HloInstructionProto attrs, Instruction* instruction) {
    if (attrs.has_literal()) return instruction->set_attrs(std::move(attrs));  // may be large
    const auto [first, is_new] = first_with_.try_emplace(attrs.SerializeAsString(), instruction);
    if (is_new) {
      instruction->set_attrs(std::move(attrs));
    } else {
      instruction->share_attrs(*first->second);
    }
  }

  absl::Status SetAttributes(pb::HloInstructionProto* proto,
                             std::optional<std::string_view> old_direction) {
    pb::HloInstructionProto& attrs = *proto;
    if (old_direction.has_value()) {
      attrs.set_comparison_direction(std::string(*old_direction));
    }
    // Interned payloads: the value goes where it would stand without interning.
    if (attrs.has_backend_config_payload()) {
      ASSIGN_OR_RETURN(std::string config, Resolve(attrs.backend_config_payload()));
      attrs.set_backend_config(std::move(config));
      attrs.clear_backend_config_payload();
    }
    if (attrs.metadata().has_metadata_payload()) {
      ASSIGN_OR_RETURN(std::string bytes, Resolve(attrs.metadata().metadata_payload()));
      attrs.mutable_metadata()->clear_metadata_payload();
      // Libraries put texts of their own there (tokamax: what a kernel was called with).
      if (pb::OpMetadata metadata; metadata.ParseFromString(bytes)) {
        attrs.mutable_metadata()->MergeFrom(metadata);
      } else {
        attrs.mutable_metadata()->mutable_metadata_payload()->set_value(std::move(bytes));
      }
    }
    // What the instruction holds itself. Cleared fields would keep their memory.
    delete attrs.release_name();
    delete attrs.release_opcode();
    attrs.clear_shape();
    attrs.clear_id();
    for (auto* ids : {attrs.mutable_operand_ids(), attrs.mutable_control_predecessor_ids(),
                      attrs.mutable_called_computation_ids()}) {
      google::protobuf::RepeatedField<int64_t>().Swap(ids);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Resolve(const pb::Payload& payload) const {
    if (payload.payload_case() != pb::Payload::kId) return payload.value();
    if (payload.id() < 0 || payload.id() >= proto_.payloads_size()) {
      return UserError(fmt::format("payload id {} of {}", payload.id(), proto_.payloads_size()));
    }
    return proto_.payloads(static_cast<int>(payload.id()));
  }

  absl::Status SetEntry() {
    const auto it = computations_.find(proto_.entry_computation_id());
    if (it != computations_.end()) {
      module_->set_entry(it->second);
      return absl::OkStatus();
    }
    return UserError(
        fmt::format("the entry computation {} (id {}) is not among the {} computations; is the "
                    "file cut short?",
                    proto_.entry_computation_name(), proto_.entry_computation_id(),
                    proto_.computations_size()));
  }

  absl::Status SetSchedules() {
    for (const pb::HloComputationProto& computation : proto_.computations()) {
      const auto it = proto_.schedule().sequences().find(computation.id());
      if (it == proto_.schedule().sequences().end()) continue;
      Computation* scheduled = computations_.at(computation.id());
      const auto& by_id = instructions_.at(scheduled);
      std::vector<Instruction*> order;
      for (int64_t id : it->second.instruction_ids()) {
        const auto instruction = by_id.find(LocalKey(id, computation.id()));
        if (instruction == by_id.end()) {
          return UserError(
              fmt::format("schedule of {}: no instruction has the id {}", computation.name(), id));
        }
        order.push_back(instruction->second);
      }
      scheduled->set_schedule(std::move(order));
    }
    return absl::OkStatus();
  }

  pb::HloModuleProto& proto_;  // taken apart while the module grows
  std::unique_ptr<Module> module_;
  std::unordered_map<int64_t, Computation*> computations_;
  std::unordered_map<const Computation*, std::unordered_map<int64_t, Instruction*>> instructions_;
  // Instructions by the bytes of their attributes, which stay until all are read. Looked up, never
  // iterated.
  absl::flat_hash_map<std::string, const Instruction*> first_with_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> FromProto(pb::HloModuleProto proto) {
  return Builder(&proto).Build();
}

}  // namespace tpusim::hlo
