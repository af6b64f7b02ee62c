#include "workloads/sharding/propagation/propagate.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/transforms/merge_reduces.h"
#include "workloads/sharding/normalised/normalise.h"
#include "workloads/sharding/propagation/batch_indices.h"
#include "workloads/sharding/propagation/origins.h"
#include "workloads/sharding/propagation/propagation_graph.h"
#include "workloads/sharding/propagation/unreduced.h"
#include "workloads/sharding/rules/rolls.h"
#include "workloads/sharding/stated/stated_constraints.h"
#include "workloads/sharding/stated/stated_donations.h"
#include "workloads/sharding/stated/stated_shardings.h"

namespace tpusim::sharding {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// The order in which ops come to speak; every step includes those before it.
enum Step { kSingleUse, kAnyUse, kPassThroughFactors, kNotBroadcast, kEverything, kNumSteps };
constexpr const char* kStepNames[] = {"single-use ops that keep dimensions",
                                      "ops that keep dimensions", "pass-through dimensions",
                                      "all but broadcasts forward", "all ops"};

// The directions in which factors of an op may flow in a step: pass-through factors, and the
// others. `rank` grows whenever it may do more.
struct Permission {
  Flow passing = Flow::kNone, other = Flow::kNone;
  int8_t rank = 0;
};

Permission PermissionIn(const Op& op, int step) {
  const bool early = step >= kAnyUse || op.single_use;
  switch (op.priority) {
    case RulePriority::kElementwise:
      if (!early) return {};
      if (op.barrier) return {*op.barrier, *op.barrier, 1};
      return {Flow::kBoth, Flow::kBoth, 1};
    case RulePriority::kForwardFirst:
      if (step >= kNotBroadcast) return {Flow::kBoth, Flow::kBoth, 3};
      if (step >= kPassThroughFactors) return {Flow::kBoth, Flow::kForward, 2};
      return early ? Permission{Flow::kForward, Flow::kForward, 1} : Permission{};
    case RulePriority::kBackwardFirst:
      if (step >= kEverything) return {Flow::kBoth, Flow::kBoth, 3};
      if (step >= kNotBroadcast) return {Flow::kBackward, Flow::kBackward, 2};
      return step >= kPassThroughFactors ? Permission{Flow::kBackward, Flow::kNone, 1}
                                         : Permission{};
    case RulePriority::kGeneral:
      if (step >= kNotBroadcast) {
        return {Flow::kBoth, Flow::kBoth, static_cast<int8_t>(op.only_passes ? 1 : 2)};
      }
      return step >= kPassThroughFactors ? Permission{Flow::kBoth, Flow::kNone, 1} : Permission{};
  }
  return {};
}

class Propagation {
 public:
  Propagation(PropagationGraph* graph, bool basic_first)
      : graph_(*graph), basic_first_(basic_first) {}

  void Run() {
    std::set<int32_t> priorities = {0};
    for (const ShardingNode& node : graph_.nodes) {
      for (const DimSharding& dim : node.sharding.dims) priorities.insert(dim.priority);
    }
    several_priorities_ = priorities.size() > 1;
    done_.resize(graph_.ops.size());
    waiting_.resize(graph_.ops.size());
    for (int32_t priority : priorities) {
      priority_ = priority;
      std::fill(done_.begin(), done_.end(), -1);
      for (step_ = 0; step_ < kNumSteps; ++step_) {
        for (bool aggressive : {false, true}) {
          if (!aggressive && !basic_first_) continue;
          aggressive_ = aggressive;
          Round();
        }
      }
    }
  }

