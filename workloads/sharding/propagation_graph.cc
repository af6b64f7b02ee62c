#include "workloads/sharding/propagation_graph.h"

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "fmt/format.h"

namespace tpusim::sharding {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// Leaves in front of element `index` of a tuple.
size_t LeavesBefore(const hlo::Shape& tuple, int64_t index) {
  size_t count = 0;
  for (int64_t i = 0; i < index; ++i) {
    const hlo::Shape& element = tuple.tuple[i];
    count += element.IsArray() ? 1 : hlo::Leaves(element).size();
  }
  return count;
}

bool OnlyPasses(const ShardingRule& rule) {
  return std::all_of(rule.factors.begin(), rule.factors.end(), [](const Factor& factor) {
    return factor.kind == FactorKind::kPassThrough && !factor.blocked;
  });
}

std::shared_ptr<const ShardingRule> IdentityRule(const hlo::Shape& shape, size_t operands) {
  auto rule = std::make_shared<ShardingRule>();
  rule->operands.assign(operands, TensorFactors(shape.rank()));
  rule->results.assign(1, TensorFactors(shape.rank()));
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dims[d] == 1) continue;
    const int32_t factor = rule->AddFactor(shape.dims[d]);
    for (TensorFactors& operand : rule->operands) operand[d] = {factor};
    rule->results[0][d] = {factor};
  }
  return rule;
}

bool FullyClosed(const Sharding& sharding) {
  return std::none_of(sharding.dims.begin(), sharding.dims.end(),
                      [](const DimSharding& dim) { return dim.open; });
}

}  // namespace

int32_t PropagationGraph::NewNode(int64_t rank, int32_t context) {
  Node node;
  node.sharding = Replicated(rank);
  for (DimSharding& dim : node.sharding.dims) dim.open = true;
  node.sharding.replicated = contexts[context];
  nodes.push_back(std::move(node));
  return static_cast<int32_t>(nodes.size()) - 1;
}

std::vector<TensorRef> PropagationGraph::NewNodes(const Instruction* instruction, int32_t context) {
  std::vector<TensorRef> list;
  if (instruction->shape().IsArray()) {
    // Members of a sharding group are one node.
    const auto group = in_.sharding_groups.find(instruction);
    if (group != in_.sharding_groups.end()) {
      const auto it = groups_.find(group->second);
      if (it != groups_.end() && static_cast<int64_t>(nodes[it->second].sharding.dims.size()) ==
                                     instruction->shape().rank()) {
        list.push_back({it->second});
      }
    }
    if (list.empty()) list.push_back({NewNode(instruction->shape().rank(), context)});
    if (group != in_.sharding_groups.end()) groups_.emplace(group->second, list[0].node);
  } else {
    for (const hlo::Shape* leaf : hlo::Leaves(instruction->shape())) {
      list.push_back({NewNode(leaf->rank(), context)});
    }
  }
  const auto it = in_.annotations.find(instruction);
  if (it == in_.annotations.end()) return list;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!it->second.leaves[i].has_value()) continue;
    Node& node = nodes[list[i].node];
    if (node.annotated) continue;  // the first of a group has spoken
    const Axes pinned = node.sharding.replicated;
    node.sharding = *it->second.leaves[i];
    node.sharding.replicated.insert(node.sharding.replicated.end(), pinned.begin(), pinned.end());
    node.annotated = true;
    node.reason = it->second.reason;
  }
  return list;
}

void PropagationGraph::AddEdge(const hlo::Shape& shape, std::vector<TensorRef> from, TensorRef to,
                               OpKind kind, const Instruction* instruction, int32_t index,
                               int32_t context) {
  std::erase(from, to);  // carried as it is
  if (from.empty() || shape.rank() == 0) return;
  Op op;
  op.rule = IdentityRule(shape, from.size());
  op.num_operands = static_cast<int32_t>(from.size());
  op.tensors = std::move(from);
  op.tensors.push_back(to);
  op.instruction = instruction;
  op.index = index;
  op.kind = kind;
  op.priority = RulePriority::kElementwise;
  op.single_use = true;
  op.context = context;
  ops.push_back(std::move(op));
}

