#include "sim/results/report/collective_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "sim/results/report/name_pattern.h"

namespace tpusim::results {
namespace {

std::string KeyOf(const CollectiveReport& c) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", c.kind, NumberlessKey(c.name),
                     NumberlessKey(c.scope), c.source, c.bytes.value(), c.group_size, c.axes,
                     c.algorithm);
}

// Rows that differ in numbers only, added up; most first.
class Overlaps {
 public:
  void Add(const std::vector<OverlapReport>& rows) {
    for (const OverlapReport& row : rows) {
      Sum& sum = sums_[NumberlessKey(row.what) + "\n" + NumberlessKey(row.text)];
      sum.what.Add(row.what);
      sum.text.Add(row.text);
      sum.time += row.time;
    }
  }
  std::vector<OverlapReport> Take() const {
    std::vector<OverlapReport> rows;
    for (const auto& [key, sum] : sums_) {
      rows.push_back({sum.what.text(), sum.time, sum.text.text()});
    }
    std::ranges::stable_sort(rows, std::greater<>(), &OverlapReport::time);
    return rows;
  }

 private:
  struct Sum {
    NamePattern what, text;
    Picoseconds time{0};
  };
  std::map<std::string, Sum> sums_;
};

CollectiveGroup GroupOf(const std::vector<const CollectiveReport*>& members) {
  CollectiveGroup group;
  group.sum = *members[0];
  if (members.size() == 1) return group;
  group.members = static_cast<int64_t>(members.size());
  CollectiveReport& sum = group.sum;
  NamePattern name, scope;
  Overlaps covered_by, exposed_by;
  sum.count = 0;
  sum.total = sum.exposed = Picoseconds(0);
  Picoseconds expected(0), bound(0);
  bool bounded = true;
  for (const CollectiveReport* c : members) {
    name.Add(c->name);
    scope.Add(c->scope);
    covered_by.Add(c->covered_by);
    exposed_by.Add(c->exposed_by);
    sum.count += c->count;
    sum.total += c->total;
    sum.exposed += c->exposed;
    expected += c->expected * c->count;
    bound += c->bound * c->count;
    bounded = bounded && c->bound > Picoseconds(0);
  }
  sum.name = name.text();
  sum.scope = scope.text();
  sum.expected = expected / sum.count;
  sum.bound = bounded ? bound / sum.count : Picoseconds(0);
  sum.covered_by = covered_by.Take();
  sum.exposed_by = exposed_by.Take();
  return group;
}

}  // namespace

std::vector<CollectiveGroup> GroupCollectives(const std::vector<CollectiveReport>& collectives) {
  std::vector<std::vector<const CollectiveReport*>> members;
  std::map<std::string, size_t> group_of;
  for (const CollectiveReport& c : collectives) {
    const auto [at, is_new] = group_of.emplace(KeyOf(c), members.size());
    if (is_new) members.emplace_back();
    members[at->second].push_back(&c);
  }
  std::vector<CollectiveGroup> groups;
  for (const auto& of : members) groups.push_back(GroupOf(of));
  std::ranges::stable_sort(groups, std::greater<>(),
                           [](const CollectiveGroup& group) { return group.sum.total; });
  return groups;
}

}  // namespace tpusim::results
