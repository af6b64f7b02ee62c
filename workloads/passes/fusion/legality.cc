#include <algorithm>
#include <unordered_set>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/needed_share.h"
#include "workloads/kernels/view/whole_rows.h"
#include "workloads/passes/fusion/limits.h"
#include "workloads/passes/fusion/steps.h"

namespace tpusim::passes::fusion {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr char kTooLarge[] = "the kernel would have too many instructions or operands";
constexpr char kOneHero[] = "a kernel has one product or reduction";
constexpr char kNotAligned[] = "what follows a result is not computed element by element";
constexpr char kOverwritten[] = "it is overwritten in place";
constexpr char kAfterReduce[] = "the result of a reduction is stored";
constexpr char kBroadcastComputed[] = "a kernel broadcasts along vectors only what it reads";
constexpr char kShiftsComputed[] = "a kernel cuts and joins only what it reads";
constexpr char kOtherBlocks[] = "it reads an operand of the product, but other blocks of it";
constexpr char kBesideProduct[] = "it moves elements beside a product";
constexpr char kTurnsLanes[] = "lanes are turned by a kernel of its own";

// Members that depend on one of `from`, ascending.
std::vector<int> Dependents(const Graph& graph, const std::vector<int>& from,
                            const std::vector<int>& members) {
  std::vector<int> found;
  for (int m : members) {
    const std::vector<int>& operands = graph.operands[m];
    if (std::any_of(operands.begin(), operands.end(),
                    [&](int o) { return Contains(from, o) || Contains(found, o); })) {
      found.push_back(m);
    }
  }
  return found;
}

// Calls `visit` with the readers of `value` and of its bitcasts.
template <typename Visit>
void ForEachReader(const Graph& graph, int value, const Visit& visit) {
  for (int user : graph.users[value]) {
    if (graph.At(user).opcode() == Opcode::kBitcast) {
      ForEachReader(graph, user, visit);
    } else {
      visit(user);
    }
  }
}

template <typename Wanted>
bool AnyReader(const Graph& graph, int value, const Wanted& wanted) {
  bool any = false;
  ForEachReader(graph, value, [&](int reader) { any = any || wanted(reader); });
  return any;
}

// Whether an operand of a product is the exponentials of a softmax, or what is computed from them
// in one operation, their quotient. `spread` is the maximum spread over its rows.
bool QuotientIsAnOperand(const Graph& graph, int spread) {
  const auto is_product = [&](int i) { return graph.Is(i, Part::kProduct); };
  const auto is_sum = [&](int i) { return graph.Is(i, Part::kReduce); };
  const auto is_elementwise = [&](int i) { return hlo::IsElementwise(graph.At(i)); };
  const auto is_operand = [&](int i) {
    return is_product(i) || (is_elementwise(i) && AnyReader(graph, i, is_product));
  };
  const auto is_exponential = [&](int i) {
    return is_elementwise(i) && AnyReader(graph, i, is_sum) && AnyReader(graph, i, is_operand);
  };
  return AnyReader(graph, spread, [&](int difference) {
    return is_elementwise(difference) && AnyReader(graph, difference, is_exponential);
  });
}

// Whether the TPU compiler keeps a reduction and `spread`, its result over its rows, in kernels of
// their own whatever the rows are: the result is read elsewhere too, or the rows are computed from
// something and the exponentials of what is left go to a product at once. (Softmax between two
// products, compiled for all chips with libtpu 0.0.52: scores that are scaled, masked, biased, or
// as they are; the maximum is a result or not; shares are an operand as they are, converted, or
// multiplied. Converted or multiplied, or of scores as they are, the rows are kept whole.)
bool KeepsRowsApart(const Graph& graph, int spread) {
  const int reduction = graph.operands[spread][0];
  if (AnyReader(graph, reduction, [&](int reader) { return reader != spread; })) return true;
  int rows = graph.operands[reduction][0];
  while (graph.At(rows).opcode() == Opcode::kBitcast) rows = graph.operands[rows][0];
  return hlo::IsElementwise(graph.At(rows)) && QuotientIsAnOperand(graph, spread);
}

// Whether `m` spreads the result of a reduction over rows that a block can hold whole, of
// a kernel around `product` (-1: none).
bool SpreadsRows(const Plan& plan, int m, int product) {
  const Graph& graph = plan.graph();
  const configs::Policy& policy = plan.target().policy();
  const Instruction* reduction = kernels::ReductionSpreadBy(graph.At(m), policy);
  if (reduction == nullptr || KeepsRowsApart(graph, m)) return false;
  return product < 0 || kernels::OperandAlongRows(graph.At(product), *reduction, policy) >= 0;
}

// Whether two blocks of every array that goes in or out fit into VMEM if blocks hold whole rows.
bool RowsFit(const Plan& plan, int a, int b) {
  const Graph& graph = plan.graph();
  const target::Target& target = plan.target();
  const std::vector<int> members = Plan::Union(plan.group(a).members, plan.group(b).members);
  const std::vector<int> roots = plan.RootsTogether(a, b);
  for (int m : members) {
    const Instruction* reduction = kernels::ReductionSpreadBy(graph.At(m), target.policy());
    if (reduction == nullptr || !Contains(members, graph.operands[m][0])) continue;
    const auto is_row_by_row = [&](int value) {
      return !graph.Is(value, Part::kFree) &&
             graph.At(value).shape().dims == reduction->operand(0)->shape().dims;
    };
    std::vector<int> moved;
    for (int member : members) {
      for (int operand : graph.operands[member]) {
        if (!Contains(members, operand) && is_row_by_row(operand)) moved.push_back(operand);
      }
    }
    std::sort(moved.begin(), moved.end());
    moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
    const auto windows = static_cast<int64_t>(moved.size()) +
                         std::count_if(roots.begin(), roots.end(), is_row_by_row);
    // The vectors of results that go along take less than one block.
    const Bytes block = kernels::RowBytes(target, *reduction);
    if (block * (2 * windows + 1) > target.ScopedVmem()) return false;
  }
  return true;
}

int ProductIn(const Graph& graph, const std::vector<int>& members) {
  const auto product = std::find_if(members.begin(), members.end(),
                                    [&](int m) { return graph.Is(m, Part::kProduct); });
  return product == members.end() ? -1 : *product;
}

// Whether every one of `members` that depends on `from` follows it element by element
// or, with `may_reduce`, collects it in a reduction, which may be spread over whole rows
// again. `product` is that of the kernel that makes `from`.
bool FollowsElementwise(const Plan& plan, const std::vector<int>& from, int product,
                        const std::vector<int>& members, bool may_reduce) {
  const Graph& graph = plan.graph();
  std::vector<int> reduced;
  const std::vector<int> dependents = Dependents(graph, from, members);
  for (int m : dependents) {
    const Instruction& i = graph.At(m);
    const std::vector<int>& operands = graph.operands[m];
    const auto depends = [&](int o) { return Contains(from, o) || Contains(dependents, o); };
    if (SpreadsRows(plan, m, product)) continue;
    if (std::any_of(operands.begin(), operands.end(),
                    [&](int o) { return Contains(reduced, o); })) {
      return false;
    }
    if (i.opcode() == Opcode::kReduce) {
      if (!may_reduce) return false;
      reduced.push_back(m);
      continue;
    }
    if (i.opcode() == Opcode::kDynamicUpdateSlice) {
      // The update, not what is updated.
      if (depends(operands[0]) || !depends(operands[1])) return false;
      continue;
    }
    if (i.opcode() != Opcode::kBitcast && !hlo::IsElementwise(i)) return false;
  }
  return true;
}

// Whether a member of `consumer` that is `wanted` reads a result of `producer`, by whatever name.
template <typename Wanted>
bool Feeds(const Plan& plan, int producer, int consumer, const Wanted& wanted) {
  const Graph& graph = plan.graph();
  std::vector<int> names = plan.group(producer).roots;  // of the value: bitcasts as well
  for (int m : plan.group(consumer).members) {
    const std::vector<int>& operands = graph.operands[m];
    const auto reads = [&](int operand) { return Contains(names, operand); };
    if (std::none_of(operands.begin(), operands.end(), reads)) continue;
    if (wanted(graph.At(m))) return true;
    if (graph.At(m).opcode() == Opcode::kBitcast) names.push_back(m);
  }
  return false;
}

template <typename Allowed>
bool HasOnly(const Plan& plan, int g, const Allowed& allowed) {
  const std::vector<int>& members = plan.group(g).members;
  return std::all_of(members.begin(), members.end(),
                     [&](int m) { return allowed(plan.graph().At(m).opcode()); });
}

// Whether a broadcast in `consumer` reads what `producer` computes. A vector of results of
// rows lies along the lanes: it comes in by its own way and is spread when it is loaded.
bool FeedsBroadcast(const Plan& plan, int producer, int consumer) {
  const auto renames_or_spreads = [](Opcode opcode) {
    return opcode == Opcode::kBitcast || opcode == Opcode::kBroadcast;
  };
  if (HasOnly(plan, producer, renames_or_spreads)) return false;
  return Feeds(plan, producer, consumer,
               [](const Instruction& i) { return i.opcode() == Opcode::kBroadcast; });
}

// Whether a slice, pad or concatenation in `consumer` reads what `producer` computes. Where such
// elements come from is a matter of addresses, and what is in registers has none. So the TPU
// compiler has it for every one of them that was compiled, whether whole tiles move or parts.
bool FeedsShift(const Plan& plan, int producer, int consumer) {
  if (HasOnly(plan, producer, [](Opcode opcode) { return opcode == Opcode::kBitcast; })) {
    return false;
  }
  return Feeds(plan, producer, consumer, [](const Instruction& i) {
    return hlo::ShiftsElements(i.opcode()) || kernels::IsRelayout(i);
  });
}

// Whether one of the two turns lanes and the other does anything. Of the 490 fusions with a copy in
// them in 249 modules that the TPU compiler wrote, none puts another dimension along the lanes:
// such copies and transposes are kernels of their own, where only other dimensions move they are
// not.
bool TurnsLanesBeside(const Plan& plan, int a, int b) {
  const auto turns = [&](int g) {
    return std::ranges::any_of(plan.group(g).members,
                               [&](int m) { return kernels::TurnsLanes(plan.graph().At(m)); });
  };
  const auto renames = [&](int g) {
    return HasOnly(plan, g, [](Opcode opcode) { return opcode == Opcode::kBitcast; });
  };
  return (turns(a) && !renames(b)) || (turns(b) && !renames(a));
}

// Members on the way into the product of a group.
std::vector<int> OnTheWayIn(const Graph& graph, const std::vector<int>& members) {
  std::vector<int> found;  // descending while it grows
  std::unordered_set<int> feeds;
  for (auto m = members.rbegin(); m != members.rend(); ++m) {
    if (!graph.Is(*m, Part::kProduct) && !feeds.contains(*m)) continue;
    if (feeds.contains(*m)) found.push_back(*m);
    for (int operand : graph.operands[*m]) feeds.insert(operand);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Whether `followers` read an array that an operand of the product is computed from.
bool ReadsAnOperand(const Graph& graph, const std::vector<int>& members,
                    const std::vector<int>& followers) {
  std::vector<int> feeding = OnTheWayIn(graph, members);
  for (int m : members) {
    if (graph.Is(m, Part::kProduct)) feeding.push_back(m);
  }
  std::unordered_set<int> read;
  for (int m : feeding) {
    for (int operand : graph.operands[m]) {
      if (Contains(members, operand) || graph.At(operand).shape().dims.empty()) continue;
      if (!graph.Is(operand, Part::kFree)) read.insert(operand);
    }
  }
  return std::any_of(followers.begin(), followers.end(), [&](int m) {
    return !Contains(members, m) &&
           std::any_of(graph.operands[m].begin(), graph.operands[m].end(),
                       [&](int operand) { return read.contains(operand); });
  });
}

bool MayBeBesideProduct(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kBroadcast:
    case Opcode::kBitcast:
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
      return true;
    default:
      return hlo::IsElementwise(i);
  }
}

// Whether a dynamic-update-slice among `members` overwrites one of `values`.
bool Overwrites(const Graph& graph, const std::vector<int>& members,
                const std::vector<int>& values) {
  return std::any_of(members.begin(), members.end(), [&](int m) {
    return graph.Is(m, Part::kUpdate) && Contains(values, graph.operands[m][0]);
  });
}

// Whether one of `members` reads all of what is updated in place.
bool ReadsUpdated(const Graph& graph, const std::vector<int>& roots,
                  const std::vector<int>& members) {
  return std::any_of(roots.begin(), roots.end(), [&](int root) {
    return graph.Is(root, Part::kUpdate) &&
           std::any_of(graph.users[root].begin(), graph.users[root].end(),
                       [&](int user) { return Contains(members, user); });
  });
}

// Whether an array that is updated in place is also read, other than by slices.
bool ReadsWhatItUpdates(const Graph& graph, const std::vector<int>& members) {
  for (int update : members) {
    if (!graph.Is(update, Part::kUpdate)) continue;
    const int target = graph.operands[update][0];
    for (int user : graph.users[target]) {
      if (user == update || !Contains(members, user)) continue;
      if (graph.At(user).opcode() != Opcode::kDynamicSlice) return true;
    }
  }
  return false;
}

const char* WhyNotTogether(const Plan& plan, const std::vector<int>& members) {
  if (std::ssize(members) > limits::kFusedMembers.most()) {
    limits::kFusedMembers.Reached();
    return kTooLarge;
  }
  if (plan.CountInputs(members) > plan.target().policy().fusion_most_operands) return kTooLarge;
  return ReadsWhatItUpdates(plan.graph(), members) ? kOverwritten : nullptr;
}

// Whether `reader` needs a result of `maker` that it does not compute for itself.
bool Reads(const Graph& graph, const Group& reader, const Group& maker) {
  std::vector<int> read = maker.roots;
  std::erase_if(read, [&](int root) { return Contains(reader.members, root); });
  return !Dependents(graph, read, reader.members).empty();
}

// The dimensions over which a kernel without a product runs: of what its reduction reads or
// its update writes, else of its first result.
std::vector<int64_t> DomainOf(const Plan& plan, int g) {
  const Graph& graph = plan.graph();
  for (int m : plan.group(g).members) {
    if (graph.Is(m, Part::kReduce)) return graph.At(graph.operands[m][0]).shape().dims;
    if (graph.Is(m, Part::kUpdate)) return graph.At(graph.operands[m][1]).shape().dims;
  }
  return graph.At(plan.group(g).roots[0]).shape().dims;
}

// Whether `g`, which reads `value`, goes over it, or computes with slices of it, element by
// element. Of index maps alone only a slice may: what needs it has it in memory, and the TPU
// compiler writes equal slices of an array side by side (neighbours in a stencil, compiled for
// v5e).
bool RunsOver(const Plan& plan, int g, int value, const std::vector<int64_t>& domain) {
  const Graph& graph = plan.graph();
  if (graph.At(value).shape().dims == domain) return true;
  if (HasOnly(plan, g, hlo::IsIndexMap)) {
    const std::vector<int>& members = plan.group(g).members;
    if (members.size() != 1 || graph.At(members[0]).opcode() != Opcode::kSlice) return false;
  }
  return std::all_of(graph.users[value].begin(), graph.users[value].end(), [&](int user) {
    const Instruction& i = graph.At(user);
    return !Contains(plan.group(g).members, user) ||
           (kernels::AccessOf(i, 0) == kernels::Access::kSlice && i.shape().dims == domain);
  });
}

}  // namespace

const char* WhyNotInline(const Plan& plan, int producer, int consumer) {
  const Graph& graph = plan.graph();
  const Group& p = plan.group(producer);
  const Group& c = plan.group(consumer);
  const Part p_hero = plan.HeroOf(producer), c_hero = plan.HeroOf(consumer);
  if (graph.Is(p.roots[0], Part::kUpdate)) return "it updates in place";
  if (Overwrites(graph, c.members, p.roots)) return kOverwritten;
  if (TurnsLanesBeside(plan, producer, consumer)) return kTurnsLanes;
  if (p_hero == Part::kReduce) return kAfterReduce;
  if (FeedsBroadcast(plan, producer, consumer)) return kBroadcastComputed;
  if (FeedsShift(plan, producer, consumer)) return kShiftsComputed;
  if (p_hero == Part::kProduct) {
    if (c_hero == Part::kProduct) return kOneHero;
    if (!FollowsElementwise(plan, p.roots, ProductIn(graph, p.members), c.members,
                            c_hero == Part::kReduce)) {
      return kNotAligned;
    }
    // What else the consumer reads comes by blocks of the hero's result.
    const std::vector<int> after = Dependents(graph, p.roots, c.members);
    for (int m : c.members) {
      if (!Contains(after, m) && !MayBeBesideProduct(graph.At(m))) return kBesideProduct;
    }
  } else if (c_hero == Part::kProduct) {
    const std::vector<int> inside = OnTheWayIn(graph, c.members);
    const int root = p.roots[0];
    const bool beside =
        std::any_of(graph.users[root].begin(), graph.users[root].end(), [&](int user) {
          return Contains(c.members, user) && !graph.Is(user, Part::kProduct) &&
                 !Contains(inside, user);
        });
    for (int m : p.members) {
      if (beside && !MayBeBesideProduct(graph.At(m))) return kBesideProduct;
    }
  }
  return WhyNotTogether(plan, Plan::Union(p.members, c.members));
}

const char* WhyNotFollow(const Plan& plan, int producer, int consumer) {
  const Graph& graph = plan.graph();
  const Group& p = plan.group(producer);
  const Group& c = plan.group(consumer);
  const Part p_hero = plan.HeroOf(producer), c_hero = plan.HeroOf(consumer);
  if (c_hero == Part::kProduct) return kOneHero;
  if (TurnsLanesBeside(plan, producer, consumer)) return kTurnsLanes;
  if (Overwrites(graph, c.members, p.roots) || ReadsUpdated(graph, p.roots, c.members)) {
    return kOverwritten;
  }
  const int product = ProductIn(graph, p.members);
  if (!FollowsElementwise(plan, p.roots, product, c.members, /*may_reduce=*/true)) {
    return kNotAligned;
  }
  for (int root : p.roots) {
    if (!graph.Is(root, Part::kReduce)) continue;
    for (int user : graph.users[root]) {
      if (Contains(c.members, user) && !SpreadsRows(plan, user, product)) return kAfterReduce;
    }
  }
  if (p_hero == Part::kProduct) {
    const std::vector<int> after = Dependents(graph, p.roots, c.members);
    for (int m : c.members) {
      if (!Contains(after, m) && !MayBeBesideProduct(graph.At(m))) return kBesideProduct;
    }
    if (ReadsAnOperand(graph, p.members, c.members)) return kOtherBlocks;
    // Every result follows the product: a block has nothing else to do.
    for (int root : c.roots) {
      if (!Contains(after, root)) return kNotAligned;
    }
  }
  if (!RowsFit(plan, producer, consumer)) return "rows of all that it reads and writes do not fit";
  return WhyNotTogether(plan, Plan::Union(p.members, c.members));
}

const char* WhyNotSiblings(const Plan& plan, int a, int b, int shared) {
  const Graph& graph = plan.graph();
  if (plan.HeroOf(a) == Part::kProduct || plan.HeroOf(b) == Part::kProduct) return kOneHero;
  if (TurnsLanesBeside(plan, a, b)) return kTurnsLanes;
  const std::vector<int64_t> domain = DomainOf(plan, a);
  if (domain != DomainOf(plan, b)) return "they run over different dimensions";
  if (!RunsOver(plan, a, shared, domain) || !RunsOver(plan, b, shared, domain)) {
    return "what they share is not what they run over";
  }
  const Group &ga = plan.group(a), &gb = plan.group(b);
  if (Reads(graph, gb, ga) || Reads(graph, ga, gb)) return "one needs the other's result";
  const std::vector<int> value = {shared};
  if (Overwrites(graph, ga.members, value) || Overwrites(graph, gb.members, value)) {
    return kOverwritten;
  }
  return WhyNotTogether(plan, Plan::Union(ga.members, gb.members));
}

}  // namespace tpusim::passes::fusion