// Elementwise ops are most of a program and have few different rules.
absl::StatusOr<std::shared_ptr<const ShardingRule>> PropagationGraph::Rule(
    const Instruction& instruction) {
  std::vector<int64_t> key;
  const hlo::Shape& shape = instruction.shape();
  if (hlo::IsElementwise(instruction.opcode()) && shape.IsArray()) {
    key = shape.dims;
    key.push_back(static_cast<int64_t>(instruction.operands().size()));
    int64_t scalars = 0;
    for (const Instruction* operand : instruction.operands()) {
      const bool scalar = operand->shape().rank() == 0;
      scalars = scalars * 2 + (scalar ? 1 : 0);
      if (!scalar && operand->shape().dims != shape.dims) key.clear();
      if (key.empty()) break;
    }
    if (!key.empty()) {
      key.push_back(scalars);
      if (const auto it = elementwise_.find(key); it != elementwise_.end()) return it->second;
    }
  }
  ASSIGN_OR_RETURN(ShardingRule rule, RuleFor(instruction));
  auto shared = std::make_shared<const ShardingRule>(std::move(rule));
  if (!key.empty()) elementwise_[key] = shared;
  return shared;
}

int32_t PropagationGraph::Context(const Instruction* call, int32_t outer) {
  const ManualRegion& region = in_.manual_regions.at(call);
  Axes axes = contexts[outer];
  axes.insert(axes.end(), region.manual_axes.begin(), region.manual_axes.end());
  contexts.push_back(std::move(axes));
  return static_cast<int32_t>(contexts.size()) - 1;
}

void PropagationGraph::AddRegionParameters(const Instruction* call, int32_t context) {
  const ManualRegion& region = in_.manual_regions.at(call);
  const auto boundary = [&](TensorRef ref, const Sharding& sharding) {
    Node& node = nodes[ref.node];
    node.annotated = true;
    node.sharding.dims = sharding.dims;
    node.sharding.unreduced = sharding.unreduced;
    node.sharding.replicated.insert(node.sharding.replicated.end(), sharding.replicated.begin(),
                                    sharding.replicated.end());
    for (const DimSharding& dim : sharding.dims) {
      Axes manual;
      for (const AxisRef& axis : dim.axes) {
        if (!Overlap(region.manual_axes, axis)) break;
        manual.push_back(axis);
      }
      node.manual.push_back(std::move(manual));
    }
  };
  for (size_t i = 0; i < region.operands.size(); ++i) {
    const Instruction* operand = call->operand(i);
    const TensorRef outside{NewNode(operand->shape().rank(), context)};
    boundary(outside, region.operands[i]);
    Use(values_.at(operand));
    nodes[outside.node].reason = fmt::format("in_specs[{}] of {}", i, call->name());
    AddEdge(operand->shape(), {values_.at(operand)[0]}, outside, OpKind::kRegionOperand, call,
            static_cast<int32_t>(i), context);
    if (region.partitioned) {
      values_[call->called()[0]->parameters()[i]] = {{outside.node, true}};
    }
  }
  if (!region.partitioned) return;
  for (size_t i = 0; i < region.results.size(); ++i) {
    // The annotation of the call's own leaves is replaced by the same with prefixes.
    const TensorRef result = values_.at(call)[i];
    nodes[result.node].sharding = Replicated(static_cast<int64_t>(region.results[i].dims.size()));
    nodes[result.node].sharding.replicated = contexts[context];
    boundary(result, region.results[i]);
  }
}

