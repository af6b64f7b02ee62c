#include "workloads/sharding/decisions/decisions.h"

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
#include "workloads/sharding/normalised/named_values.h"
#include "workloads/sharding/normalised/normalise.h"
#include "workloads/sharding/propagation/propagation_graph.h"

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

// A dimension of the carry or of a whole array that a loop takes one index of at a time.
bool IsLayer(const Instruction& slice, size_t d) {
  const hlo::Shape& whole = slice.operand(0)->shape();
  const bool updates = slice.opcode() == hlo::Opcode::kDynamicUpdateSlice;
  const hlo::Shape& piece = updates ? slice.operand(1)->shape() : slice.shape();
  return piece.dims[d] == 1 && whole.dims[d] > 1;
}

class DecisionFinder {
 public:
  DecisionFinder(const NormalisedModule& in, const PropagationGraph& graph)
      : in_(in),
        graph_(graph),
        first_(FirstOf(graph)),
        classes_(first_.back()),
        reach_(first_.back()),
        inside_(InsideOfRegions(in)) {}

  absl::StatusOr<Decisions> Run(const std::vector<std::string>& named) {
    for (const Op& op : graph_.ops) Tie(op);
    TieLayers();
    TieLoops();
    Count();
    Number();
    FindArguments();
    FindConflicts();
    FindConstraints();
    RETURN_IF_ERROR(FindNamed(named));
    FindReach();
    return std::move(result_);
  }

 private:
  // The number of the first dimension of each node; behind the last, how many there are.
  static std::vector<int32_t> FirstOf(const PropagationGraph& graph) {
    std::vector<int32_t> first = {0};
    for (const ShardingNode& node : graph.nodes) {
      first.push_back(first.back() + static_cast<int32_t>(node.sharding.dims.size()));
    }
    return first;
  }

  // The bodies of manual regions, with those of loops and branches in them.
  static std::set<const hlo::Computation*> InsideOfRegions(const NormalisedModule& in) {
    std::set<const hlo::Computation*> inside;
    std::vector<const hlo::Computation*> work;
    for (const auto& [call, region] : in.manual_regions) work.push_back(call->called()[0]);
    while (!work.empty()) {
      const hlo::Computation* computation = work.back();
      work.pop_back();
      if (!inside.insert(computation).second) continue;
      for (const Instruction* i : computation->instructions()) {
        work.insert(work.end(), i->called().begin(), i->called().end());
      }
    }
    return inside;
  }
  bool IsInside(const Instruction& i) const { return inside_.contains(i.parent()); }

  int32_t DimOf(const TensorRef& ref, size_t d) const {
    return first_[ref.node] + static_cast<int32_t>(d);
  }

  void Tie(const Op& op) {
    std::vector<int32_t> of_factor(op.rule->factors.size(), -1);
    std::vector<int32_t> reach_of(op.rule->factors.size(), -1);
    for (size_t t = 0; t < op.tensors.size(); ++t) {
      const TensorFactors& factors = op.FactorsOf(t);
      for (size_t d = 0; d < factors.size(); ++d) {
        if (factors[d].empty()) continue;
        const int32_t dim = DimOf(op.tensors[t], d);
        for (const int32_t factor : factors[d]) {
          if (reach_of[factor] >= 0) reach_.Unite(reach_of[factor], dim);
          reach_of[factor] = dim;
        }
        const int32_t major = factors[d].front();
        const Factor& factor = op.rule->factors[major];
        if (factor.kind == FactorKind::kNeedReplication || factor.blocked) continue;
        if (of_factor[major] >= 0) classes_.Unite(of_factor[major], dim);
        of_factor[major] = dim;
      }
    }
  }

  std::span<Instruction* const> Arguments() const {
    if (arguments_.empty()) arguments_ = in_.module->entry()->parameters();
    return arguments_;
  }

