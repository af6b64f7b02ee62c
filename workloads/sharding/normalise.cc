#include "workloads/sharding/normalise.h"

#include <algorithm>
#include <cctype>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/attributes.h"

namespace tpusim::sharding {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Calls that share callees can multiply; nobody writes such a program.
constexpr int64_t kMaxInstructions = 4 << 20;

constexpr char kSharding[] = "xla.sdy.sharding";
constexpr char kInShardings[] = "xla.sdy.in_shardings";
constexpr char kOutShardings[] = "xla.sdy.out_shardings";
constexpr char kManualAxes[] = "xla.sdy.manual_axes";

bool IsTarget(const Instruction& instruction, std::string_view target) {
  return instruction.opcode() == Opcode::kCustomCall &&
         instruction.attrs().custom_call_target() == target;
}

// The kind of computation that XLA's round trip through HLO keeps out of line.
bool IsManualCall(const Instruction& call) {
  return call.opcode() == Opcode::kCall && call.called().size() == 1 &&
         call.called()[0]->name().find("xla.sdy.manual_computation_body") != std::string::npos;
}

bool CallsItsOwn(Opcode opcode) {
  return opcode == Opcode::kWhile || opcode == Opcode::kConditional || opcode == Opcode::kCall;
}

absl::Status In(const Instruction& instruction, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      fmt::format("{}: {}", instruction.Describe(), Message(status)));
}

std::string At(const Instruction& instruction) {
  const std::string source = instruction.SourceLocation();
  return source.empty() ? instruction.name() : source;
}

absl::Status InlineCalls(hlo::Module* module) {
  int64_t total = 0;
  for (Computation* computation : module->PostOrder()) {
    for (Instruction* call : computation->instructions()) {
      if (call->opcode() != Opcode::kCall || IsManualCall(*call)) continue;
      if (call->called().size() != 1) {
        return UserError("a call of no computation: " + call->Describe());
      }
      total += static_cast<int64_t>(call->called()[0]->size());
      if (total > kMaxInstructions) {
        return UserError(
            fmt::format("inlining the program's calls gives more than {} instructions; "
                        "the last one was {}",
                        kMaxInstructions, call->Describe()));
      }
      // What is inlined takes the call's name scope.
      const hlo::pb::OpMetadata caller = call->attrs().metadata();
      const size_t before = computation->size() - 1;
      module->InlineCall(call);
      const std::vector<Instruction*> all = computation->instructions();
      for (size_t i = before; i < all.size(); ++i) PrefixOpNames(all[i], caller);
    }
  }
  module->RemoveUnreachable();
  return absl::OkStatus();
}

class Normaliser {
 public:
  explicit Normaliser(NormalisedModule* out) : out_(*out), module_(*out->module) {}

  absl::Status Run() {
    RETURN_IF_ERROR(CollectPartitioned());
    for (Computation* computation : out_.partitioned) RETURN_IF_ERROR(RewriteMarkers(computation));
    for (Computation* computation : out_.partitioned) ForwardTuples(computation);
    // Before anything new is made, which may be where something removed was.
    ForgetRemoved();
    for (Computation* computation : out_.partitioned) RETURN_IF_ERROR(RootTuple(computation));
    RETURN_IF_ERROR(ConstrainResults());
    // Elsewhere (reducers, manual bodies) a sharding says nothing.
    for (Computation* computation : module_.computations()) {
      if (!partitioned_.contains(computation)) DropMarkers(computation);
      for (Instruction* instruction : computation->instructions()) StripAttributes(instruction);
      computation->RemoveDead();
    }
    module_.RemoveUnreachable();
    ForgetRemoved();
    return absl::OkStatus();
  }

 private:
  // What is known of instructions that are no longer there.
  void ForgetRemoved() {
    std::unordered_set<const Instruction*> present;
    for (const Computation* computation : module_.computations()) {
      for (const Instruction* instruction : computation->instructions()) {
        present.insert(instruction);
      }
    }
    std::erase_if(out_.annotations, [&](const auto& e) { return !present.contains(e.first); });
    std::erase_if(out_.manual_regions, [&](const auto& e) { return !present.contains(e.first); });
    std::erase_if(out_.constraints, [&](const auto* i) { return !present.contains(i); });
  }

  const Mesh& mesh() const { return out_.mesh.mesh; }