absl::Status PropagationGraph::AddInstruction(const Instruction* instruction, int32_t context) {
  if (values_.contains(instruction)) return absl::OkStatus();  // a parameter that is tied
  switch (instruction->opcode()) {
    case Opcode::kTuple: {
      std::vector<TensorRef> list;
      for (const Instruction* operand : instruction->operands()) {
        const std::vector<TensorRef>& more = values_.at(operand);
        list.insert(list.end(), more.begin(), more.end());
      }
      values_[instruction] = std::move(list);
      return absl::OkStatus();
    }
    case Opcode::kGetTupleElement: {
      const std::vector<TensorRef>& whole = values_.at(instruction->operand(0));
      const size_t first =
          LeavesBefore(instruction->operand(0)->shape(), instruction->attrs().tuple_index());
      const size_t count =
          instruction->shape().IsArray() ? 1 : hlo::Leaves(instruction->shape()).size();
      const auto begin = whole.begin() + static_cast<int64_t>(first);
      values_[instruction] = std::vector<TensorRef>(begin, begin + static_cast<int64_t>(count));
      return absl::OkStatus();
    }
    case Opcode::kOptBarrier:
      values_[instruction] = values_.at(instruction->operand(0));
      return absl::OkStatus();
    case Opcode::kWhile: {
      Use(values_.at(instruction->operand(0)));
      const std::vector<TensorRef> list = NewNodes(instruction, context);
      values_[instruction] = list;
      for (const Computation* called : instruction->called()) {
        values_[called->parameters()[0]] = list;
      }
      return absl::OkStatus();
    }
    case Opcode::kConditional:
      values_[instruction] = NewNodes(instruction, context);
      for (size_t b = 0; b < instruction->called().size(); ++b) {
        values_[instruction->called()[b]->parameters()[0]] =
            values_.at(instruction->operand(b + 1));
      }
      return absl::OkStatus();
    default:
      break;
  }
  values_[instruction] = NewNodes(instruction, context);
  if (instruction->opcode() == Opcode::kParameter) return absl::OkStatus();
  if (in_.manual_regions.contains(instruction)) {
    AddRegionParameters(instruction, context);
    return absl::OkStatus();
  }
  if (in_.mesh.mesh.size() == 1) return absl::OkStatus();
  Op op;
  ASSIGN_OR_RETURN(op.rule, Rule(*instruction));
  for (const Instruction* operand : instruction->operands()) {
    const std::vector<TensorRef>& refs = values_.at(operand);
    TPUSIM_CHECK(refs.size() == 1, "tuple operand of " + instruction->Describe());
    op.tensors.push_back(refs[0]);
    ++nodes[refs[0].node].uses;
  }
  op.num_operands = static_cast<int32_t>(op.tensors.size());
  const std::vector<TensorRef>& results = values_.at(instruction);
  op.tensors.insert(op.tensors.end(), results.begin(), results.end());
  op.instruction = instruction;
  op.priority = PriorityOf(instruction->opcode());
  op.context = context;
  if (const auto it = in_.barriers.find(instruction); it != in_.barriers.end()) {
    op.barrier = it->second;
  }
  ops.push_back(std::move(op));
  return absl::OkStatus();
}

void PropagationGraph::AddFlow(const Instruction* instruction, int32_t context) {
  if (instruction->opcode() == Opcode::kWhile) {
    const std::vector<TensorRef>& carry = values_.at(instruction);
    const std::vector<TensorRef>& init = values_.at(instruction->operand(0));
    const std::vector<TensorRef>& next = values_.at(instruction->called()[0]->root());
    const std::vector<const hlo::Shape*> shapes = hlo::Leaves(instruction->shape());
    Use(next);
    for (size_t i = 0; i < carry.size(); ++i) {
      AddEdge(*shapes[i], {init[i], next[i]}, carry[i], OpKind::kLoopCarry, instruction,
              static_cast<int32_t>(i), context);
    }
  } else if (instruction->opcode() == Opcode::kConditional) {
    const std::vector<TensorRef>& result = values_.at(instruction);
    const std::vector<const hlo::Shape*> shapes = hlo::Leaves(instruction->shape());
    for (const Computation* branch : instruction->called()) Use(values_.at(branch->root()));
    for (size_t i = 0; i < result.size(); ++i) {
      std::vector<TensorRef> from;
      for (const Computation* branch : instruction->called()) {
        from.push_back(values_.at(branch->root())[i]);
      }
      AddEdge(*shapes[i], std::move(from), result[i], OpKind::kBranchResult, instruction,
              static_cast<int32_t>(i), context);
    }
  } else {
    const ManualRegion& region = in_.manual_regions.at(instruction);
    const Instruction* root = instruction->called()[0]->root();
    const std::vector<TensorRef>& made = values_.at(root);
    const std::vector<const hlo::Shape*> shapes = hlo::Leaves(root->shape());
    Use(made);
    for (size_t i = 0; i < region.results.size(); ++i) {
      const size_t leaf = region.result_index.empty() ? 0 : region.result_index[i];
      AddEdge(*shapes[leaf], {made[leaf]}, {values_.at(instruction)[i].node, true},
              OpKind::kRegionResult, instruction, static_cast<int32_t>(i), context);
    }
  }
}