 private:
  // Every op once, in program order; an op whose tensors changed since comes
  // again, before the others.
  void Round() {
    std::fill(waiting_.begin(), waiting_.end(), 1);
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      if (graph_.ops[i].is_result) Take(static_cast<int32_t>(i));
    }
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      if (waiting_[i] == 0) continue;
      Take(static_cast<int32_t>(i));
    }
  }

  void Take(int32_t index) {
    stack_.push_back(index);
    while (!stack_.empty()) {
      const int32_t next = stack_.back();
      stack_.pop_back();
      waiting_[next] = 0;
      Visit(next);
    }
  }

  void Notify(int32_t node, int32_t by) {
    const std::span<const int32_t> ops = graph_.OpsOf(node);
    // The first user speaks first; the op that makes the value, last.
    const auto wake = [&](int32_t op) {
      if (op == by) return;
      done_[op] = -1;
      if (waiting_[op] != 0) return;
      waiting_[op] = 1;
      stack_.push_back(op);
    };
    if (!ops.empty()) wake(ops[0]);
    for (size_t i = ops.size(); i-- > 1;) wake(ops[i]);
  }

  bool AnySharded(const Op& op) const {
    for (const TensorRef& ref : op.tensors) {
      for (const DimSharding& dim : graph_.nodes[ref.node].sharding.dims) {
        if (!dim.axes.empty()) return true;
      }
    }
    return false;
  }

  // The tensor as this round sees it: dimensions of later priorities are whole,
  // closed, and their axes no other value's.
  void FillTensor(const Op& op, size_t t) {
    const TensorRef& ref = op.tensors[t];
    const ShardingNode& node = graph_.nodes[ref.node];
    TensorView* view = &view_.tensors[t];
    if (!ref.inside && !several_priorities_) {
      FillView(node.sharding, op.FactorsOf(t), op.rule->factors, view);
    } else {
      Sharding sharding = graph_.Seen(ref);
      for (DimSharding& dim : sharding.dims) {
        if (dim.priority <= priority_) continue;
        sharding.replicated.insert(sharding.replicated.end(), dim.axes.begin(), dim.axes.end());
        dim.axes.clear();
        dim.open = false;
      }
      FillView(sharding, op.FactorsOf(t), op.rule->factors, view);
    }
    const Axes& manual = graph_.contexts[op.context];
    if (ref.inside) view->pinned.insert(view->pinned.end(), manual.begin(), manual.end());
  }

  void Visit(int32_t index) {
    const Op& op = graph_.ops[index];
    const Permission permission = PermissionIn(op, step_);
    // An op that had the same say and changed nothing has nothing new to say.
    const int8_t say = static_cast<int8_t>(permission.rank * 2 + (aggressive_ ? 1 : 0));
    if (permission.rank == 0 || done_[index] >= say) return;
    done_[index] = say;
    if (!AnySharded(op)) return;
    const std::vector<Factor>& factors = op.rule->factors;
    flow_.resize(factors.size());
    for (size_t f = 0; f < factors.size(); ++f) {
      const bool passes = factors[f].kind == FactorKind::kPassThrough;
      flow_[f] = factors[f].blocked ? Flow::kNone : passes ? permission.passing : permission.other;
    }
    view_.tensors.resize(op.tensors.size());
    view_.num_operands = op.num_operands;
    view_.elementwise =
        op.instruction != nullptr && op.kind == OpKind::kHlo &&
        (hlo::IsElementwise(op.instruction->opcode()) || op.instruction->opcode() == Opcode::kCopy);
    for (size_t t = 0; t < op.tensors.size(); ++t) FillTensor(op, t);
    const std::vector<bool> changed = aggressive_ ? PropagateAggressive(factors, flow_, view_)
                                                  : PropagateBasic(factors, flow_, view_);
    for (size_t t = 0; t < op.tensors.size(); ++t) {
      if (changed[t]) Store(index, t);
    }
  }

  void Store(int32_t index, size_t t) {
    const Op& op = graph_.ops[index];
    const TensorRef& ref = op.tensors[t];
    // The same value in another place of the op has been stored already.
    for (size_t before = 0; before < t; ++before) {
      if (op.tensors[before].node == ref.node && stored_ == index) {
        done_[index] = -1;
        if (waiting_[index] == 0) stack_.push_back(index), waiting_[index] = 1;
        return;
      }
    }
    ShardingNode& node = graph_.nodes[ref.node];
    const TensorFactors& tensor = op.FactorsOf(t);
    bool any = false;
    for (size_t d = 0; d < tensor.size(); ++d) {
      DimSharding& dim = node.sharding.dims[d];
      if (tensor[d].empty() || !dim.open || dim.priority > priority_) continue;
      Axes axes = DimAxes(view_.tensors[t], tensor[d], op.rule->factors);
      if (ref.inside) axes = Concat(node.manual[d], axes);
      if (axes == dim.axes || Product(axes) <= Product(dim.axes)) continue;
      for (const AxisRef& axis : axes) {
        const bool had = std::ranges::any_of(
            dim.axes, [&](const AxisRef& before) { return before.axis == axis.axis; });
        if (!had) graph_.adoptions.push_back({ref.node, axis.axis, index});
      }
      dim.axes = std::move(axes);
      any = true;
    }
    if (!any) return;
    stored_ = index;
    if (node.from_op < 0) {
      node.from_op = index;
      node.from_tensor = Source(op, t);
      node.step = static_cast<int8_t>(step_);
      node.aggressive = aggressive_;
      node.priority = priority_;
    }
    Notify(ref.node, index);
  }

  // Returns the tensor that new axes are from: the first other tensor that had axes.
  int32_t Source(const Op& op, size_t t) const {
    for (size_t f = 0; f < op.rule->factors.size(); ++f) {
      if (view_.tensors[t].factors[f].axes.empty()) continue;
      for (size_t s = 0; s < op.tensors.size(); ++s) {
        const ShardingNode& node = graph_.nodes[op.tensors[s].node];
        const bool had = node.annotated || node.from_op >= 0;
        if (s != t && had && op.tensors[s].node != op.tensors[t].node &&
            !view_.tensors[s].factors[f].axes.empty()) {
          return static_cast<int32_t>(s);
        }
      }
    }
    return -1;
  }

  PropagationGraph& graph_;
  OpView view_;  // of the op at hand
  std::vector<Flow> flow_;
  std::vector<int8_t> done_;  // what an op has said since its tensors changed
  std::vector<char> waiting_;
  std::vector<int32_t> stack_;
  int32_t priority_ = 0;
  int step_ = 0;
  int32_t stored_ = -1;
  bool aggressive_ = false;
  const bool basic_first_;
  bool several_priorities_ = false;
};

