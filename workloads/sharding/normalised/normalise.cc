#include "workloads/sharding/normalised/normalise.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/transforms/checkpoint_names.h"
#include "workloads/hlo/transforms/forward_tuples.h"
#include "workloads/hlo/transforms/expand_composites.h"
#include "workloads/sharding/normalised/constants.h"
#include "workloads/sharding/normalised/regions.h"
#include "workloads/sharding/rules/rolls.h"
#include "workloads/sharding/text/markers.h"

namespace tpusim::sharding {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

class Normaliser {
 public:
  explicit Normaliser(NormalisedModule* out) : out_(*out), module_(*out->module) {}

  absl::Status Run() {
    out_.partitioned = {module_.entry()};
    partitioned_[module_.entry()] = {};
    for (size_t i = 0; i < out_.partitioned.size(); ++i) {
      Computation* computation = out_.partitioned[i];
      CollectCalled(computation);
      RETURN_IF_ERROR(RewriteMarkers(computation));
      hlo::ForwardTuples(*computation);
      Sweep(computation);
      RETURN_IF_ERROR(RootTuple(computation));
    }
    RETURN_IF_ERROR(ConstrainResults());
    for (Computation* computation : out_.partitioned) {
      ConstrainFlows(computation);
      ConstrainChains(computation);
    }
    // Elsewhere (reducers, manual bodies) a sharding says nothing.
    for (Computation* computation : module_.computations()) {
      if (!partitioned_.contains(computation)) DropMarkers(computation);
      for (Instruction* instruction : computation->instructions()) StripAttributes(instruction);
      Sweep(computation);
    }
    DropUnreachable();
    CollectNames();
    if (mesh().size() > 1) {
      for (Computation* computation : out_.partitioned) {
        SplitConstants(computation, &out_.constant_copies);
      }
    }
    return absl::OkStatus();
  }

 private:
  const Mesh& mesh() const { return out_.mesh.mesh; }

  void Forget(const Instruction* instruction) {
    out_.annotations.erase(instruction);
    out_.constraints.erase(instruction);
    out_.manual_regions.erase(instruction);
    out_.sharding_groups.erase(instruction);
    out_.barriers.erase(instruction);
  }

  // Removes what is dead, and what is known of it: the tables outlive this stage, at whose end
  // the memory is freed and something new may be made there.
  void Sweep(Computation* computation) {
    std::vector<const Instruction*> removed;
    computation->RemoveDead(&removed);
    for (const Instruction* instruction : removed) Forget(instruction);
  }

  // Computations that only dead loops, branches and regions called.
  void DropUnreachable() {
    const std::vector<Computation*> before = module_.computations();
    std::vector<Computation*> after;
    TPUSIM_CHECK(hlo::CalleesFirst({module_.entry()}, &after), "computations call each other");
    const std::unordered_set<const Computation*> present(after.begin(), after.end());
    if (present.size() == before.size()) return;
    for (size_t i = 0; i < before.size(); ++i) {
      if (present.contains(before[i])) continue;
      for (const Instruction* instruction : before[i]->instructions()) Forget(instruction);
      out_.region_of.erase(before[i]);
    }
    module_.RemoveUnreachable();
    std::erase_if(out_.partitioned,
                  [&](const Computation* computation) { return !present.contains(computation); });
  }

  void CollectNames() {
    for (Computation* computation : module_.computations()) {
      for (Instruction* instruction : computation->instructions()) {
        for (std::string& name : hlo::TakeNames(instruction)) {
          if (partitioned_.contains(computation)) {
            out_.names.emplace_back(instruction, std::move(name));
          }
        }
      }
    }
  }

  // Loops and branches; a computation with two callers is copied, so that each
  // caller can have its own shardings.
  void CollectCalled(Computation* computation) {
    const Axes manual = partitioned_.at(computation);
    for (Instruction* instruction : computation->instructions()) {
      if (instruction->opcode() == Opcode::kWhile ||
          instruction->opcode() == Opcode::kConditional) {
        Adopt(instruction, manual);
      }
    }
  }

  void Adopt(Instruction* caller, const Axes& manual) {
    std::vector<Computation*> called = caller->called();
    for (Computation*& callee : called) {
      if (partitioned_.contains(callee)) callee = module_.CloneComputation(*callee);
      partitioned_[callee] = manual;
      out_.partitioned.push_back(callee);
    }
    caller->set_called(called);
  }