  static const std::string& FullNameOf(const Instruction& argument) {
    return argument.op_name().empty() ? argument.name() : argument.op_name();
  }
  static std::string NameOf(const Instruction& argument) {
    return WithoutNumbers(FullNameOf(argument));
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

  // Dimensions of which the body of one loop takes or writes an index at a time.
  void TieLoops() {
    std::map<std::pair<const hlo::Computation*, int64_t>, int32_t> seen;
    for (const Op& op : graph_.ops) {
      if (op.kind != OpKind::kHlo || op.instruction->parent() == in_.module->entry()) continue;
      const hlo::Opcode opcode = op.instruction->opcode();
      if (opcode != hlo::Opcode::kDynamicSlice && opcode != hlo::Opcode::kDynamicUpdateSlice) {
        continue;
      }
      const std::vector<int64_t>& whole = op.instruction->operand(0)->shape().dims;
      for (size_t d = 0; d < whole.size(); ++d) {
        if (!IsLayer(*op.instruction, d)) continue;
        const int32_t dim = DimOf(op.tensors[0], d);
        const auto [at, fresh] = seen.try_emplace({op.instruction->parent(), whole[d]}, dim);
        if (!fresh) classes_.Unite(at->second, dim);
      }
    }
  }

  // Calls visit(instruction, shape, ref) for each value once.
  template <typename Visit>
  void ForEachValue(const Visit& visit) const {
    std::set<int32_t> seen;  // nodes: several values may be one
    for (const Instruction* instruction : graph_.instructions()) {
      const std::vector<const hlo::Shape*> leaves = hlo::Leaves(instruction->shape());
      const std::span<const TensorRef> refs = graph_.Values(instruction);
      for (size_t leaf = 0; leaf < std::min(leaves.size(), refs.size()); ++leaf) {
        if (seen.insert(refs[leaf].node).second) visit(*instruction, *leaves[leaf], refs[leaf]);
      }
    }
  }

  void Count() {
    ForEachValue([&](const Instruction&, const hlo::Shape& shape, const TensorRef& ref) {
      std::map<int32_t, int> times;
      for (size_t d = 0; d < shape.dims.size(); ++d) {
        const int64_t size = shape.dims[d];
        if (size == 1) continue;
        const int32_t root = classes_.Find(DimOf(ref, d));
        Decision& decision = found_[root];
        decision.most = std::max(decision.most, size);
        decision.least = decision.least == 0 ? size : std::min(decision.least, size);
        if (times[root]++ == 0) {
          ++decision.values;
          decision.bytes += shape.ByteSize();
        }
      }
      for (const auto& [root, count] : times) found_[root].conflicts += count > 1;
    });
    std::set<std::pair<int32_t, std::string>> named;
    std::map<int32_t, Bytes> largest;
    std::map<int32_t, std::vector<std::pair<int64_t, Bytes>>> sizes;  // of arguments
    for (const Instruction* argument : Arguments()) {
      if (!argument->shape().IsArray()) continue;
      const Bytes bytes = argument->shape().ByteSize();
      for (size_t d = 0; d < argument->shape().dims.size(); ++d) {
        const int64_t size = argument->shape().dims[d];
        if (size == 1) continue;
        const int32_t root = classes_.Find(DimOf(graph_.Values(argument)[0], d));
        Decision& decision = found_[root];
        decision.argument_bytes += bytes;
        sizes[root].emplace_back(size, bytes);
        std::string text = fmt::format("{} {}", NameOf(*argument), d);
        if (largest.try_emplace(root, Bytes(-1)).first->second < bytes) {
          largest[root] = bytes;
          decision.name = text;
        }
        if (named.emplace(root, text).second) decision.arguments.push_back(std::move(text));
      }
    }
    for (const auto& [root, all] : sizes) {
      for (const auto& [size, bytes] : all) {
        if (Ratio(bytes, largest[root]) < kLeastShare) continue;
        found_[root].divisor = std::gcd(found_[root].divisor, size);
      }
    }
  }

  // The decisions in their order, and which is that of a class.
  void Number() {
    std::vector<std::pair<int32_t, Decision>> decisions;
    for (auto& [root, decision] : found_) {
      if (!decision.arguments.empty()) decisions.emplace_back(root, std::move(decision));
    }
    std::ranges::stable_sort(decisions, std::greater<>(),
                             [](const auto& entry) { return entry.second.bytes; });
    std::map<std::string, int> times;  // arguments of one name may have other shapes
    for (auto& [root, decision] : decisions) {
      if (const int nth = ++times[decision.name]; nth > 1) {
        decision.name += fmt::format(" ({})", nth);
      }
      number_of_[root] = static_cast<int32_t>(result_.all.size());
      result_.all.push_back(std::move(decision));
    }
  }

  std::vector<int32_t> DecisionsOf(const hlo::Shape& shape, const TensorRef& ref) {
    std::vector<int32_t> decisions(shape.dims.size(), -1);
    for (size_t d = 0; d < decisions.size(); ++d) {
      if (shape.dims[d] == 1) continue;
      const auto found = number_of_.find(classes_.Find(DimOf(ref, d)));
      if (found != number_of_.end()) decisions[d] = found->second;
    }
    return decisions;
  }

  void FindArguments() {
    for (const Instruction* argument : Arguments()) {
      DecidedArgument decided{FullNameOf(*argument), argument->shape(), {}, {}};
      if (argument->shape().IsArray()) {
        decided.decisions = DecisionsOf(argument->shape(), graph_.Values(argument)[0]);
      }
      result_.arguments.push_back(std::move(decided));
    }
  }

  static std::set<std::pair<int32_t, int32_t>> PairsOf(const std::vector<int32_t>& decisions) {
    std::set<std::pair<int32_t, int32_t>> pairs;
    for (size_t i = 0; i < decisions.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (decisions[i] < 0 || decisions[j] < 0 || decisions[i] == decisions[j]) continue;
        pairs.insert(std::minmax(decisions[i], decisions[j]));
      }
    }
    return pairs;
  }