  // Entry, loops, branches; a computation with two callers is copied, so that
  // each caller can have its own shardings.
  absl::Status CollectPartitioned() {
    out_.partitioned = {module_.entry()};
    partitioned_ = {module_.entry()};
    for (size_t i = 0; i < out_.partitioned.size(); ++i) {
      for (Instruction* instruction : out_.partitioned[i]->PostOrder()) {
        if (instruction->opcode() != Opcode::kWhile &&
            instruction->opcode() != Opcode::kConditional) {
          continue;
        }
        std::vector<Computation*> called = instruction->called();
        for (Computation*& callee : called) {
          if (partitioned_.contains(callee)) callee = module_.CloneComputation(*callee);
          partitioned_.insert(callee);
          out_.partitioned.push_back(callee);
        }
        instruction->set_called(called);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Annotate(const Instruction* instruction, const std::vector<Sharding>& shardings,
                        std::string reason, const Instruction& marker) {
    const std::vector<const hlo::Shape*> leaves = hlo::Leaves(instruction->shape());
    if (shardings.size() != leaves.size()) {
      return UserError(fmt::format("{}: {} shardings for {}", marker.Describe(), shardings.size(),
                                   instruction->shape().ToString()));
    }
    Annotation& annotation = out_.annotations[instruction];
    annotation.reason = std::move(reason);
    annotation.leaves.clear();
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (static_cast<int64_t>(shardings[i].dims.size()) != leaves[i]->rank()) {
        return UserError(fmt::format("{}: sharding {} on a value of shape {}", marker.Describe(),
                                     ToString(shardings[i], mesh()), leaves[i]->ToString()));
      }
      annotation.leaves.emplace_back(shardings[i]);
    }
    return absl::OkStatus();
  }

  // What an instruction's own attributes say, Shardy's text first: the other
  // encoding has no open dimensions, priorities or names.
  absl::Status ReadAnnotation(const Instruction& from, const Instruction* to,
                              const std::string& reason) {
    if (const auto text = hlo::FrontendAttribute(from, kSharding)) {
      auto shardings = ParseShardings(*text, mesh(), out_.mesh.sdy);
      if (!shardings.ok()) return In(from, shardings.status());
      return Annotate(to, *shardings, reason, from);
    }
    if (!from.attrs().has_sharding()) return absl::OkStatus();
    auto decoded = DecodeOpSharding(from.attrs().sharding(), to->shape(), mesh());
    if (!decoded.ok()) return In(from, decoded.status());
    Annotation annotation;
    annotation.reason = reason;
    bool any = false;
    for (const DecodedSharding& leaf : *decoded) {
      if (!leaf.manual.empty()) {
        return NoRule(
            fmt::format("a manual sharding outside shard_map's own markers has no rule "
                        "(exported with the old partitioner?): {}",
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
    Instruction* copy = marker->parent()->Add(Opcode::kCopy, marker->shape(), {marker->operand(0)},
                                              marker->name(), marker);
    RETURN_IF_ERROR(ReadAnnotation(*marker, copy, "constraint at " + At(*marker)));
    // GSPMD's form of open dimensions: backend_config "unspecified_dims=[0,2]".
    const std::string& config = marker->attrs().backend_config();
    if (const auto it = out_.annotations.find(copy);
        it != out_.annotations.end() && config.starts_with("unspecified_dims=[")) {
      size_t at = config.find('[') + 1;
      while (at < config.size() && std::isdigit(static_cast<unsigned char>(config[at]))) {
        size_t dim = 0;
        while (at < config.size() && std::isdigit(static_cast<unsigned char>(config[at]))) {
          dim = std::min<size_t>(dim * 10 + (config[at++] - '0'), 1 << 20);
        }
        auto& leaf = it->second.leaves[0];
        if (leaf.has_value() && dim < leaf->dims.size()) leaf->dims[dim].open = true;
        ++at;
      }
    }
    if (out_.annotations.contains(copy)) out_.constraints.insert(copy);
    marker->ReplaceAllUsesWith(copy);
    marker->parent()->Remove(marker);
    return absl::OkStatus();
  }

  // The value itself and which element of a tuple it is (-1: no tuple).
  static std::pair<Instruction*, int64_t> Element(Instruction* value) {
    if (value->opcode() != Opcode::kGetTupleElement) return {value, -1};
    return {value->operand(0), value->attrs().tuple_index()};
  }

  absl::StatusOr<std::vector<Sharding>> Shardings(const Instruction& marker, const char* key) {
    const auto text = hlo::FrontendAttribute(marker, key);
    if (!text) return UserError(fmt::format("{} has no {}", marker.Describe(), key));
    auto shardings = ParseShardings(*text, mesh(), out_.mesh.sdy);
    if (!shardings.ok()) return In(marker, shardings.status());
    return shardings;
  }

  // The shapes of a region's boundary: every shard as large as the body says.
  absl::Status CheckShards(const Instruction& marker, const hlo::Shape& global,
                           const Sharding& sharding, const hlo::Shape& local) {
    bool fits = static_cast<int64_t>(sharding.dims.size()) == global.rank() &&
                global.rank() == local.rank();
    for (int64_t d = 0; fits && d < global.rank(); ++d) {
      fits = local.dims[d] * sharding.Shards(d) == global.dims[d];
    }
    if (fits) return absl::OkStatus();
    return UserError(fmt::format("{}: {} sharded {} is not made of shards {}", marker.Describe(),
                                 global.ToString(), ToString(sharding, mesh()), local.ToString()));
  }

  absl::Status RewriteRegion(Instruction* call) {
    Computation* computation = call->parent();
    ManualRegion region;
    // Operands: elements of what GlobalToLocalShape gives.
    Instruction* entry = nullptr;
    std::vector<Instruction*> operands;
    for (Instruction* operand : call->operands()) {
      const auto [marker, index] = Element(operand);
      if (!IsTarget(*marker, "xla.sdy.GlobalToLocalShape") ||
          (entry != nullptr && marker != entry)) {
        return UserError(
            fmt::format("operand {} of {} does not come from the region's own "
                        "xla.sdy.GlobalToLocalShape",
                        operand->name(), call->Describe()));
      }
      entry = marker;
      operands.push_back(marker->operand(index < 0 ? 0 : index));
    }
    // Results: all go to one LocalToGlobalShape.
    Instruction* exit = nullptr;
    std::vector<Instruction*> users = call->users();
    for (Instruction* user : std::vector<Instruction*>(users)) {
      if (user->opcode() != Opcode::kGetTupleElement) continue;
      users.insert(users.end(), user->users().begin(), user->users().end());
    }
    for (Instruction* user : users) {
      if (user->opcode() == Opcode::kGetTupleElement) continue;
      if (!IsTarget(*user, "xla.sdy.LocalToGlobalShape") || (exit != nullptr && user != exit)) {
        return UserError(
            fmt::format("{} uses the result of {} outside its "
                        "xla.sdy.LocalToGlobalShape",
                        user->name(), call->Describe()));
      }
      exit = user;
    }
    if (exit == nullptr) {
      return NoRule("a shard_map without results has no rule: " + call->Describe());
    }
    ASSIGN_OR_RETURN(region.results, Shardings(*exit, kOutShardings));
    const auto axes_text = hlo::FrontendAttribute(*exit, kManualAxes);
    if (!axes_text) return UserError(exit->Describe() + " has no " + kManualAxes);
    auto manual = ParseManualAxes(*axes_text, mesh());
    if (!manual.ok()) return In(*exit, manual.status());
    region.manual_axes = *manual;
    if (Product(region.manual_axes) != mesh().size()) {
      return NoRule(fmt::format(
          "shard_map over some axes of the mesh ({} of {}) while the others stay automatic has no "
          "rule; name all axes in its specs: {}",
          ToString(region.manual_axes, mesh()), ToString(mesh()), call->Describe()));
    }
    if (entry != nullptr) {
      ASSIGN_OR_RETURN(const std::vector<Sharding> all, Shardings(*entry, kInShardings));
      for (size_t i = 0; i < operands.size(); ++i) {
        const int64_t index = std::max<int64_t>(Element(call->operand(i)).second, 0);
        if (index >= static_cast<int64_t>(all.size())) {
          return UserError(fmt::format("{}: {} in_shardings", entry->Describe(), all.size()));
        }
        region.operands.push_back(all[index]);
        RETURN_IF_ERROR(
            CheckShards(*entry, operands[i]->shape(), all[index], call->operand(i)->shape()));
      }
    }
    const std::vector<const hlo::Shape*> leaves = hlo::Leaves(exit->shape());
    if (region.results.size() != leaves.size() || exit->operands().size() != leaves.size()) {
      return UserError(fmt::format("{}: {} out_shardings for {}", exit->Describe(),
                                   region.results.size(), exit->shape().ToString()));
    }
    for (size_t i = 0; i < leaves.size(); ++i) {
      RETURN_IF_ERROR(CheckShards(*exit, *leaves[i], region.results[i], exit->operand(i)->shape()));
      const int64_t index = Element(exit->operand(i)).second;
      if (index >= 0) region.result_index.push_back(index);
    }

    Instruction* global =
        computation->Add(Opcode::kCall, exit->shape(), operands, call->name(), call);
    global->set_called(call->called());
    RETURN_IF_ERROR(Annotate(global, region.results, "out_specs of " + At(*call), *exit));
    out_.manual_regions[global] = std::move(region);
    exit->ReplaceAllUsesWith(global);
    // Users before what they use.
    std::vector<Instruction*> markers = {exit};
    const auto append = [&](const std::vector<Instruction*>& more) {
      for (Instruction* marker : more) {
        if (std::find(markers.begin(), markers.end(), marker) == markers.end()) {
          markers.push_back(marker);
        }
      }
    };
    append(call->users());
    append({call});
    if (entry != nullptr) {
      append(entry->users());
      append({entry});
    }
    for (Instruction* marker : markers) {
      if (marker->users().empty() && !marker->IsRoot()) computation->Remove(marker);
    }
    return absl::OkStatus();
  }

  absl::Status RewriteMarkers(Computation* computation) {
    const std::vector<Instruction*> order = computation->PostOrder();
    if (computation == module_.entry()) RETURN_IF_ERROR(ReadRootSharding());
    std::unordered_set<const Instruction*> before;
    for (Instruction* instruction : order) {
      if (instruction->opcode() == Opcode::kCall) before.insert(instruction);
    }
    // Regions first: they remove the markers around them.
    for (const Instruction* call : before) TPUSIM_CHECK(IsManualCall(*call), call->name());
    for (Instruction* instruction : order) {
      if (before.contains(instruction)) RETURN_IF_ERROR(RewriteRegion(instruction));
    }
    for (Instruction* instruction : computation->PostOrder()) {
      if (instruction->opcode() != Opcode::kCustomCall) {
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
      if (target == "Sharding" || target == "xla.sdy.FuncResultSharding") {
        RETURN_IF_ERROR(RewriteConstraint(instruction));
      } else if (target == "xla.sdy.PropagationBarrier" || target == "xla.sdy.ShardingGroup") {
        if (!instruction->users().empty() || instruction->IsRoot()) {
          instruction->ReplaceAllUsesWith(instruction->operand(0));
        }
        computation->Remove(instruction);
      }
    }
    return absl::OkStatus();
  }

  // get-tuple-element(tuple(...), i) -> operand i
  static void ForwardTuples(Computation* computation) {
    for (Instruction* element : computation->PostOrder()) {
      if (element->opcode() != Opcode::kGetTupleElement ||
          element->operand(0)->opcode() != Opcode::kTuple) {
        continue;
      }
      element->ReplaceAllUsesWith(element->operand(0)->operand(element->attrs().tuple_index()));
    }
    computation->RemoveDead();
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
        IsManualCall(*root)) {
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
      out_.annotations[copy] = {{root_annotation_.leaves[leaf]}, "result sharding"};
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

  static void DropMarkers(Computation* computation) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!IsTarget(*instruction, "Sharding") &&
          !IsTarget(*instruction, "xla.sdy.FuncResultSharding") &&
          !IsTarget(*instruction, "xla.sdy.PropagationBarrier")) {
        continue;
      }
      instruction->ReplaceAllUsesWith(instruction->operand(0));
      computation->Remove(instruction);
    }
  }

  static void StripAttributes(Instruction* instruction) {
    hlo::pb::HloInstructionProto& attrs = instruction->mutable_attrs();
    attrs.clear_sharding();
    for (const char* key : {kSharding, kInShardings, kOutShardings, kManualAxes, "inlineable",
                            "xla.sdy.sharding_rule"}) {
      hlo::RemoveFrontendAttribute(instruction, key);
    }
    if (attrs.frontend_attributes().map().empty()) attrs.clear_frontend_attributes();
  }

  NormalisedModule& out_;
  hlo::Module& module_;
  std::unordered_set<const Computation*> partitioned_;
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
    if (!CallsItsOwn(next->opcode())) continue;
    for (Computation* called : next->called()) {
      for (Instruction* inner : called->instructions()) work.push_back(inner);
    }
  }
}

absl::StatusOr<NormalisedModule> Normalise(const hlo::Module& module, int64_t num_partitions) {
  NormalisedModule normalised;
  ASSIGN_OR_RETURN(normalised.mesh, FindMesh(module, num_partitions));
  normalised.module = module.Clone();
  RETURN_IF_ERROR(InlineCalls(normalised.module.get()));
  RETURN_IF_ERROR(Normaliser(&normalised).Run());
  return normalised;
}

}  // namespace tpusim::sharding