// A closed constraint on a value of which the program says nothing else is what
// the value itself should be, unless another constraint disagrees.
void PropagationGraph::ApplyConstraints() {
  std::vector<std::pair<int32_t, const Sharding*>> wanted;  // node, sharding
  std::unordered_map<int32_t, const Sharding*> first;
  std::unordered_map<int32_t, bool> disagree;
  const auto note = [&](const TensorRef& ref, const Sharding& sharding) {
    wanted.emplace_back(ref.node, &sharding);
    const auto [it, fresh] = first.emplace(ref.node, &sharding);
    if (!fresh && *it->second != sharding) disagree[ref.node] = true;
  };
  std::vector<std::string> reasons;
  // A value that flows in from elsewhere is left alone.
  std::vector<char> flows(nodes.size(), 0);
  for (const Op& op : ops) {
    if (op.kind != OpKind::kHlo) flows[op.tensors.back().node] = 1;
  }
  for (const Op& op : ops) {
    if (op.kind == OpKind::kHlo && in_.constraints.contains(op.instruction)) {
      const auto it = in_.annotations.find(op.instruction);
      if (it == in_.annotations.end() || it->second.is_result || !it->second.leaves[0]) continue;
      const TensorRef ref = op.tensors[0];
      if (flows[ref.node] != 0) continue;
      note(ref, *it->second.leaves[0]);
      reasons.push_back(it->second.reason);
    } else if (op.kind == OpKind::kRegionOperand) {
      if (flows[op.tensors[0].node] != 0) continue;
      note(op.tensors[0], in_.manual_regions.at(op.instruction).operands[op.index]);
      reasons.push_back(nodes[op.tensors.back().node].reason);
    }
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    Node& node = nodes[wanted[i].first];
    if (node.annotated || disagree.contains(wanted[i].first) || !FullyClosed(*wanted[i].second)) {
      continue;
    }
    const Axes pinned = node.sharding.replicated;
    node.sharding = *wanted[i].second;
    node.sharding.replicated.insert(node.sharding.replicated.end(), pinned.begin(), pinned.end());
    node.annotated = true;
    node.reason = reasons[i];
  }
}

absl::Status PropagationGraph::Build() {
  contexts.emplace_back();
  // Computations inside others right behind who calls them; no recursion.
  struct Frame {
    std::vector<Instruction*> order;
    size_t next = 0;
    int32_t context = 0;
    const Instruction* caller = nullptr;    // of the frames above this one
    std::vector<const Computation*> inner;  // of `caller`, still to do
    int32_t inner_context = 0;
  };
  std::vector<Frame> stack;
  stack.push_back({in_.module->entry()->PostOrder(), 0, 0, nullptr, {}, 0});
  values_.reserve(in_.module->entry()->size());
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (!frame.inner.empty()) {
      const Computation* computation = frame.inner.back();
      frame.inner.pop_back();
      const int32_t context = frame.inner_context;
      stack.push_back({computation->PostOrder(), 0, context, nullptr, {}, 0});
      continue;
    }
    if (frame.caller != nullptr) {
      AddFlow(frame.caller, frame.inner_context);
      frame.caller = nullptr;
    }
    if (frame.next == frame.order.size()) {
      stack.pop_back();
      continue;
    }
    const Instruction* instruction = frame.order[frame.next++];
    RETURN_IF_ERROR(AddInstruction(instruction, frame.context));
    const auto region = in_.manual_regions.find(instruction);
    const bool inside = region != in_.manual_regions.end() && region->second.partitioned;
    if (instruction->opcode() != Opcode::kWhile && instruction->opcode() != Opcode::kConditional &&
        !inside) {
      continue;
    }
    frame.caller = instruction;
    frame.inner.assign(instruction->called().rbegin(), instruction->called().rend());
    frame.inner_context = inside ? Context(instruction, frame.context) : frame.context;
  }
  Use(values_.at(in_.module->entry()->root()));
  for (size_t i = 0; i < ops.size(); ++i) {
    Op& op = ops[i];
    op.only_passes = OnlyPasses(*op.rule);
    if (op.kind == OpKind::kHlo) {
      op.single_use = true;
      for (int32_t t = 0; t < op.num_operands; ++t) {
        const Node& node = nodes[op.tensors[t].node];
        if (!node.sharding.dims.empty() && node.uses > 1) op.single_use = false;
      }
      const auto it = in_.annotations.find(op.instruction);
      op.is_result = it != in_.annotations.end() && it->second.is_result;
    }
    // The op that makes a value comes first in its list.
    for (size_t t = op.num_operands; t < op.tensors.size(); ++t) {
      nodes[op.tensors[t].node].ops.push_back(static_cast<int32_t>(i));
    }
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    for (int32_t t = 0; t < ops[i].num_operands; ++t) {
      std::vector<int32_t>& list = nodes[ops[i].tensors[t].node].ops;
      if (list.empty() || list.back() != static_cast<int32_t>(i)) {
        list.push_back(static_cast<int32_t>(i));
      }
    }
  }
  if (in_.mesh.mesh.size() > 1) ApplyConstraints();
  return absl::OkStatus();
}

Sharding PropagationGraph::Seen(const TensorRef& ref) const {
  const Node& node = nodes[ref.node];
  Sharding sharding = node.sharding;
  if (ref.inside) {
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      sharding.dims[d].axes = AfterPrefix(node.manual[d], Joined(sharding.dims[d].axes));
    }
  }
  return sharding;
}

}  // namespace tpusim::sharding