  // Finds the conflicts of values that are not arguments: those have each axis once.
  void FindConflicts() {
    std::map<std::pair<int32_t, int32_t>, Conflict> found;
    std::set<int32_t> of_arguments;
    for (const Instruction* argument : Arguments()) {
      for (const TensorRef& ref : graph_.Values(argument)) of_arguments.insert(ref.node);
    }
    ForEachValue([&](const Instruction& i, const hlo::Shape& shape, const TensorRef& ref) {
      if (of_arguments.contains(ref.node)) return;
      const std::vector<int32_t> decisions = DecisionsOf(shape, ref);
      std::set<std::pair<int32_t, int32_t>> before;
      for (const Instruction* operand : i.operands()) {
        if (!operand->shape().IsArray()) continue;
        before.merge(PairsOf(DecisionsOf(operand->shape(), graph_.Values(operand)[0])));
      }
      const bool made_here = i.shape().IsArray() && !i.operands().empty() &&
                             i.opcode() != hlo::Opcode::kGetTupleElement &&
                             i.opcode() != hlo::Opcode::kBroadcast;
      for (const auto& pair : PairsOf(decisions)) {
        Conflict& conflict = found[pair];
        conflict.first = pair.first;
        conflict.second = pair.second;
        ++conflict.values;
        conflict.bytes += shape.ByteSize();
        if (!made_here || before.contains(pair) || IsInside(i)) continue;
        conflict.places.push_back(PlaceOf(i));
      }
    });
    for (auto& [pair, conflict] : found) result_.conflicts.push_back(std::move(conflict));
    std::ranges::stable_sort(result_.conflicts, std::greater<>(), &Conflict::bytes);
  }

  void FindConstraints() {
    for (const Instruction* i : graph_.instructions()) {
      const auto said = in_.annotations.find(i);
      if (said == in_.annotations.end() || !i->shape().IsArray()) continue;
      if (!in_.constraints.contains(i) && !said->second.is_result) continue;
      if (IsInside(*i)) continue;
      result_.constraints.push_back(PlaceOf(*i, said->second.is_result));
    }
  }

