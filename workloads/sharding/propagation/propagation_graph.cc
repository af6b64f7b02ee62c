#include "workloads/sharding/propagation/propagation_graph.h"

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/analysis/underlying.h"

namespace tpusim::sharding {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

bool OnlyPasses(const ShardingRule& rule) {
  return std::ranges::all_of(rule.factors, [](const Factor& factor) {
    return factor.kind == FactorKind::kPassThrough && !factor.blocked;
  });
}

// Returns which leaves of its carry a loop's body returns unchanged.
std::vector<char> InvariantLeaves(const Instruction& loop) {
  std::vector<char> leaves;
  if (loop.shape().IsArray()) return {0};
  for (size_t n = 0; n < loop.shape().tuple.size(); ++n) {
    leaves.resize(leaves.size() + hlo::Leaves(loop.shape().tuple[n]).size(),
                  hlo::ForwardsElement(loop, static_cast<int64_t>(n)) ? 1 : 0);
  }
  return leaves;
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

}  // namespace

void PropagationGraph::SetValues(const Instruction* instruction, std::span<const TensorRef> refs) {
  const int64_t id = instruction->id();
  if (met_[id] == 0) instructions_.push_back(instruction);
  met_[id] = 1;
  values_[id] = {static_cast<uint32_t>(refs_.size()), static_cast<uint32_t>(refs.size())};
  refs_.insert(refs_.end(), refs.begin(), refs.end());
}

// Leaves are ranges: what is an element of a tuple, or the tuple itself, shares them.
void PropagationGraph::ShareValues(const Instruction* instruction, const Instruction* with,
                                   size_t first, size_t count) {
  const int64_t id = instruction->id();
  if (met_[id] == 0) instructions_.push_back(instruction);
  met_[id] = 1;
  const LeafRange whole = values_.at(with->id());
  values_[id] = {whole.first + static_cast<uint32_t>(first),
                 static_cast<uint32_t>(std::min<size_t>(count, whole.count - first))};
}

size_t PropagationGraph::LeavesBefore(const Instruction* tuple, int64_t index) {
  std::vector<uint32_t>& begins = begins_[tuple];
  if (begins.empty()) {
    uint32_t leaves = 0;
    for (const hlo::Shape& element : tuple->shape().tuple) {
      begins.push_back(leaves);
      leaves += element.IsArray() ? 1 : static_cast<uint32_t>(hlo::Leaves(element).size());
    }
  }
  return begins[index];
}

int32_t PropagationGraph::NewNode(int64_t rank, int32_t context) {
  ShardingNode node;
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
    ShardingNode& node = nodes[list[i].node];
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
    ShardingNode& node = nodes[ref.node];
    node.annotated = true;
    node.sharding.dims = sharding.dims;
    node.sharding.unreduced = sharding.unreduced;
    node.sharding.reduction = sharding.reduction;
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
  std::vector<Instruction*> parameters;
  if (region.partitioned) parameters = call->called()[0]->parameters();
  for (size_t i = 0; i < region.operands.size(); ++i) {
    const Instruction* operand = call->operand(i);
    const TensorRef outside{NewNode(operand->shape().rank(), context)};
    boundary(outside, region.operands[i]);
    Use(Values(operand));
    nodes[outside.node].reason = fmt::format("in_specs[{}] of {}", i, call->name());
    AddEdge(operand->shape(), {Values(operand)[0]}, outside, OpKind::kRegionOperand, call,
            static_cast<int32_t>(i), context);
    const TensorRef inside{outside.node, true};
    if (region.partitioned) SetValues(parameters[i], std::span(&inside, 1));
  }
  if (!region.partitioned) return;
  for (size_t i = 0; i < region.results.size(); ++i) {
    // The annotation of the call's own leaves is replaced by the same with prefixes.
    const TensorRef result = Values(call)[i];
    nodes[result.node].sharding = Replicated(static_cast<int64_t>(region.results[i].dims.size()));
    nodes[result.node].sharding.replicated = contexts[context];
    boundary(result, region.results[i]);
  }
}

bool PropagationGraph::IsAnnotated(const Instruction& instruction, size_t leaf) const {
  const auto it = in_.annotations.find(&instruction);
  return it != in_.annotations.end() && it->second.leaves[leaf].has_value();
}

// An element of the carry that the body returns unchanged is, in the loop, the value from before
// it, as in Shardy, where it is no element of the carry: what is known of it comes into the body
// with it. A value that the user has annotated may be had there in another sharding, behind an edge
// before the loop.
void PropagationGraph::AddLoop(const Instruction* loop, int32_t context) {
  Use(Values(loop->operand(0)));
  std::vector<TensorRef> carry = NewNodes(loop, context);
  const std::vector<const hlo::Shape*> shapes = hlo::Leaves(loop->shape());
  const std::vector<char> invariant = InvariantLeaves(*loop);
  std::vector<size_t> edges;
  for (size_t leaf = 0; leaf < carry.size(); ++leaf) {
    const TensorRef initial = Values(loop->operand(0))[leaf];
    if (invariant[leaf] == 0 || IsAnnotated(*loop, leaf)) continue;
    if (nodes[initial.node].annotated) {
      edges.push_back(leaf);
    } else {
      carry[leaf] = initial;
    }
  }
  SetValues(loop, carry);
  for (const size_t leaf : edges) {
    AddEdge(*shapes[leaf], {Values(loop->operand(0))[leaf]}, carry[leaf], OpKind::kLoopCarry, loop,
            static_cast<int32_t>(leaf), context);
  }
  for (const Computation* called : loop->called()) ShareValues(called->parameters()[0], loop);
}

absl::Status PropagationGraph::AddInstruction(const Instruction* instruction, int32_t context) {
  if (HasValues(instruction)) return absl::OkStatus();  // a parameter that is tied
  switch (instruction->opcode()) {
    case Opcode::kTuple: {
      std::vector<TensorRef> list;
      for (const Instruction* operand : instruction->operands()) {
        const std::span<const TensorRef> more = Values(operand);
        list.insert(list.end(), more.begin(), more.end());
      }
      SetValues(instruction, list);
      return absl::OkStatus();
    }
    case Opcode::kGetTupleElement: {
      const size_t first =
          LeavesBefore(instruction->operand(0), instruction->attrs().tuple_index());
      const size_t count =
          instruction->shape().IsArray() ? 1 : hlo::Leaves(instruction->shape()).size();
      ShareValues(instruction, instruction->operand(0), first, count);
      return absl::OkStatus();
    }
    case Opcode::kOptBarrier:
      ShareValues(instruction, instruction->operand(0));
      return absl::OkStatus();
    case Opcode::kWhile:
      AddLoop(instruction, context);
      return absl::OkStatus();
    case Opcode::kConditional:
      SetValues(instruction, NewNodes(instruction, context));
      for (size_t b = 0; b < instruction->called().size(); ++b) {
        ShareValues(instruction->called()[b]->parameters()[0], instruction->operand(b + 1));
      }
      return absl::OkStatus();
    default:
      break;
  }
  SetValues(instruction, NewNodes(instruction, context));
  if (instruction->opcode() == Opcode::kParameter) return absl::OkStatus();
  if (in_.manual_regions.contains(instruction)) {
    AddRegionParameters(instruction, context);
    return absl::OkStatus();
  }
  if (!has_ops_) return absl::OkStatus();
  Op op;
  ASSIGN_OR_RETURN(op.rule, rules_.Find(*instruction));
  const std::span<const TensorRef> results = Values(instruction);
  op.tensors.reserve(instruction->operands().size() + results.size());
  for (const Instruction* operand : instruction->operands()) {
    const std::span<const TensorRef> refs = Values(operand);
    if (refs.size() != 1) {
      return NoRule(fmt::format("a tuple ({}) as an operand has no sharding rule: {}",
                                operand->name(), instruction->Describe()));
    }
    op.tensors.push_back(refs[0]);
    ++nodes[refs[0].node].uses;
  }
  op.num_operands = static_cast<int32_t>(op.tensors.size());
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
    const std::span<const TensorRef> carry = Values(instruction);
    const std::span<const TensorRef> init = Values(instruction->operand(0));
    const std::span<const TensorRef> next = Values(instruction->called()[0]->root());
    const std::vector<const hlo::Shape*> shapes = hlo::Leaves(instruction->shape());
    Use(next);
    const std::vector<char> invariant = InvariantLeaves(*instruction);
    for (size_t i = 0; i < carry.size(); ++i) {
      const bool known = invariant[i] != 0 && !IsAnnotated(*instruction, i);
      if (known) continue;  // AddLoop
      AddEdge(*shapes[i], {init[i], next[i]}, carry[i], OpKind::kLoopCarry, instruction,
              static_cast<int32_t>(i), context);
    }
  } else if (instruction->opcode() == Opcode::kConditional) {
    const std::span<const TensorRef> result = Values(instruction);
    const std::vector<const hlo::Shape*> shapes = hlo::Leaves(instruction->shape());
    for (const Computation* branch : instruction->called()) Use(Values(branch->root()));
    for (size_t i = 0; i < result.size(); ++i) {
      std::vector<TensorRef> from;
      for (const Computation* branch : instruction->called()) {
        from.push_back(Values(branch->root())[i]);
      }
      AddEdge(*shapes[i], std::move(from), result[i], OpKind::kBranchResult, instruction,
              static_cast<int32_t>(i), context);
    }
  } else {
    const ManualRegion& region = in_.manual_regions.at(instruction);
    const Instruction* root = instruction->called()[0]->root();
    const std::span<const TensorRef> made = Values(root);
    const std::vector<const hlo::Shape*> shapes = hlo::Leaves(root->shape());
    Use(made);
    for (size_t i = 0; i < region.results.size(); ++i) {
      const size_t leaf = region.result_index.empty() ? 0 : region.result_index[i];
      AddEdge(*shapes[leaf], {made[leaf]}, {Values(instruction)[i].node, true},
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
    ShardingNode& node = nodes[wanted[i].first];
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

// The op that makes a value comes first in its list.
void PropagationGraph::TieOpsToNodes() {
  ops_of_.assign(nodes.size(), {});
  for (const Op& op : ops) {
    for (const TensorRef& ref : op.tensors) ++ops_of_[ref.node].count;
  }
  uint32_t first = 0;
  for (LeafRange& range : ops_of_) {
    range.first = first;
    first += std::exchange(range.count, 0);
  }
  ops_of_nodes_.resize(first);
  const auto tie = [&](int32_t node, size_t op) {
    LeafRange& range = ops_of_[node];
    ops_of_nodes_[range.first + range.count++] = static_cast<int32_t>(op);
  };
  for (size_t i = 0; i < ops.size(); ++i) {
    for (size_t t = ops[i].num_operands; t < ops[i].tensors.size(); ++t) {
      tie(ops[i].tensors[t].node, i);
    }
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    for (int32_t t = 0; t < ops[i].num_operands; ++t) {
      const int32_t node = ops[i].tensors[t].node;
      const std::span<const int32_t> known = OpsOf(node);
      if (known.empty() || known.back() != static_cast<int32_t>(i)) tie(node, i);
    }
  }
}

absl::Status PropagationGraph::Build() {
  contexts.emplace_back();
  // Computations inside others right behind what calls them; no recursion.
  struct VisitFrame {
    std::vector<Instruction*> order;
    size_t next = 0;
    int32_t context = 0;
    const Instruction* caller = nullptr;    // of the frames above this one
    std::vector<const Computation*> inner;  // of `caller`, still to do
    int32_t inner_context = 0;
  };
  std::vector<VisitFrame> stack;
  stack.push_back({in_.module->entry()->PostOrder(), 0, 0, nullptr, {}, 0});
  values_.resize(in_.module->next_id());
  met_.resize(in_.module->next_id());
  while (!stack.empty()) {
    VisitFrame& frame = stack.back();
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
  Use(Values(in_.module->entry()->root()));
  for (size_t i = 0; i < ops.size(); ++i) {
    Op& op = ops[i];
    op.only_passes = OnlyPasses(*op.rule);
    if (op.kind == OpKind::kHlo) {
      op.single_use = true;
      for (int32_t t = 0; t < op.num_operands; ++t) {
        const ShardingNode& node = nodes[op.tensors[t].node];
        if (!node.sharding.dims.empty() && node.uses > 1) op.single_use = false;
      }
      const auto it = in_.annotations.find(op.instruction);
      op.is_result = it != in_.annotations.end() && it->second.is_result;
    }
  }
  TieOpsToNodes();
  if (in_.mesh.mesh.size() > 1) ApplyConstraints();
  return absl::OkStatus();
}

Sharding PropagationGraph::Seen(const TensorRef& ref) const {
  const ShardingNode& node = nodes[ref.node];
  Sharding sharding = node.sharding;
  if (ref.inside) {
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      sharding.dims[d].axes = AfterPrefix(node.manual[d], Joined(sharding.dims[d].axes));
    }
  }
  return sharding;
}

}  // namespace tpusim::sharding