  // Makes an annotation of `to` from the sharding that an instruction's own attributes state.
  absl::Status ReadAnnotation(const Instruction& from, const Instruction* to, std::string reason) {
    ASSIGN_OR_RETURN(const auto said, SaidBy(from, to->shape(), out_.mesh));
    if (!said) return absl::OkStatus();
    const Axes& manual = partitioned_.at(to->parent());
    Annotation annotation;
    annotation.reason = std::move(reason);
    bool any = false;
    for (const DecodedSharding& leaf : *said) {
      for (const AxisRef& axis : leaf.manual) {
        if (Overlap(manual, axis)) continue;
        return NoRule(
            fmt::format("a manual sharding outside shard_map's own markers has no rule: "
                        "{}",
                        from.Describe()));
      }
      annotation.leaves.emplace_back(leaf.known ? std::optional(leaf.sharding) : std::nullopt);
      any = any || leaf.known;
    }
    if (any) out_.annotations[to] = std::move(annotation);
    return absl::OkStatus();
  }

  absl::Status RewriteConstraint(Instruction* marker) {
    if (marker->operands().size() != 1 ||
        !hlo::SameDims(marker->operand(0)->shape(), marker->shape())) {
      return NoRule("a sharding constraint of several values has no rule: " + marker->Describe());
    }
    const bool is_result = IsTarget(*marker, kResultConstraint);
    Instruction* copy = marker->parent()->Add(Opcode::kCopy, marker->shape(), {marker->operand(0)},
                                              marker->name(), marker);
    RETURN_IF_ERROR(ReadAnnotation(
        *marker, copy, (is_result ? "result sharding at " : "constraint at ") + At(*marker)));
    // The older partitioner's form of a sharding group.
    if (marker->attrs().sharding().is_shard_group()) {
      out_.constraints.insert(copy);
      out_.sharding_groups[copy] = marker->attrs().sharding().shard_group_id();
    }
    if (const auto it = out_.annotations.find(copy); it != out_.annotations.end()) {
      out_.constraints.insert(copy);
      it->second.is_result = is_result && marker->parent() == module_.entry();
    }
    hlo::MoveNames(marker, copy);
    Retire(marker, copy);
    return absl::OkStatus();
  }

  absl::Status RewriteGroup(Instruction* marker) {
    const auto text = hlo::FrontendAttribute(*marker, kShardingGroupId);
    if (!text || text->empty() || !std::isdigit(static_cast<unsigned char>((*text)[0]))) {
      return UserError(fmt::format("{} has no {}", marker->Describe(), kShardingGroupId));
    }
    Instruction* member = marker->operand(0);
    // Elements of tuples have no place of their own.
    if (member->opcode() == Opcode::kGetTupleElement) {
      Instruction* copy =
          member->parent()->Add(Opcode::kCopy, member->shape(), {member}, member->name(), member);
      member->ReplaceAllUsesWith(copy);
      out_.constraints.insert(copy);
      member = copy;
    }
    out_.sharding_groups[member] = std::strtoll(text->c_str(), nullptr, 10);
    Retire(marker, hlo::SameDims(marker->shape(), member->shape()) ? member : nullptr);
    return absl::OkStatus();
  }

  absl::Status RewriteBarrier(Instruction* marker) {
    const std::string text = hlo::FrontendAttribute(*marker, kAllowedDirection).value_or("NONE");
    const auto says = [&](std::string_view word, char number) {
      return text.find(word) != std::string::npos || text == std::string(1, number);
    };
    Instruction* copy = marker->parent()->Add(Opcode::kCopy, marker->shape(), {marker->operand(0)},
                                              marker->name(), marker);
    out_.constraints.insert(copy);
    out_.barriers[copy] = says("FORWARD", '1')    ? Flow::kForward
                          : says("BACKWARD", '2') ? Flow::kBackward
                          : says("BOTH", '3')     ? Flow::kBoth
                                                  : Flow::kNone;
    hlo::MoveNames(marker, copy);
    Retire(marker, copy);
    return absl::OkStatus();
  }

