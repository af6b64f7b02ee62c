#include "workloads/sharding/propagate.h"

#include <algorithm>
#include <deque>
#include <set>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/attributes.h"
#include "workloads/sharding/normalise.h"
#include "workloads/sharding/projection.h"
#include "workloads/sharding/rolls.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// One sharding that is looked for. Several HLO values may be one node: a tuple's
// element and what it was made of, a loop's result and its body's parameter.
struct Node {
  hlo::Shape shape;
  Sharding sharding;
  std::string reason;
  std::vector<int32_t> ops;  // that it takes part in
};

struct Op {
  ShardingRule rule;
  std::vector<int32_t> tensors;  // nodes: operands, then results
  size_t num_operands = 0;
  std::string name;
  RulePriority priority = RulePriority::kGeneral;
  bool single_use = false;
};

// The order in which ops come to speak; every step includes those before it.
enum Step { kSingleUse, kAnyUse, kPassThroughFactors, kNotBroadcast, kEverything, kNumSteps };

// Which tensors of an op may change in a step.
struct Direction {
  bool forward = false, backward = false;
};

Direction DirectionIn(const Op& op, int step) {
  switch (op.priority) {
    case RulePriority::kElementwise:
      return step >= kAnyUse || op.single_use ? Direction{true, true} : Direction{};
    case RulePriority::kForwardFirst:
      if (step >= kPassThroughFactors) return {true, true};
      return {step >= kAnyUse || op.single_use, false};
    case RulePriority::kBackwardFirst:
      return {step >= kEverything, step >= kPassThroughFactors};
    case RulePriority::kGeneral:
      return {step >= kPassThroughFactors, step >= kPassThroughFactors};
  }
  return {};
}

class Propagation {
 public:
  explicit Propagation(const NormalisedModule& in) : in_(in) {}

