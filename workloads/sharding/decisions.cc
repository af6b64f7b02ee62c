#include "workloads/sharding/decisions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/sharding/normalise.h"
#include "workloads/sharding/propagation_graph.h"

namespace tpusim::sharding {
namespace {

using hlo::Instruction;

// Sets that grow together.
class Classes {
 public:
  explicit Classes(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int32_t Find(int32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // The smaller number stays the name of both.
  void Unite(int32_t a, int32_t b) {
    a = Find(a);
    b = Find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<int32_t> parent_;
};

// "params['layers'][3]['up']" as "params['layers'][*]['up']".
std::string WithoutNumbers(const std::string& name) {
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(name[i])) == 0) {
      text += name[i];
    } else if (text.empty() || text.back() != '*') {
      text += '*';
    }
  }
  return text;
}

class Finder {
 public:
  Finder(const NormalisedModule& in, const PropagationGraph& graph)
      : in_(in), graph_(graph), first_(FirstOf(graph)), classes_(first_.back()) {}

  std::vector<Decision> Run() {
    for (const Op& op : graph_.ops) Tie(op);
    TieLayers();
    Count();
    std::vector<Decision> decisions;
    for (auto& [root, decision] : found_) {
      if (!decision.arguments.empty()) decisions.push_back(std::move(decision));
    }
    std::ranges::stable_sort(decisions, std::greater<>(), &Decision::bytes);
    return decisions;
  }

 private:
  // The number of the first dimension of each node; behind the last, how many there are.
  static std::vector<int32_t> FirstOf(const PropagationGraph& graph) {
    std::vector<int32_t> first = {0};
    for (const Node& node : graph.nodes) {
      first.push_back(first.back() + static_cast<int32_t>(node.sharding.dims.size()));
    }
    return first;
  }

  int32_t DimOf(const TensorRef& ref, size_t d) const {
    return first_[ref.node] + static_cast<int32_t>(d);
  }

  void Tie(const Op& op) {
    std::vector<int32_t> of_factor(op.rule->factors.size(), -1);
    for (size_t t = 0; t < op.tensors.size(); ++t) {
      const TensorFactors& factors = op.FactorsOf(t);
      for (size_t d = 0; d < factors.size(); ++d) {
        if (factors[d].empty()) continue;
        const int32_t major = factors[d].front();
        const Factor& factor = op.rule->factors[major];
        if (factor.kind == FactorKind::kNeedReplication || factor.blocked) continue;
        const int32_t dim = DimOf(op.tensors[t], d);
        if (of_factor[major] >= 0) classes_.Unite(of_factor[major], dim);
        of_factor[major] = dim;
      }
    }
  }

  std::span<Instruction* const> Arguments() const {
    arguments_ = in_.module->entry()->parameters();
    return arguments_;
  }

  static std::string NameOf(const Instruction& argument) {
    return WithoutNumbers(argument.op_name().empty() ? argument.name() : argument.op_name());
  }

  void TieLayers() {
    std::map<std::tuple<std::string, std::string, size_t>, int32_t> seen;
    for (const Instruction* argument : Arguments()) {
      if (!argument->shape().IsArray()) continue;
      const TensorRef ref = graph_.Values(argument)[0];
      for (size_t d = 0; d < argument->shape().dims.size(); ++d) {
        const auto [at, fresh] =
            seen.try_emplace({NameOf(*argument), argument->shape().ToString(), d}, DimOf(ref, d));
        if (!fresh) classes_.Unite(at->second, DimOf(ref, d));
      }
    }
  }

  void Count() {
    std::set<int32_t> counted;  // nodes: several values may be one
    for (const Instruction* instruction : graph_.instructions()) {
      const std::vector<const hlo::Shape*> leaves = hlo::Leaves(instruction->shape());
      const std::span<const TensorRef> refs = graph_.Values(instruction);
      for (size_t leaf = 0; leaf < std::min(leaves.size(), refs.size()); ++leaf) {
        if (!counted.insert(refs[leaf].node).second) continue;
        std::map<int32_t, int> times;
        for (size_t d = 0; d < leaves[leaf]->dims.size(); ++d) {
          const int64_t size = leaves[leaf]->dims[d];
          if (size == 1) continue;
          const int32_t root = classes_.Find(DimOf(refs[leaf], d));
          Decision& decision = found_[root];
          decision.most = std::max(decision.most, size);
          decision.least = decision.least == 0 ? size : std::min(decision.least, size);
          if (times[root]++ == 0) {
            ++decision.values;
            decision.bytes += leaves[leaf]->ByteSize();
          }
        }
        for (const auto& [root, count] : times) found_[root].conflicts += count > 1;
      }
    }
    std::set<std::string> named;
    for (const Instruction* argument : Arguments()) {
      if (!argument->shape().IsArray()) continue;
      for (size_t d = 0; d < argument->shape().dims.size(); ++d) {
        if (argument->shape().dims[d] == 1) continue;
        Decision& decision = found_[classes_.Find(DimOf(graph_.Values(argument)[0], d))];
        decision.argument_bytes += argument->shape().ByteSize();
        std::string text = fmt::format("{} {}", NameOf(*argument), d);
        if (named.insert(text).second) decision.arguments.push_back(std::move(text));
      }
    }
  }

  const NormalisedModule& in_;
  const PropagationGraph& graph_;
  const std::vector<int32_t> first_;
  Classes classes_;
  std::map<int32_t, Decision> found_;
  mutable std::vector<Instruction*> arguments_;
};

}  // namespace

absl::StatusOr<std::vector<Decision>> FindDecisions(const hlo::Module& module,
                                                    int64_t num_partitions) {
  ASSIGN_OR_RETURN(const NormalisedModule normalised, Normalise(module.Clone(), num_partitions));
  PropagationGraph graph(normalised);
  RETURN_IF_ERROR(graph.Build());
  return Finder(normalised, graph).Run();
}

std::string ToString(const std::vector<Decision>& decisions) {
  std::string text = fmt::format("{:>16} {:>8} {:>14} {:>14}  {}\n", "elements", "values", "bytes",
                                 "of arguments", "dimensions of arguments");
  for (const Decision& d : decisions) {
    const std::string size =
        d.least == d.most ? fmt::format("{}", d.most) : fmt::format("{}..{}", d.least, d.most);
    text += fmt::format("{:>16} {:>8} {:>14} {:>14}  {}", size, d.values, d.bytes.value(),
                        d.argument_bytes.value(), fmt::join(d.arguments, ", "));
    if (d.conflicts > 0) {
      text += fmt::format("; {} value{} have two", d.conflicts, d.conflicts == 1 ? "" : "s");
    }
    text += "\n";
  }
  return text;
}

}  // namespace tpusim::sharding