// "operand 0 of %dot.1 (pass-through dimensions)"
std::string Why(const PropagationGraph& graph, int32_t index) {
  const ShardingNode& node = graph.nodes[index];
  if (node.from_op < 0) return node.reason.empty() ? "nothing shards it" : node.reason;
  const Op& op = graph.ops[node.from_op];
  std::string text;
  const std::string& name = op.instruction->name();
  bool receives_as_result = false;
  for (size_t t = op.num_operands; t < op.tensors.size(); ++t) {
    receives_as_result = receives_as_result || op.tensors[t].node == index;
  }
  switch (op.kind) {
    case OpKind::kHlo:
      if (op.instruction->opcode() == Opcode::kCopy && !receives_as_result) {
        text = fmt::format("its user {}", name);
      } else if (node.from_tensor < 0) {
        text = name;
      } else if (node.from_tensor < op.num_operands) {
        const Instruction* operand = op.instruction->operand(node.from_tensor);
        text = receives_as_result
                   ? fmt::format("operand {} ({})", node.from_tensor, operand->name())
                   : fmt::format("{}, operand {} of {}", operand->name(), node.from_tensor, name);
      } else {
        text = fmt::format("the result of {}", name);
      }
      break;
    case OpKind::kLoopCarry:
      text = fmt::format("element {} of the carry of {}", op.index, name);
      break;
    case OpKind::kBranchResult:
      text = fmt::format("result {} of the branches of {}", op.index, name);
      break;
    case OpKind::kRegionOperand:
      text = fmt::format("operand {} of {}", op.index, name);
      break;
    case OpKind::kRegionResult:
      text = fmt::format("result {} of {}", op.index, name);
      break;
  }
  std::string said = node.reason.empty() ? "" : node.reason + ", then ";
  text = fmt::format("{}from {}; step {} ({}{})", said, text, static_cast<int>(node.step),
                     kStepNames[node.step], node.aggressive ? "" : ", without conflicts");
  if (node.priority > 0) text += fmt::format(", user priority p{}", node.priority);
  return text;
}