  // Returns the place of an array.
  ConstraintPlace PlaceOf(const Instruction& i, bool is_result = false) {
    return {i.name(),
            i.SourceLocation(),
            i.op_name(),
            i.shape(),
            DecisionsOf(i.shape(), graph_.Values(&i)[0]),
            is_result};
  }

  absl::Status FindNamed(const std::vector<std::string>& names) {
    if (names.empty()) return absl::OkStatus();
    const NamedValues values(in_);
    for (const std::string& name : names) {
      const auto number = static_cast<int32_t>(result_.named.size());
      NamedValue& named = result_.named.emplace_back();
      named.name = name;
      for (const Instruction* value : values.Find(name)) {
        if (IsInside(*value)) {
          return UserError(fmt::format("--may-constrain {}: {} is inside of a shard_map", name,
                                       value->Describe()));
        }
        const std::vector<int64_t>& dims = value->shape().dims;
        if (named.places.empty()) named.divisors.assign(dims.size(), 0);
        if (dims.size() != named.divisors.size()) {
          return UserError(fmt::format(
              "--may-constrain {}: {} has {} dimensions, {} has {}; what is constrained together "
              "has as many",
              name, named.places[0].value, named.divisors.size(), value->name(), dims.size()));
        }
        for (size_t d = 0; d < dims.size(); ++d) {
          named.divisors[d] = std::gcd(named.divisors[d], dims[d]);
          named_dims_.emplace_back(DimOf(graph_.Values(value)[0], d),
                                   std::pair(number, static_cast<int32_t>(d)));
        }
        named.places.push_back(PlaceOf(*value));
      }
      if (named.places.empty()) return values.Missing("--may-constrain " + name, name);
    }
    return absl::OkStatus();
  }

  void FindReach() {
    std::map<int32_t, SplittableBy> of_root;
    // Constraints may be stated for values that nothing ties to an argument but a loop or a name.
    for (int32_t dim = 0; dim < first_.back(); ++dim) {
      const auto decision = number_of_.find(classes_.Find(dim));
      if (decision != number_of_.end())
        of_root[reach_.Find(dim)].decisions.insert(decision->second);
    }
    for (const auto& [dim, of_named] : named_dims_) {
      of_root[reach_.Find(dim)].named.insert(of_named);
    }
    for (const auto& [value, said] : in_.annotations) {
      if (value->opcode() == hlo::Opcode::kParameter && value->parent() == in_.module->entry()) {
        continue;
      }
      const std::span<const TensorRef> refs = graph_.Values(value);
      for (size_t leaf = 0; leaf < std::min(refs.size(), said.leaves.size()); ++leaf) {
        if (!said.leaves[leaf]) continue;
        const Sharding& sharding = *said.leaves[leaf];
        for (size_t d = 0; d < sharding.dims.size(); ++d) {
          SplittableBy& reach = of_root[reach_.Find(DimOf(refs[leaf], d))];
          std::set<std::string>& axes = IsInside(*value) ? reach.manual : reach.axes;
          for (const AxisRef& axis : sharding.dims[d].axes) {
            axes.insert(in_.mesh.mesh.axes[axis.axis].name);
          }
        }
      }
    }
    for (const auto& [call, region] : in_.manual_regions) {
      const auto crosses = [&](const TensorRef& ref, const Sharding& sharding) {
        for (size_t d = 0; d < sharding.dims.size(); ++d) {
          for (const AxisRef& axis : sharding.dims[d].axes) {
            of_root[reach_.Find(DimOf(ref, d))].manual.insert(in_.mesh.mesh.axes[axis.axis].name);
          }
        }
      };
      for (size_t n = 0; n < region.operands.size(); ++n) {
        crosses(graph_.Values(call->operand(n))[0], region.operands[n]);
      }
      for (size_t n = 0; n < region.results.size(); ++n) {
        crosses(graph_.Values(call)[n], region.results[n]);
      }
    }
    const auto reach_of = [&](std::span<const TensorRef> tensors) {
      SplittableBy reach;
      for (const TensorRef& ref : tensors) {
        for (size_t d = 0; d < graph_.nodes[ref.node].sharding.dims.size(); ++d) {
          const auto found = of_root.find(reach_.Find(DimOf(ref, d)));
          if (found == of_root.end()) continue;
          reach.decisions.insert(found->second.decisions.begin(), found->second.decisions.end());
          reach.axes.insert(found->second.axes.begin(), found->second.axes.end());
          reach.manual.insert(found->second.manual.begin(), found->second.manual.end());
          reach.named.insert(found->second.named.begin(), found->second.named.end());
        }
      }
      return reach;
    };
    for (const Op& op : graph_.ops) {
      if (op.kind != OpKind::kHlo || (op.instruction->opcode() != hlo::Opcode::kDot &&
                                      op.instruction->opcode() != hlo::Opcode::kConvolution)) {
        continue;
      }
      result_.products.push_back(
          {op.instruction->name(), LoopsOf(op.tensors), reach_of(op.tensors)});
    }
    for (size_t n = 0; n < result_.arguments.size(); ++n) {
      result_.arguments[n].reach = reach_of(graph_.Values(Arguments()[n]));
    }
  }

