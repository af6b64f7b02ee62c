#include "workloads/trip_counts.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <optional>

#include "configs/status_macros.h"
#include "workloads/hlo/cost.h"

namespace tpusim::workloads {

TripCounts::TripCounts(const tpusim::Workload& workload, StatedTripCounts stated)
    : stated_(std::move(stated)) {
  for (const auto& t : workload.trip_counts()) stated_.emplace_back(t.loop(), t.count());
}

absl::StatusOr<int64_t> TripCounts::operator()(const hlo::Instruction& loop) {
  const auto known = known_.find(loop.name());
  if (known != known_.end()) return known->second;
  for (const auto& [pattern, count] : stated_) {
    if (fnmatch(pattern.c_str(), loop.name().c_str(), 0) == 0) {
      assumptions_.push_back(fmt::format("{} runs {} times, as stated", loop.Describe(), count));
      return known_[loop.name()] = count;
    }
  }
  if (const auto derived = hlo::TripCount(loop)) return known_[loop.name()] = *derived;
  return UserError(
      fmt::format("the trip count of {} depends on data; state it with --trip-count {}=N",
                  loop.Describe(), loop.name()));
}

std::vector<std::string> TripCounts::Unused() const {
  std::vector<std::string> warnings;
  for (const auto& [pattern, count] : stated_) {
    const bool used = std::any_of(known_.begin(), known_.end(), [&](const auto& loop) {
      return fnmatch(pattern.c_str(), loop.first.c_str(), 0) == 0;
    });
    if (used) continue;
    std::vector<std::string> loops;
    for (const auto& [name, trips] : known_) loops.push_back(name);
    warnings.push_back(fmt::format("trip count {}={} has no effect: {}", pattern, count,
                                   loops.empty()
                                       ? "the program has no loop"
                                       : fmt::format("its loops are {}", fmt::join(loops, ", "))));
  }
  return warnings;
}

}  // namespace tpusim::workloads