// Returns the part of a sharding that a result of the program can have: whole axes that divide the
// dimension. Axes that the program asked for stay.
Sharding ForResult(const Sharding& sharding, const hlo::Shape& shape, const Mesh& mesh) {
  Sharding result = sharding;
  for (size_t d = 0; d < result.dims.size(); ++d) {
    if (!result.dims[d].open) continue;
    Axes kept;
    int64_t left = shape.dims[d];
    for (const AxisRef& axis : Joined(result.dims[d].axes)) {
      if (axis != FullAxis(mesh, axis.axis) || left % axis.size != 0) break;
      kept.push_back(axis);
      left /= axis.size;
    }
    result.dims[d].axes = std::move(kept);
  }
  return result;
}

class Finisher {
 public:
  Finisher(NormalisedModule* in, PropagationGraph* graph) : in_(*in), graph_(*graph) {}

  absl::StatusOr<ShardedModule> Finish(bool reasons) {
    ShardedModule out;
    NestBoundaries();
    FinishRoots();
    out.shardings.reserve(in_.module->next_id());
    OriginTexts origins(in_, graph_);
    for (const Instruction* instruction : graph_.instructions()) {
      const std::span<const TensorRef> refs = graph_.Values(instruction);
      ValueSharding& value = out.shardings[instruction];
      value.leaves.reserve(refs.size());
      for (const TensorRef& ref : refs) value.leaves.push_back(Final(graph_.Seen(ref)));
      if (refs.empty() || !reasons) continue;
      value.reason = Why(graph_, refs[0].node);
      if (instruction->shape().IsArray()) value.origins = origins.Of(refs[0].node, value.leaves[0]);
    }
    out.origins = origins.Take();
    for (auto& [copy, sharding] : copies_) {
      out.shardings[copy] = {{Final(std::move(sharding))}, "result of the program or region", {}};
      in_.constraints.insert(copy);
    }
    for (const Instruction* tuple : tuples_) {
      ValueSharding& value = out.shardings[tuple];
      value.leaves.clear();
      for (const Instruction* operand : tuple->operands()) {
        const ValueSharding& part = out.shardings.at(operand);
        value.leaves.insert(value.leaves.end(), part.leaves.begin(), part.leaves.end());
        value.reason = part.reason;
      }
    }
    // Copies of constants that nothing tells apart any more.
    JoinConstants(in_.constant_copies, [&](const Instruction& a, const Instruction& b) {
      return SamePlacement(out.shardings.at(&a).leaves[0], out.shardings.at(&b).leaves[0]);
    });
    if (!in_.constant_copies.empty()) {
      std::vector<const Instruction*> removed;
      for (Computation* computation : in_.partitioned) computation->RemoveDead(&removed);
      for (const Instruction* gone : removed) in_.constraints.erase(gone);
    }
    for (auto& [call, region] : in_.manual_regions) {
      if (!region.partitioned) continue;
      const std::vector<Instruction*> parameters = call->called()[0]->parameters();
      for (size_t i = 0; i < region.operands.size(); ++i) {
        region.operands[i] = Final(graph_.Seen({graph_.Values(parameters[i])[0].node, false}));
      }
      for (size_t i = 0; i < region.results.size(); ++i) {
        region.results[i] = Final(graph_.Seen(graph_.Values(call)[i]));
      }
    }
    out.module = std::move(in_.module);
    out.mesh = in_.mesh.mesh;
    out.num_partitions = out.mesh.size();
    out.constraints = std::move(in_.constraints);
    out.manual_regions = std::move(in_.manual_regions);
    return out;
  }

 private:
  static Sharding Final(Sharding sharding) {
    for (DimSharding& dim : sharding.dims) {
      dim.open = false;
      dim.priority = 0;
      if (dim.axes.size() > 1 || Product(dim.axes) == 1) dim.axes = Joined(dim.axes);
    }
    sharding.replicated.clear();
    return sharding;
  }