  absl::Status RewriteMarkers(Computation* computation) {
    const Axes manual = partitioned_.at(computation);
    if (computation == module_.entry()) RETURN_IF_ERROR(ReadRootSharding());
    // Regions first: they remove the markers around them.
    bool regions = false;
    for (Instruction* instruction : computation->PostOrder()) {
      if (instruction->opcode() != Opcode::kCall) continue;
      ASSIGN_OR_RETURN(Instruction * call, RewriteRegion(instruction, manual, &out_));
      regions = true;
      const ManualRegion& region = out_.manual_regions.at(call);
      if (!region.partitioned) continue;
      Adopt(call, Concat(manual, region.manual_axes));
      out_.region_of[call->called()[0]] = call;
    }
    if (regions) Sweep(computation);
    for (Instruction* instruction : computation->PostOrder()) {
      if (instruction->opcode() != Opcode::kCustomCall) {
        if (!instruction->attrs().has_sharding() &&
            !instruction->attrs().has_frontend_attributes()) {
          continue;
        }
        // A region's result has its annotation already.
        if (out_.manual_regions.contains(instruction)) continue;
        if (instruction->opcode() == Opcode::kParameter && computation != module_.entry()) continue;
        if (instruction == computation->root() && computation == module_.entry()) continue;
        RETURN_IF_ERROR(ReadAnnotation(
            *instruction, instruction,
            instruction->opcode() == Opcode::kParameter ? "parameter" : "as the program says"));
        continue;
      }
      const std::string& target = instruction->attrs().custom_call_target();
      if (target == kConstraint || target == kResultConstraint) {
        RETURN_IF_ERROR(RewriteConstraint(instruction));
      } else if (target == kGroupMarker) {
        RETURN_IF_ERROR(RewriteGroup(instruction));
      } else if (target == kBarrierMarker) {
        RETURN_IF_ERROR(RewriteBarrier(instruction));
      } else if (target == kFullToShard || target == kShardToFull || target == kGlobalToLocal ||
                 target == kLocalToGlobal) {
        return NoRule(fmt::format("{} without a call of a shard_map body has no rule: {}", target,
                                  instruction->Describe()));
      } else if (target == kRollTarget) {
        return UserError(fmt::format("custom calls to '{}' are made by the compiler only: {}",
                                     target, instruction->Describe()));
      } else {
        RETURN_IF_ERROR(ReadAnnotation(*instruction, instruction, "as the program says"));
      }
    }
    Sweep(computation);
    return absl::OkStatus();
  }

  // Roots of tuple shape become tuple instructions, so that each element can be
  // resharded by itself.
  static absl::Status RootTuple(Computation* computation) {
    Instruction* root = computation->root();
    if (!root->shape().IsTuple() || root->opcode() == Opcode::kTuple) return absl::OkStatus();
    std::vector<Instruction*> elements;
    for (size_t i = 0; i < root->shape().tuple.size(); ++i) {
      Instruction* element = computation->Add(Opcode::kGetTupleElement, root->shape().tuple[i],
                                              {root}, root->name() + ".element", root);
      element->mutable_attrs().set_tuple_index(static_cast<int64_t>(i));
      elements.push_back(element);
    }
    computation->set_root(computation->Add(Opcode::kTuple, root->shape(), elements, "tuple", root));
    return absl::OkStatus();
  }

  // The entry root's own `sharding=` is the sharding of the results.
  absl::Status ReadRootSharding() {
    const Instruction* root = module_.entry()->root();
    if (root->opcode() == Opcode::kCustomCall || root->opcode() == Opcode::kParameter ||
        IsRegionCall(*root)) {
      return absl::OkStatus();
    }
    Instruction* holder = module_.entry()->root();
    RETURN_IF_ERROR(ReadAnnotation(*root, holder, "result"));
    if (const auto it = out_.annotations.find(holder); it != out_.annotations.end()) {
      root_annotation_ = it->second;
      out_.annotations.erase(it);
    }
    return absl::OkStatus();
  }

  absl::Status ConstrainResults() {
    if (root_annotation_.leaves.empty()) return absl::OkStatus();
    Computation* entry = module_.entry();
    Instruction* root = entry->root();
    const auto constrain = [&](Instruction* value, size_t leaf) -> Instruction* {
      if (out_.constraints.contains(value) || !value->shape().IsArray() ||
          leaf >= root_annotation_.leaves.size() || !root_annotation_.leaves[leaf]) {
        return value;
      }
      Instruction* copy = entry->Add(Opcode::kCopy, value->shape(), {value}, value->name(), value);
      out_.annotations[copy] = {{root_annotation_.leaves[leaf]}, "result sharding", true};
      out_.constraints.insert(copy);
      return copy;
    };
    if (root->opcode() != Opcode::kTuple) {
      entry->set_root(constrain(root, 0));
      return absl::OkStatus();
    }
    size_t leaf = 0;
    for (size_t i = 0; i < root->operands().size(); ++i) {
      Instruction* value = root->operand(i);
      Instruction* constrained = constrain(value, leaf);
      leaf += hlo::Leaves(value->shape()).size();
      if (constrained != value) root->ReplaceOperand(i, constrained);
    }
    return absl::OkStatus();
  }