  std::set<int32_t> LoopsOf(std::span<const TensorRef> tensors) {
    std::set<int32_t> loops;
    for (const TensorRef& ref : tensors) {
      for (size_t d = 0; d < graph_.nodes[ref.node].sharding.dims.size(); ++d) {
        const auto found = number_of_.find(classes_.Find(DimOf(ref, d)));
        if (found != number_of_.end()) loops.insert(found->second);
      }
    }
    return loops;
  }

  const NormalisedModule& in_;
  const PropagationGraph& graph_;
  const std::vector<int32_t> first_;
  Classes classes_;  // by the major loops of dimensions: what is decided together
  Classes reach_;    // by all loops
  const std::set<const hlo::Computation*> inside_;
  std::map<int32_t, Decision> found_;
  std::map<int32_t, int32_t> number_of_;  // of a class, in the result
  // Dimensions of named values, each with the value and its number there.
  std::vector<std::pair<int32_t, std::pair<int32_t, int32_t>>> named_dims_;
  Decisions result_;
  mutable std::vector<Instruction*> arguments_;
};

}  // namespace

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

absl::StatusOr<Decisions> FindDecisions(const NormalisedModule& module,
                                        const std::vector<std::string>& named) {
  PropagationGraph graph(module, /*on_any_mesh=*/true);
  RETURN_IF_ERROR(graph.Build());
  return DecisionFinder(module, graph).Run(named);
}

std::string ToString(const Decisions& decisions) {
  std::string text = fmt::format("{:>16} {:>8} {:>14} {:>14}  {}\n", "elements", "values", "bytes",
                                 "of arguments", "dimensions of arguments");
  for (const Decision& d : decisions.all) {
    const std::string size =
        d.least == d.most ? fmt::format("{}", d.most) : fmt::format("{}..{}", d.least, d.most);
    text += fmt::format("{:>16} {:>8} {:>14} {:>14}  {}", size, d.values, d.bytes.value(),
                        d.argument_bytes.value(), fmt::join(d.arguments, ", "));
    if (d.conflicts > 0) {
      text += fmt::format("; {} value{} have two", d.conflicts, d.conflicts == 1 ? "" : "s");
    }
    text += "\n";
  }
  if (decisions.conflicts.empty()) return text;
  text += fmt::format("\n{:>16} {:>8} {:>14}  {}\n", "made by", "values", "bytes",
                      "conflicts, if both have one axis");
  for (const Conflict& c : decisions.conflicts) {
    text += fmt::format("{:>16} {:>8} {:>14}  {} | {}\n", c.places.size(), c.values,
                        c.bytes.value(), decisions.all[c.first].name, decisions.all[c.second].name);
  }
  return text;
}

}  // namespace tpusim::sharding
