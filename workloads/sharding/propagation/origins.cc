#include "workloads/sharding/propagation/origins.h"

#include <algorithm>
#include <limits>

namespace tpusim::sharding {
namespace {

// Marks the factors of the dimensions of a tensor that `axis` splits.
std::vector<char> FactorsSplitBy(const Op& op, size_t tensor, const Sharding& sharding,
                                 int32_t axis) {
  std::vector<char> split(op.rule->factors.size(), 0);
  const TensorFactors& factors = op.FactorsOf(tensor);
  for (size_t d = 0; d < factors.size() && d < sharding.dims.size(); ++d) {
    for (const AxisRef& ref : sharding.dims[d].axes) {
      if (ref.axis != axis) continue;
      for (const int32_t f : factors[d]) split[f] = 1;
    }
  }
  return split;
}

}  // namespace

Origins::Origins(const PropagationGraph& graph) : graph_(graph) {
  for (const Adoption& adoption : graph.adoptions) {
    axes_ = std::max<int64_t>(axes_, adoption.axis + 1);
  }
  adoption_of_.reserve(graph.adoptions.size());
  for (size_t i = 0; i < graph.adoptions.size(); ++i) {
    const Adoption& adoption = graph.adoptions[i];
    adoption_of_.emplace_back(adoption.node * axes_ + adoption.axis, static_cast<int32_t>(i));
  }
  // The first adoption of each pair comes first.
  std::ranges::sort(adoption_of_);
  origin_of_.assign(graph.adoptions.size(), kUnknown);
}

int32_t Origins::AdoptionOf(int32_t node, int32_t axis) const {
  const int64_t key = node * axes_ + axis;
  const auto it = std::lower_bound(adoption_of_.begin(), adoption_of_.end(),
                                   std::pair<int64_t, int32_t>(key, 0));
  return axis < axes_ && it != adoption_of_.end() && it->first == key ? it->second : -1;
}

int32_t Origins::SourceOf(int32_t adoption) const {
  const Adoption& taken = graph_.adoptions[adoption];
  const Op& op = graph_.ops[taken.op];
  std::vector<char> wanted(op.rule->factors.size(), 0);
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    if (op.tensors[t].node != taken.node) continue;
    const std::vector<char> split =
        FactorsSplitBy(op, t, graph_.nodes[taken.node].sharding, taken.axis);
    for (size_t f = 0; f < split.size(); ++f) wanted[f] = static_cast<char>(wanted[f] | split[f]);
  }
  // Of several the one that had it first.
  int32_t best = -1, earliest = std::numeric_limits<int32_t>::max();
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    const int32_t node = op.tensors[t].node;
    if (node == taken.node) continue;
    const std::vector<char> split = FactorsSplitBy(op, t, graph_.nodes[node].sharding, taken.axis);
    bool shares = false;
    for (size_t f = 0; f < split.size(); ++f) shares = shares || (split[f] != 0 && wanted[f] != 0);
    if (!shares) continue;
    const int32_t when = AdoptionOf(node, taken.axis);
    if (when < adoption && when < earliest) best = node, earliest = when;
  }
  return best;
}

int32_t Origins::Of(int32_t node, int32_t axis) {
  // Every step goes back in time, so that it ends; what is on the way has the same origin.
  std::vector<int32_t> on_the_way;
  int32_t origin = -1;
  while (node >= 0) {
    const int32_t adoption = AdoptionOf(node, axis);
    if (adoption < 0) {
      if (graph_.nodes[node].annotated) origin = node;
      break;
    }
    if (origin_of_[adoption] != kUnknown) {
      origin = origin_of_[adoption];
      break;
    }
    on_the_way.push_back(adoption);
    node = SourceOf(adoption);
  }
  for (const int32_t adoption : on_the_way) origin_of_[adoption] = origin;
  return origin;
}

OriginTexts::OriginTexts(const NormalisedModule& module, const PropagationGraph& graph)
    : module_(module), graph_(graph), origins_(graph) {
  value_of_.assign(graph.nodes.size(), nullptr);
  for (const hlo::Instruction* instruction : graph.instructions()) {
    for (const TensorRef& ref : graph.Values(instruction)) {
      if (value_of_[ref.node] == nullptr) value_of_[ref.node] = instruction;
    }
  }
  text_of_.assign(graph.nodes.size(), -1);
}

std::string OriginTexts::TextOf(int32_t node) const {
  const hlo::Instruction* value = value_of_[node];
  const bool is_argument = value != nullptr && value->opcode() == hlo::Opcode::kParameter &&
                           value->parent() == module_.module->entry();
  if (!is_argument) return graph_.nodes[node].reason;
  return "argument " + (value->op_name().empty() ? value->name() : value->op_name());
}

std::vector<AxisOrigin> OriginTexts::Of(int32_t node, const Sharding& sharding) {
  std::vector<AxisOrigin> found;
  for (const DimSharding& dim : sharding.dims) {
    for (const AxisRef& axis : dim.axes) {
      const int32_t origin = origins_.Of(node, axis.axis);
      if (origin < 0) continue;
      if (text_of_[origin] < 0) {
        text_of_[origin] = static_cast<int32_t>(texts_.size());
        texts_.push_back(TextOf(origin));
      }
      found.push_back({axis.axis, text_of_[origin]});
    }
  }
  return found;
}

}  // namespace tpusim::sharding