  const Annotation* Constraint(const Instruction* copy) const {
    const auto said = out_.annotations.find(copy);
    return out_.constraints.contains(copy) && said != out_.annotations.end() ? &said->second
                                                                             : nullptr;
  }

  // XLA's order of a computation: operands first, from the root on.
  static std::unordered_map<const Instruction*, size_t> DepthFirst(const Computation& computation) {
    std::unordered_map<const Instruction*, size_t> position;
    std::unordered_set<const Instruction*> seen = {computation.root()};
    std::vector<std::pair<const Instruction*, size_t>> stack = {{computation.root(), 0}};
    while (!stack.empty()) {
      auto& [instruction, next] = stack.back();
      if (next == instruction->operands().size()) {
        const size_t at = position.size();
        position[instruction] = at;
        stack.pop_back();
        continue;
      }
      const Instruction* operand = instruction->operand(next++);
      if (seen.insert(operand).second) stack.emplace_back(operand, 0);
    }
    return position;
  }

  // A value of which the program says nothing but a chain of constraints, each
  // the only use of the one before: a later use of the value means the last one.
  void ConstrainChains(Computation* computation) {
    if (out_.constraints.empty()) return;
    const std::vector<Instruction*> order = computation->PostOrder();
    std::unordered_map<const Instruction*, size_t> position;
    const auto constrains = [&](const Instruction* user) {
      const Annotation* said = Constraint(user);
      return (said != nullptr && !said->is_result) || out_.manual_regions.contains(user);
    };
    for (Instruction* head : order) {
      const Annotation* said = Constraint(head);
      if (said == nullptr || said->is_result) continue;
      Instruction* value = head->operand(0);
      if (Constraint(value) != nullptr || out_.annotations.contains(value)) continue;
      const auto chained = [&](const Instruction* from) -> Instruction* {
        if (from->users().size() != 1) return nullptr;
        Instruction* next = from->users()[0];
        const Annotation* next_said = Constraint(next);
        return next_said != nullptr && !next_said->is_result ? next : nullptr;
      };
      Instruction* tail = head;
      while (Instruction* next = chained(tail)) tail = next;
      if (tail == head) continue;
      const auto& users = value->users();
      if (std::ranges::any_of(
              users, [&](const Instruction* user) { return user != head && constrains(user); }) ||
          std::any_of(tail->users().begin(), tail->users().end(), constrains)) {
        continue;
      }
      if (position.empty()) position = DepthFirst(*computation);
      for (Instruction* user : std::vector<Instruction*>(users)) {
        if (user == head || user->IsRoot() || position[user] < position[tail]) continue;
        for (size_t i = 0; i < user->operands().size(); ++i) {
          if (user->operand(i) == value) user->ReplaceOperand(i, tail);
        }
      }
    }
  }

  // A value that flows in from a loop or branch has one sharding in all places
  // that it flows to. A closed constraint on it binds only the users here: they
  // all take the constrained value.
  void ConstrainFlows(Computation* computation) {
    if (out_.constraints.empty()) return;
    for (Instruction* copy : computation->PostOrder()) {
      const auto said = out_.annotations.find(copy);
      if (!out_.constraints.contains(copy) || said == out_.annotations.end() ||
          said->second.is_result || !said->second.leaves[0] ||
          !FullyClosed(*said->second.leaves[0])) {
        continue;
      }
      Instruction* value = copy->operand(0);
      const Instruction* source = value;
      while (source->opcode() == Opcode::kGetTupleElement) source = source->operand(0);
      const bool flows = source->opcode() == Opcode::kWhile ||
                         source->opcode() == Opcode::kConditional ||
                         source->opcode() == Opcode::kOptBarrier ||
                         (source->opcode() == Opcode::kParameter && computation != module_.entry());
      if (!flows || out_.annotations.contains(value)) continue;
      bool agreed = true;
      for (const Instruction* user : value->users()) {
        const auto other = out_.annotations.find(user);
        if (out_.constraints.contains(user) && other != out_.annotations.end()) {
          agreed = agreed && other->second.leaves[0] == said->second.leaves[0];
        } else if (const auto region = out_.manual_regions.find(user);
                   region != out_.manual_regions.end()) {
          for (size_t i = 0; i < user->operands().size(); ++i) {
            agreed = agreed && (user->operand(i) != value ||
                                region->second.operands[i] == *said->second.leaves[0]);
          }
        }
      }
      if (agreed) value->ReplaceAllUsesWith(copy);
    }
  }

