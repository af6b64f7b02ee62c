// A plan of fusion: groups of instructions, one for every kernel to be.
//
// A group has results, its roots, and members that compute them. An expression may be
// a member of several groups: each computes it for itself. Every group starts as one
// instruction; merging moves them together and never makes an instruction anew, so a
// plan can be thought over without touching the program.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_PLAN_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_PLAN_H_

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "workloads/cost/candidate.h"
#include "workloads/target/target.h"

namespace tpusim::passes::fusion {

using cost::Part;
using cost::Price;
using Graph = cost::KernelGraph;

// Whether ascending numbers contain a value.
inline bool Contains(std::span<const int> sorted, int value) {
  return std::ranges::binary_search(sorted, value);
}

struct Group {
  std::vector<int> members;  // ascending: operands first
  std::vector<int> roots;    // ascending; what others read
  Price price;
  bool alive = false;
};

class Plan {
 public:
  // The graph, the costs and the target must outlive the plan.
  Plan(const Graph& graph, cost::CandidateCosts& costs, const target::Target& target);

  const Graph& graph() const { return graph_; }
  // A group's number is that of the instruction that it started as.
  const Group& group(int g) const { return groups_[g]; }
  int size() const { return graph_.size(); }
  // The group with instruction `i` as a root, or -1.
  int MadeBy(int i) const { return made_by_[i]; }
  // Living groups with `i` as a member, ascending.
  const std::vector<int>& Containing(int i) const { return containing_[i]; }

  // Groups that read a root of `g`, ascending, and whether anything else needs one.
  struct Consumers {
    std::vector<int> groups;
    bool others = false;
  };
  Consumers ConsumersOf(int g) const;

  // Members of both, in order.
  static std::vector<int> Union(std::span<const int> a, std::span<const int> b);
  Price PriceOf(std::span<const int> members, std::span<const int> roots) const {
    return costs_.BoundOf({members, roots});
  }
  // Arrays that a kernel of these members reads.
  int64_t CountInputs(std::span<const int> members) const {
    return static_cast<int64_t>(inputs_.Of(members).size());
  }
  const target::Target& target() const { return target_; }

  // Returns the name of what a group makes, for records.
  const std::string& NameOf(int g) const { return graph_.At(groups_[g].roots[0]).name(); }
  std::string NamesOf(std::span<const int> groups) const;

  Part HeroOf(int g) const { return cost::HeroOf(graph_, groups_[g].members); }

  // `producer` is computed inside each of `consumers`, whose prices are these then. It goes on
  // to be a kernel of its own if `stays`.
  void Inline(int producer, std::span<const int> consumers, std::span<const Price> prices,
              bool stays);
  // `from` becomes part of `into`, whose kernel then has those results of both that are read
  // outside.
  void Join(int into, int from);
  // Gives the group these members and results instead.
  void Replace(int g, std::vector<int> members, std::vector<int> roots);
  // Whether something outside of `g` reads `value` instead of computing it.
  bool ReadOutside(int g, int value) const { return ReadOutside(g, g, value); }
  // Returns those results of both groups that are read outside of the two.
  std::vector<int> RootsTogether(int a, int b) const;

 private:
  void SetMembers(int g, std::vector<int> members);
  void Dissolve(int g);
  bool ReadOutside(int a, int b, int value) const;

  const Graph& graph_;
  cost::CandidateCosts& costs_;
  const target::Target& target_;
  mutable cost::KernelInputs inputs_;
  std::vector<Group> groups_;
  std::vector<int> made_by_;
  std::vector<std::vector<int>> containing_;
};

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_PLAN_H_