  // A region's part of a dimension that is split further inside of it: the shards must be
  // even there, or they do not split the whole dimension. 18 elements over two manual shards
  // of 9 and two more are 5 + 4, 5 + 4; four shards of 18 would be 5, 5, 5, 3.
  void NestBoundaries() {
    const auto nest = [&](ShardingNode& node, const hlo::Shape& whole) {
      for (size_t d = 0; d < node.manual.size(); ++d) {
        if (node.manual[d].empty()) continue;
        Axes& axes = node.sharding.dims[d].axes;
        axes = Joined(axes);
        Axes kept = node.manual[d];
        for (const AxisRef& axis : AfterPrefix(node.manual[d], axes)) {
          if (whole.dims[d] % (Product(kept) * axis.size) != 0) break;
          kept.push_back(axis);
        }
        axes = Joined(kept);
      }
    };
    for (const auto& [call, region] : in_.manual_regions) {
      if (!region.partitioned) continue;
      const std::vector<Instruction*> parameters = call->called()[0]->parameters();
      for (size_t i = 0; i < region.operands.size(); ++i) {
        nest(graph_.nodes[graph_.Values(parameters[i])[0].node], call->operand(i)->shape());
      }
      const std::vector<const hlo::Shape*> results = hlo::Leaves(call->shape());
      for (size_t i = 0; i < region.results.size(); ++i) {
        nest(graph_.nodes[graph_.Values(call)[i].node], *results[i]);
      }
    }
  }

  // Results of the program and of regions that must differ from the values that
  // they are made of become copies.
  void FinishRoots() {
    FinishRoot(in_.module->entry(), [&](size_t, const TensorRef& ref, const hlo::Shape& shape) {
      return ForResult(graph_.Seen(ref), shape, in_.mesh.mesh);
    });
    for (const Computation* computation : in_.partitioned) {
      const auto it = in_.region_of.find(computation);
      if (it == in_.region_of.end()) continue;
      const Instruction* call = it->second;
      const ManualRegion& region = in_.manual_regions.at(call);
      std::vector<int64_t> result_of(hlo::Leaves(computation->root()->shape()).size(), -1);
      for (size_t i = 0; i < region.results.size(); ++i) {
        result_of[region.result_index.empty() ? 0 : region.result_index[i]] =
            static_cast<int64_t>(i);
      }
      FinishRoot(const_cast<Computation*>(computation),
                 [&](size_t leaf, const TensorRef& ref, const hlo::Shape&) {
                   if (result_of[leaf] < 0) return graph_.Seen(ref);
                   return graph_.Seen({graph_.Values(call)[result_of[leaf]].node, true});
                 });
    }
  }

  template <typename Wanted>
  void FinishRoot(Computation* computation, Wanted wanted) {
    Instruction* root = computation->root();
    const auto copy = [&](Instruction* value, size_t leaf) -> Instruction* {
      const TensorRef ref = graph_.Values(value)[0];
      const Sharding sharding = wanted(leaf, ref, value->shape());
      if (SamePlacement(sharding, graph_.Seen(ref))) return value;
      Instruction* made =
          computation->Add(Opcode::kCopy, value->shape(), {value}, value->name(), value);
      copies_.push_back({made, sharding});
      return made;
    };
    if (root->shape().IsArray()) {
      computation->set_root(copy(root, 0));
      return;
    }
    if (root->opcode() != Opcode::kTuple) return;
    size_t leaf = 0;
    bool any = false;
    for (size_t i = 0; i < root->operands().size(); ++i) {
      Instruction* value = root->operand(i);
      if (value->shape().IsArray()) {
        Instruction* made = copy(value, leaf++);
        if (made != value) root->ReplaceOperand(i, made), any = true;
      } else {
        leaf += hlo::Leaves(value->shape()).size();
      }
    }
    if (any) tuples_.push_back(root);
  }

  struct Copy {
    Instruction* copy;
    Sharding sharding;
  };
  NormalisedModule& in_;
  PropagationGraph& graph_;
  std::vector<Copy> copies_;
  std::vector<const Instruction*> tuples_;  // whose elements became copies
};

}  // namespace

absl::StatusOr<ShardedModule> ShardModule(const hlo::Module& module, int64_t num_partitions,
                                          const PropagationOptions& options) {
  return ShardModule(module.Clone(), num_partitions, options);
}