  absl::Status Build() {
    for (const Computation* computation : in_.partitioned) {
      for (const Instruction* instruction : computation->PostOrder()) {
        RETURN_IF_ERROR(AddInstruction(instruction));
      }
    }
    // Both ends of a carry are known only now.
    for (const Computation* computation : in_.partitioned) {
      for (const Instruction* instruction : computation->PostOrder()) AddCarries(instruction);
    }
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (int32_t node : ops_[i].tensors) {
        std::vector<int32_t>& list = nodes_[node].ops;
        if (list.empty() || list.back() != static_cast<int32_t>(i)) {
          list.push_back(static_cast<int32_t>(i));
        }
      }
    }
    return absl::OkStatus();
  }

  void Run() {
    std::set<int32_t> priorities = {0};
    for (const Node& node : nodes_) {
      for (const DimSharding& dim : node.sharding.dims) priorities.insert(dim.priority);
    }
    for (int32_t priority : priorities) {
      priority_ = priority;
      for (int step = 0; step < kNumSteps; ++step) {
        for (bool aggressive : {false, true}) Fixpoint(step, aggressive);
      }
    }
  }

  void Finish(ShardedModule* out) {
    for (Node& node : nodes_) {
      for (DimSharding& dim : node.sharding.dims) {
        dim.open = false;
        dim.priority = 0;
        dim.axes = Joined(dim.axes);
      }
      node.sharding.replicated.clear();
      if (node.reason.empty()) node.reason = "nothing shards it";
    }
    for (const auto& [instruction, list] : values_) {
      ValueSharding value;
      for (int32_t node : list) {
        value.leaves.push_back(nodes_[node].sharding);
        if (value.reason.empty()) value.reason = nodes_[node].reason;
      }
      out->shardings[instruction] = std::move(value);
    }
  }

 private:
  int32_t NewNode(const hlo::Shape& shape) {
    Node node;
    node.shape = shape;
    node.sharding = Replicated(shape.rank());
    for (DimSharding& dim : node.sharding.dims) dim.open = true;
    nodes_.push_back(std::move(node));
    return static_cast<int32_t>(nodes_.size()) - 1;
  }

  std::vector<int32_t> NewNodes(const hlo::Shape& shape) {
    std::vector<int32_t> list;
    for (const hlo::Shape* leaf : hlo::Leaves(shape)) list.push_back(NewNode(*leaf));
    return list;
  }

  int32_t FixedNode(const hlo::Shape& shape, const Sharding& sharding, std::string reason) {
    const int32_t node = NewNode(shape);
    nodes_[node].sharding = sharding;
    nodes_[node].reason = std::move(reason);
    return node;
  }

  // An op that keeps a value as it is: reshards are allowed, not wanted.
  void AddIdentity(int32_t from, int32_t to, std::string name) {
    Op op;
    const hlo::Shape& shape = nodes_[from].shape;
    op.rule.operands.emplace_back(shape.rank());
    op.rule.results.emplace_back(shape.rank());
    for (int64_t d = 0; d < shape.rank(); ++d) {
      rules::Tie(op.rule, shape.dims[d], FactorKind::kPassThrough,
                 {&op.rule.operands[0][d], &op.rule.results[0][d]});
    }
    op.tensors = {from, to};
    op.num_operands = 1;
    op.name = std::move(name);
    op.priority = RulePriority::kElementwise;
    op.single_use = true;
    ops_.push_back(std::move(op));
  }

  absl::Status AddInstruction(const Instruction* instruction) {
    if (values_.contains(instruction)) return absl::OkStatus();  // a loop's parameter
    std::vector<int32_t>& list = values_[instruction];
    switch (instruction->opcode()) {
      case Opcode::kTuple:
        for (const Instruction* operand : instruction->operands()) {
          const std::vector<int32_t>& more = values_.at(operand);
          list.insert(list.end(), more.begin(), more.end());
        }
        return absl::OkStatus();
      case Opcode::kGetTupleElement: {
        size_t first = 0;
        const hlo::Shape& tuple = instruction->operand(0)->shape();
        const int64_t index = instruction->attrs().tuple_index();
        for (int64_t i = 0; i < index; ++i) first += hlo::Leaves(tuple.tuple[i]).size();
        const auto begin = values_.at(instruction->operand(0)).begin() + first;
        list.assign(begin, begin + hlo::Leaves(instruction->shape()).size());
        return absl::OkStatus();
      }
      case Opcode::kOptBarrier:
        list = values_.at(instruction->operand(0));
        return absl::OkStatus();
      case Opcode::kWhile:
        list = NewNodes(instruction->shape());
        for (const Computation* called : instruction->called()) {
          values_[called->parameters()[0]] = list;
        }
        return absl::OkStatus();
      default:
        break;
    }
    list = NewNodes(instruction->shape());
    if (const auto it = in_.annotations.find(instruction); it != in_.annotations.end()) {
      for (size_t i = 0; i < list.size(); ++i) {
        if (!it->second.leaves[i].has_value()) continue;
        nodes_[list[i]].sharding = *it->second.leaves[i];
        nodes_[list[i]].reason = it->second.reason;
      }
    }
    if (instruction->opcode() == Opcode::kParameter) return absl::OkStatus();
    if (instruction->opcode() == Opcode::kConditional) return absl::OkStatus();  // AddCarries
    if (const auto it = in_.manual_regions.find(instruction); it != in_.manual_regions.end()) {
      for (size_t i = 0; i < it->second.operands.size(); ++i) {
        const Instruction* operand = instruction->operand(i);
        const int32_t wanted =
            FixedNode(operand->shape(), it->second.operands[i],
                      fmt::format("in_specs[{}] of {}", i, instruction->name()));
        AddIdentity(values_.at(operand)[0], wanted, instruction->name());
      }
      return absl::OkStatus();
    }
    if (in_.mesh.mesh.size() == 1) return absl::OkStatus();
    Op op;
    ASSIGN_OR_RETURN(op.rule, RuleFor(*instruction));
    for (const Instruction* operand : instruction->operands()) {
      TPUSIM_CHECK(values_.at(operand).size() == 1, "tuple operand of " + instruction->Describe());
      op.tensors.push_back(values_.at(operand)[0]);
    }
    op.num_operands = op.tensors.size();
    op.tensors.insert(op.tensors.end(), list.begin(), list.end());
    op.name = instruction->name();
    op.priority = PriorityOf(instruction->opcode());
    op.single_use = instruction->users().size() <= 1;
    // A value asked to stay unreduced: what makes the partial sums leaves them.
    if (in_.constraints.contains(instruction)) {
      Node& from = nodes_[op.tensors[0]];
      const Sharding& to = nodes_[list[0]].sharding;
      if (!to.unreduced.empty() && from.reason.empty() &&
          instruction->operand(0)->users().size() == 1) {
        from.sharding = to;
        from.reason = nodes_[list[0]].reason;
      }
    }
    ops_.push_back(std::move(op));
    return absl::OkStatus();
  }

  void AddCarries(const Instruction* instruction) {
    if (instruction->opcode() == Opcode::kWhile) {
      const std::vector<int32_t>& carry = values_.at(instruction);
      const std::vector<int32_t>& init = values_.at(instruction->operand(0));
      const std::vector<int32_t>& next = values_.at(instruction->called()[0]->root());
      for (size_t i = 0; i < carry.size(); ++i) {
        AddIdentity(init[i], carry[i], "the initial value of " + instruction->name());
        if (next[i] != carry[i]) AddIdentity(next[i], carry[i], "the body of " + instruction->name());
      }
    } else if (instruction->opcode() == Opcode::kConditional) {
      const std::vector<int32_t>& result = values_.at(instruction);
      for (size_t b = 0; b < instruction->called().size(); ++b) {
        const Computation* branch = instruction->called()[b];
        const std::vector<int32_t>& operand = values_.at(instruction->operand(b + 1));
        const std::vector<int32_t>& parameter = values_.at(branch->parameters()[0]);
        const std::vector<int32_t>& root = values_.at(branch->root());
        const std::string name = fmt::format("branch {} of {}", b, instruction->name());
        for (size_t i = 0; i < operand.size(); ++i) AddIdentity(operand[i], parameter[i], name);
        for (size_t i = 0; i < root.size(); ++i) AddIdentity(root[i], result[i], name);
      }
    }
  }

  void Fixpoint(int step, bool aggressive) {
    std::deque<int32_t> work;
    std::vector<char> queued(ops_.size(), 1);
    for (size_t i = 0; i < ops_.size(); ++i) work.push_back(static_cast<int32_t>(i));
    while (!work.empty()) {
      const int32_t index = work.front();
      work.pop_front();
      queued[index] = 0;
      for (int32_t node : Visit(ops_[index], step, aggressive)) {
        for (int32_t op : nodes_[node].ops) {
          if (queued[op]) continue;
          queued[op] = 1;
          work.push_back(op);
        }
      }
    }
  }

  // The tensor as this round sees it: dimensions of later priorities are silent.
  Projection Visible(const Node& node, const TensorFactors& tensor, const Op& op) const {
    Sharding sharding = node.sharding;
    Axes silent;
    for (DimSharding& dim : sharding.dims) {
      if (dim.priority <= priority_) continue;
      silent = Concat(silent, dim.axes);
      dim.axes.clear();
    }
    Projection projection = Project(sharding, tensor, op.rule.factors);
    projection.overflow = Concat(projection.overflow, silent);
    return projection;
  }

  const TensorFactors& Tensor(const Op& op, size_t t) const {
    return t < op.num_operands ? op.rule.operands[t] : op.rule.results[t - op.num_operands];
  }

  // One op's factors, one after the other. Returns the nodes that changed.
  std::vector<int32_t> Visit(const Op& op, int step, bool aggressive) {
    const Direction direction = DirectionIn(op, step);
    if (!direction.forward && !direction.backward) return {};
    std::vector<Projection> view;
    for (size_t t = 0; t < op.tensors.size(); ++t) {
      view.push_back(Visible(nodes_[op.tensors[t]], Tensor(op, t), op));
    }
    std::vector<int32_t> changed;
    for (size_t f = 0; f < op.rule.factors.size(); ++f) {
      const Factor& factor = op.rule.factors[f];
      if (factor.kind == FactorKind::kNeedReplication) continue;
      if (factor.kind != FactorKind::kPassThrough && step < kNotBroadcast) continue;
      const auto [source, axes] = Choose(op, view, f, aggressive);
      if (source < 0) continue;
      for (size_t t = 0; t < op.tensors.size(); ++t) {
        const bool is_operand = t < op.num_operands;
        if (is_operand ? !direction.backward : !direction.forward) continue;
        if (!Extend(op, t, f, axes, view[t])) continue;
        Node& node = nodes_[op.tensors[t]];
        if (node.reason.empty()) {
          node.reason = source < static_cast<int32_t>(op.num_operands)
                            ? fmt::format("from operand {} of {}", source, op.name)
                            : fmt::format("from the result of {}", op.name);
          if (op.name.find(' ') != std::string::npos) node.reason = "from " + op.name;
        }
        changed.push_back(op.tensors[t]);
        // The same value may be an operand twice.
        for (size_t other = 0; other < op.tensors.size(); ++other) {
          if (other != t && op.tensors[other] == op.tensors[t]) {
            view[other] = Visible(node, Tensor(op, other), op);
          }
        }
      }
    }
    return changed;
  }

  static bool Has(const TensorFactors& tensor, size_t factor) {
    for (const std::vector<int32_t>& dim : tensor) {
      if (std::find(dim.begin(), dim.end(), static_cast<int32_t>(factor)) != dim.end()) return true;
    }
    return false;
  }

  // The axes that a factor should have, and the tensor that says so; -1 if none.
  // Basic: what all tensors agree on, and nothing that is in use for another
  // factor anywhere. Aggressive: the tensor with the most shards, then the
  // largest one, wins.
  std::pair<int32_t, Axes> Choose(const Op& op, const std::vector<Projection>& view, size_t f,
                                  bool aggressive) const {
    int32_t source = -1;
    Axes best;
    int64_t best_bytes = 0;
    for (size_t t = 0; t < view.size(); ++t) {
      const Axes& axes = view[t].axes[f];
      const int64_t bytes = nodes_[op.tensors[t]].shape.ByteSize().value();
      const int64_t shards = Product(axes), best_shards = Product(best);
      if (axes.empty() || shards < best_shards || (shards == best_shards && bytes <= best_bytes)) {
        continue;
      }
      source = static_cast<int32_t>(t);
      best = axes;
      best_bytes = bytes;
    }
    if (source < 0 || aggressive) return {source, best};
    for (const Projection& projection : view) {
      const Axes& axes = projection.axes[f];
      if (!IsPrefix(axes, best)) best = CommonPrefix(best, axes);
      for (size_t g = 0; g < op.rule.factors.size(); ++g) {
        if (g != f) best = BeforeOverlap(best, projection.axes[g]);
      }
      best = BeforeOverlap(best, projection.overflow);
    }
    return {best.empty() ? -1 : source, best};
  }

  static Axes BeforeOverlap(const Axes& axes, const Axes& used) {
    Axes kept;
    for (const AxisRef& axis : axes) {
      if (Overlap(used, axis)) break;
      kept.push_back(axis);
    }
    return kept;
  }

  // Extends factor f of tensor t towards `wanted` as far as the tensor allows.
  bool Extend(const Op& op, size_t t, size_t f, const Axes& wanted, Projection& view) {
    const TensorFactors& tensor = Tensor(op, t);
    if (!Has(tensor, f) || view.axes[f] == wanted || !IsPrefix(view.axes[f], wanted)) return false;
    Node& node = nodes_[op.tensors[t]];
    for (size_t d = 0; d < tensor.size(); ++d) {
      const DimSharding& dim = node.sharding.dims[d];
      for (size_t i = 0; i < tensor[d].size(); ++i) {
        if (tensor[d][i] != static_cast<int32_t>(f)) {
          // Minor factors only behind full ones.
          if (Product(view.axes[tensor[d][i]]) != op.rule.factors[tensor[d][i]].size) break;
          continue;
        }
        if (!dim.open || dim.priority > priority_) return false;
        Axes axes = view.axes[f];
        for (const AxisRef& axis : AfterPrefix(view.axes[f], wanted)) {
          if (Overlap(node.sharding.replicated, axis) || Overlap(node.sharding.unreduced, axis) ||
              Overlap(view.overflow, axis) || UsedElsewhere(view, f, axis) ||
              op.rule.factors[f].size % (Product(axes) * axis.size) != 0) {
            break;
          }
          axes = Concat(axes, {axis});
        }
        if (axes == view.axes[f]) return false;
        const Axes old = view.axes[f];
        view.axes[f] = axes;
        Axes all;
        for (int32_t g : tensor[d]) all = Concat(all, view.axes[g]);
        // Axes beyond the factors stay where they are: nothing to extend then.
        if (!IsPrefix(dim.axes, all)) {
          view.axes[f] = old;
          return false;
        }
        node.sharding.dims[d].axes = all;
        return true;
      }
    }
    return false;
  }

  static bool UsedElsewhere(const Projection& view, size_t f, const AxisRef& axis) {
    for (size_t g = 0; g < view.axes.size(); ++g) {
      if (g != f && Overlap(view.axes[g], axis)) return true;
    }
    return false;
  }

  const NormalisedModule& in_;
  std::vector<Node> nodes_;
  std::vector<Op> ops_;
  std::unordered_map<const Instruction*, std::vector<int32_t>> values_;
  int32_t priority_ = 0;
};

}  // namespace

absl::StatusOr<ShardedModule> ShardModule(const hlo::Module& module, int64_t num_partitions) {
  ASSIGN_OR_RETURN(NormalisedModule normalised, Normalise(module, num_partitions));
  if (normalised.mesh.mesh.size() > 1) {
    for (Computation* computation : normalised.partitioned) {
      FindRolls(computation, [&](const Instruction* instruction) {
        return normalised.annotations.contains(instruction);
      });
    }
  }
  Propagation propagation(normalised);
  RETURN_IF_ERROR(propagation.Build());
  propagation.Run();
  ShardedModule sharded;
  propagation.Finish(&sharded);
  sharded.module = std::move(normalised.module);
  sharded.mesh = normalised.mesh.mesh;
  sharded.num_partitions = sharded.mesh.size();
  sharded.constraints = std::move(normalised.constraints);
  sharded.manual_regions = std::move(normalised.manual_regions);
  return sharded;
}

std::string ToString(const ShardedModule& sharded) {
  std::string text = fmt::format("module {} over {}\n", sharded.module->name(),
                                 ToString(sharded.mesh));
  for (const Computation* computation : sharded.module->computations()) {
    if (computation->root() == nullptr || !sharded.shardings.contains(computation->root())) continue;
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
