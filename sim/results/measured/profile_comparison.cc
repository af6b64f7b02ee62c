#include "sim/results/measured/profile_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/results/report/name_pattern.h"
#include "sim/results/report/placed_ops.h"
#include "sim/results/report/rollup.h"
#include "sim/results/report/scope.h"

namespace tpusim::results {
namespace {

// Returns the operations of the main streams, named as in a profile, each the mean of all devices
// as there.
std::vector<ProfiledOp> SimulatedOps(const isa::ProgramInfo& info, const sim::Timeline& timeline) {
  std::vector<ProfiledOp> ops;
  for (size_t i = 0; i < info.ops.size(); ++i) {
    const isa::OpInfo& op = info.ops[i];
    const sim::MeanOpTotals& mean = timeline.mean_ops[i];
    if (op.is_async || mean.count == 0) continue;
    ops.push_back({op.name, XprofCategory(op), op.scope, op.source, mean.count, mean.main});
  }
  return ops;
}

// Rows that either side adds to.
template <typename Key>
class ProfileRows {
 public:
  void Add(const Key& key, const ProfiledOp& op, bool simulated) {
    Named& named = rows_[key];
    named.scope.Add(op.scope);
    ProfileRow& row = named.row;
    (simulated ? row.simulated : row.measured) += op.time;
    (simulated ? row.simulated_count : row.measured_count) += op.count;
    if (row.name.empty()) row.name = op.name;
    if (row.category.empty()) row.category = op.category;
    if (row.source.empty()) row.source = op.source;
  }
  template <typename By>
  std::vector<ProfileRow> Take(const By& by) {
    std::vector<ProfileRow> rows;
    for (auto& [key, named] : rows_) {
      named.row.scope = named.scope.text();
      if (named.row.measured == Picoseconds(0) && named.row.simulated == Picoseconds(0)) continue;
      rows.push_back(std::move(named.row));
    }
    std::ranges::stable_sort(rows, std::greater<>(), by);
    return rows;
  }

 private:
  struct Named {
    NamePattern scope;
    ProfileRow row;
  };
  std::map<Key, Named> rows_;
};

Picoseconds AbsoluteTime(Picoseconds t) { return std::max(t, Picoseconds(0) - t); }

bool ShareNames(const std::vector<ProfiledOp>& measured, const std::vector<ProfiledOp>& simulated) {
  std::set<std::string> names;
  for (const ProfiledOp& op : simulated) names.insert(op.name);
  Picoseconds all(0), shared(0);
  for (const ProfiledOp& op : measured) {
    all += op.time;
    if (names.contains(op.name)) shared += op.time;
  }
  return all > Picoseconds(0) && shared + shared >= all;
}

ProfiledOp Idle(Picoseconds time) {
  const std::string idle(kIdle);
  return {idle, idle, "", "", 0, time};
}

ProfiledOp AtPlace(ProfiledOp op) {
  op.name.clear();
  op.scope = ScopeText(ScopesOf(op.scope));
  return op;
}

// Two compilers may fuse a place otherwise, but what computes there is no collective and no copy.
OpPart PartOf(const std::string& category) {
  const auto is = [&category](std::string_view prefix) { return category.starts_with(prefix); };
  if (is("all-") || is("reduce-scatter") || is("collective-") || is("ragged-all") || is("async-")) {
    return OpPart::kCollective;
  }
  if (is("copy") || is("data formatting")) return OpPart::kCopy;
  return category == kIdle || is("while") || is("conditional") || is("call") ? OpPart::kRest
                                                                             : OpPart::kKernel;
}

using PlaceKey = std::tuple<std::string, std::string, OpPart>;
PlaceKey KeyOfPlace(const ProfiledOp& op) {
  return {NumberlessKey(op.scope), op.source.substr(op.source.rfind('/') + 1), PartOf(op.category)};
}

}  // namespace

ProfileComparison CompareProfile(Profile profile, const isa::ProgramInfo& info,
                                 const sim::Timeline& timeline, bool by_tpu_compiler) {
  ProfileComparison comparison;
  std::vector<ProfiledOp> simulated = SimulatedOps(info, timeline);
  Picoseconds simulated_idle = timeline.step_time;
  for (const ProfiledOp& op : simulated) simulated_idle -= op.time;
  comparison.simulated = timeline.step_time;
  const bool operations = by_tpu_compiler && ShareNames(profile.ops, simulated);
  comparison.rows_are = operations ? ProfileRowsAre::kOperations : ProfileRowsAre::kPlaces;

  const Picoseconds measured_idle = profile.Idle();
  std::vector<ProfiledOp> measured = std::move(profile.ops);
  profile.ops.clear();
  measured.push_back(Idle(measured_idle));
  simulated.push_back(Idle(simulated_idle));

  ProfileRows<std::string> categories, by_name;
  ProfileRows<PlaceKey> by_place;
  for (const bool side : {false, true}) {
    for (const ProfiledOp& op : side ? simulated : measured) {
      categories.Add(op.category, {op.category, op.category, "", "", op.count, op.time}, side);
      if (operations) {
        by_name.Add(op.name, op, side);
      } else {
        const ProfiledOp at_place = AtPlace(op);
        by_place.Add(KeyOfPlace(at_place), at_place, side);
      }
    }
  }
  comparison.categories =
      categories.Take([](const ProfileRow& row) { return std::max(row.measured, row.simulated); });
  const auto difference = [](const ProfileRow& row) { return AbsoluteTime(row.Difference()); };
  comparison.rows = operations ? by_name.Take(difference) : by_place.Take(difference);
  for (const ProfileRow& row : comparison.rows) {
    if (row.simulated > Picoseconds(0)) comparison.matched += row.measured;
  }
  comparison.profile = std::move(profile);
  return comparison;
}

}  // namespace tpusim::results