absl::StatusOr<ShardedModule> ShardModule(std::unique_ptr<hlo::Module> module,
                                          int64_t num_partitions,
                                          const PropagationOptions& options) {
  ASSIGN_OR_RETURN(NormalisedModule normalised, Normalise(std::move(module), num_partitions));
  return ShardModule(std::move(normalised), options);
}

absl::StatusOr<ShardedModule> ShardModule(NormalisedModule normalised,
                                          const PropagationOptions& options) {
  RETURN_IF_ERROR(StateMesh(options.mesh, normalised));
  RETURN_IF_ERROR(StateArguments(options.arguments, normalised));
  if (!options.mesh.empty()) RETURN_IF_ERROR(CheckStatedMesh(normalised));
  RETURN_IF_ERROR(StateKept(options.kept, normalised));
  RETURN_IF_ERROR(StateDonated(options.donated, normalised));
  RETURN_IF_ERROR(StateConstraints(options.constraints, normalised));
  RETURN_IF_ERROR(hlo::VerifyCollectives(*normalised.module, normalised.mesh.mesh.size()));
  if (normalised.mesh.mesh.size() > 1) {
    std::unordered_set<const Instruction*> copies;
    for (const auto& [copy, original] : normalised.constant_copies) {
      copies.insert(copy);
      copies.insert(original);
    }
    for (Computation* computation : normalised.partitioned) {
      hlo::MergeReduces(computation, [&](const Instruction* inner) {
        return normalised.annotations.contains(inner) || normalised.constraints.contains(inner) ||
               normalised.sharding_groups.contains(inner);
      });
      FindRolls(computation, [&](const Instruction* instruction) {
        return normalised.annotations.contains(instruction) ||
               normalised.constraints.contains(instruction) ||
               normalised.sharding_groups.contains(instruction) || copies.contains(instruction);
      });
    }
  }
  PropagationGraph graph(normalised);
  RETURN_IF_ERROR(graph.Build());
  Propagation(&graph, options.basic_first).Run();
  CarryUnreduced(graph);
  ASSIGN_OR_RETURN(ShardedModule sharded, Finisher(&normalised, &graph).Finish(options.reasons));
  if (sharded.mesh.size() > 1) {
    const hlo::CallGraph calls(*sharded.module);
    const auto caller_of = [&](const Computation& called) { return calls.OnlyCallerOf(called); };
    for (Computation* computation : normalised.partitioned) {
      const auto made = [&](const Instruction* part, const Instruction* whole) {
        ValueSharding value = sharded.shardings.at(whole);
        sharded.shardings[part] = std::move(value);
      };
      FindBatchIndices(computation, caller_of, made);
    }
  }
  PassUnreduced(sharded);
  sharded.module->Cleanup();
  return sharded;
}

std::string ToString(const ShardedModule& sharded) {
  std::string text =
      fmt::format("module {} over {}\n", sharded.module->name(), ToString(sharded.mesh));
  for (const Computation* computation : sharded.module->computations()) {
    if (computation->root() == nullptr || !sharded.shardings.contains(computation->root())) {
      continue;
    }
    text += fmt::format("\n{}{} {{\n", computation == sharded.module->entry() ? "ENTRY " : "",
                        computation->name());
    for (const Instruction* instruction : computation->PostOrder()) {
      const ValueSharding& value = sharded.shardings.at(instruction);
      std::string shardings;
      for (const Sharding& leaf : value.leaves) {
        if (!shardings.empty()) shardings += ", ";
        shardings += ToString(leaf, sharded.mesh);
      }
      if (instruction->shape().IsTuple()) shardings = "(" + shardings + ")";
      std::string operands;
      for (const Instruction* operand : instruction->operands()) {
        operands += (operands.empty() ? "" : ", ") + operand->name();
      }
      text += fmt::format("  {}{} = {} {}({}), sharding={}  // {}\n",
                          instruction->IsRoot() ? "ROOT " : "", instruction->name(),
                          instruction->shape().ToString(), hlo::OpcodeName(instruction->opcode()),
                          operands, shardings, value.reason);
    }
    text += "}\n";
  }
  return text;
}

}  // namespace tpusim::sharding
