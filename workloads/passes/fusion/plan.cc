#include "workloads/passes/fusion/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <utility>

namespace tpusim::passes::fusion {
namespace {

void Insert(std::vector<int>& sorted, int value) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), value);
  if (at == sorted.end() || *at != value) sorted.insert(at, value);
}

void Erase(std::vector<int>& sorted, int value) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), value);
  if (at != sorted.end() && *at == value) sorted.erase(at);
}

}  // namespace

Plan::Plan(const Graph& graph, cost::CandidateCosts& costs, const target::Target& target)
    : graph_(graph),
      costs_(costs),
      target_(target),
      inputs_(graph),
      groups_(graph.size()),
      made_by_(graph.size(), -1),
      containing_(graph.size()) {
  for (int i = 0; i < graph.size(); ++i) {
    const Part part = graph.parts[i];
    if (part == Part::kNone || part == Part::kFree || !costs.HasRule(i)) continue;
    Group& g = groups_[i];
    g.members = g.roots = {i};
    g.alive = true;
    g.price = PriceOf(g.members, g.roots);
    made_by_[i] = i;
    containing_[i] = {i};
  }
}

Plan::Consumers Plan::ConsumersOf(int g) const {
  Consumers consumers;
  for (int root : groups_[g].roots) {
    if (root == graph_.root) consumers.others = true;
    for (int user : graph_.users[root]) {
      if (containing_[user].empty()) consumers.others = true;
      for (int c : containing_[user]) {
        // One that computes the root for itself does not read it.
        if (!Contains(containing_[root], c)) consumers.groups.push_back(c);
      }
    }
  }
  std::sort(consumers.groups.begin(), consumers.groups.end());
  consumers.groups.erase(std::unique(consumers.groups.begin(), consumers.groups.end()),
                         consumers.groups.end());
  return consumers;
}

std::vector<int> Plan::Union(std::span<const int> a, std::span<const int> b) {
  std::vector<int> both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

std::string Plan::NamesOf(std::span<const int> groups) const {
  constexpr size_t kMost = 4;  // number: names in a message
  std::vector<std::string> names;
  for (const int g : groups.first(std::min(groups.size(), kMost))) names.push_back(NameOf(g));
  const std::string more =
      groups.size() > kMost ? fmt::format(" and {} more", groups.size() - kMost) : "";
  return fmt::format("{}{}", fmt::join(names, ", "), more);
}

void Plan::SetMembers(int g, std::vector<int> members) {
  for (int m : members) Insert(containing_[m], g);
  groups_[g].members = std::move(members);
}

void Plan::Dissolve(int g) {
  Group& group = groups_[g];
  for (int m : group.members) Erase(containing_[m], g);
  for (int root : group.roots) made_by_[root] = -1;
  group = {};
}

void Plan::Inline(int producer, std::span<const int> consumers, std::span<const Price> prices,
                  bool stays) {
  const std::vector<int> added = groups_[producer].members;
  for (size_t n = 0; n < consumers.size(); ++n) {
    Group& group = groups_[consumers[n]];
    SetMembers(consumers[n], Union(group.members, added));
    group.price = prices[n];
  }
  if (!stays) Dissolve(producer);
}

void Plan::Replace(int g, std::vector<int> members, std::vector<int> roots) {
  Group& group = groups_[g];
  for (int m : group.members) Erase(containing_[m], g);
  for (int root : group.roots) made_by_[root] = -1;
  group.roots = std::move(roots);
  SetMembers(g, std::move(members));
  for (int root : group.roots) made_by_[root] = g;
  group.price = PriceOf(group.members, group.roots);
}

bool Plan::ReadOutside(int a, int b, int value) const {
  if (value == graph_.root) return true;
  const std::vector<int>& computing = containing_[value];
  return std::any_of(graph_.users[value].begin(), graph_.users[value].end(), [&](int user) {
    const std::vector<int>& groups = containing_[user];
    return groups.empty() || std::any_of(groups.begin(), groups.end(), [&](int g) {
             return g != a && g != b && !Contains(computing, g);
           });
  });
}

std::vector<int> Plan::RootsTogether(int a, int b) const {
  std::vector<int> roots = Union(groups_[a].roots, groups_[b].roots);
  std::erase_if(roots, [&](int root) { return !ReadOutside(a, b, root); });
  return roots;
}

void Plan::Join(int into, int from) {
  std::vector<int> roots = RootsTogether(into, from);
  std::vector<int> members = Union(groups_[into].members, groups_[from].members);
  Dissolve(from);
  Replace(into, std::move(members), std::move(roots));
}

}  // namespace tpusim::passes::fusion