  static void DropMarkers(Computation* computation) {
    for (Instruction* instruction : computation->instructions()) {
      if (IsTarget(*instruction, kConstraint) || IsTarget(*instruction, kResultConstraint) ||
          IsTarget(*instruction, kBarrierMarker) || IsTarget(*instruction, kGroupMarker)) {
        Retire(instruction, instruction->operand(0));
      }
    }
  }

  static void StripAttributes(Instruction* instruction) {
    if (!instruction->attrs().has_sharding() && !instruction->attrs().has_frontend_attributes()) {
      return;
    }
    hlo::pb::HloInstructionProto& attrs = instruction->mutable_attrs();
    attrs.clear_sharding();
    for (const char* key :
         {kShardingAttribute, kInShardings, kOutShardings, kManualAxes, "inlineable"}) {
      hlo::RemoveFrontendAttribute(instruction, key);
    }
    if (attrs.frontend_attributes().map().empty()) attrs.clear_frontend_attributes();
  }

  NormalisedModule& out_;
  hlo::Module& module_;
  std::unordered_map<const Computation*, Axes> partitioned_;  // the manual axes around each
  Annotation root_annotation_;
};

}  // namespace

void PrefixOpNames(Instruction* instruction, const hlo::pb::OpMetadata& caller) {
  const std::string& prefix = caller.op_name();
  std::vector<Instruction*> work = {instruction};
  while (!work.empty()) {
    Instruction* next = work.back();
    work.pop_back();
    hlo::pb::OpMetadata& metadata = *next->mutable_attrs().mutable_metadata();
    if (metadata.op_name().empty() && metadata.stack_frame_id() == 0 &&
        metadata.source_file().empty()) {
      metadata = caller;
    } else if (!prefix.empty()) {
      // Names that are already whole (older exports) stay.
      if (!metadata.op_name().starts_with(prefix)) {
        metadata.set_op_name(metadata.op_name().empty() ? prefix
                                                        : prefix + "/" + metadata.op_name());
      }
    }
    // JAX puts the source line of a nested jit on its call only.
    if (metadata.stack_frame_id() == 0 && metadata.source_file().empty()) {
      metadata.set_stack_frame_id(caller.stack_frame_id());
      metadata.set_source_file(caller.source_file());
      metadata.set_source_line(caller.source_line());
    }
    if (!hlo::IsControlFlow(next->opcode())) continue;
    for (Computation* called : next->called()) {
      for (Instruction* inner : called->instructions()) work.push_back(inner);
    }
  }
}

absl::Status InlinePlainCalls(hlo::Module& module) {
  RETURN_IF_ERROR(hlo::CheckExtent(module));
  module.InlineCalls([](const Instruction& call) {
    return call.opcode() == Opcode::kCall && !IsRegionCall(call);
  });
  hlo::ExpandComposites(module);
  module.RemoveUnreachable();
  module.Cleanup();
  return absl::OkStatus();
}

absl::StatusOr<NormalisedModule> Normalise(std::unique_ptr<hlo::Module> module,
                                           int64_t num_partitions) {
  NormalisedModule normalised;
  ASSIGN_OR_RETURN(normalised.mesh, FindMesh(*module, num_partitions));
  normalised.module = std::move(module);
  // An order of the whole program's instructions is no order of a device's.
  for (Computation* c : normalised.module->computations()) c->set_schedule({});
  RETURN_IF_ERROR(InlinePlainCalls(*normalised.module));
  hlo::DropCheckpointNames(*normalised.module);
  RETURN_IF_ERROR(Normaliser(&normalised).Run());
  normalised.module->Cleanup();
  return normalised;
}

}  // namespace tpusim::sharding
