#include "workloads/compiler/trip_counts.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include "configs/status_macros.h"
#include "workloads/compiler/reasons.h"
#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/rules/assumed_trips.h"

namespace tpusim::compiler {
namespace {

bool Matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// "a, b, c and 40 more".
std::string ListOf(const std::vector<std::string>& names) {
  constexpr size_t kNamed = 6;
  if (names.size() <= kNamed) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kNamed, ", "),
                     names.size() - kNamed);
}

}  // namespace

bool TripCounts::Override::GoesBeyond(const std::string& loop, std::optional<int64_t> most) const {
  return most && pattern != loop && count > *most;
}

TripCounts::TripCounts(const tpusim::Workload& workload, TripCountOverrides overrides) {
  for (auto& [pattern, count] : overrides) overrides_.push_back({std::move(pattern), count});
  for (const auto& t : workload.trip_counts()) overrides_.push_back({t.loop(), t.count()});
}

TripCounts::Override* TripCounts::Find(const std::string& name, bool globs) {
  for (Override& s : overrides_) {
    if (s.pattern == name || (globs && Matches(s.pattern, name))) return &s;
  }
  return nullptr;
}

absl::StatusOr<int64_t> TripCounts::operator()(const hlo::Instruction& loop) {
  const auto known = known_.find(loop.name());
  if (known != known_.end()) return known->second;
  Override* found = Find(loop.name(), /*globs=*/false);
  if (found == nullptr) {
    if (const auto derived = hlo::TripCount(loop)) {
      derived_.insert(loop.name());
      return known_[loop.name()] = *derived;
    }
    found = Find(loop.name(), /*globs=*/true);
  }
  const Records said(&assumptions_);
  const auto assumed = hlo::AssumedTripsOf(loop);
  if (assumed && (found == nullptr || found->GoesBeyond(loop.name(), assumed->most))) {
    const int64_t count = found == nullptr ? assumed->count : *assumed->most;
    if (found != nullptr) found->used = true;
    said.Add(found == nullptr ? reasons::kLoopAssumed : reasons::kLoopMost, loop.name(),
             {{"loop", loop.Describe()}, {"count", count}, {"sentence", assumed->sentence}});
    return known_[loop.name()] = count;
  }
  if (found == nullptr) {
    return UserError(
        fmt::format("the trip count of {} depends on data; state it with --trip-count {}=N",
                    loop.Describe(), loop.name()));
  }
  found->used = true;
  said.Add(reasons::kLoopStated, loop.name(), {{"loop", loop.Describe()}, {"count", found->count}});
  return known_[loop.name()] = found->count;
}

std::optional<int64_t> TripCounts::OfKernelLoop(const tpusim::KernelLoop& loop) {
  const auto known = known_.find(loop.name());
  if (known != known_.end()) return known->second;
  const std::string described = fmt::format("the kernel loop {}{}", loop.name(),
                                            loop.source().empty() ? "" : " at " + loop.source());
  const std::optional<int64_t> most =
      loop.has_at_most() ? std::optional(loop.at_most()) : std::nullopt;
  const Records said(&assumptions_);
  Override* found = Find(loop.name(), /*globs=*/true);
  if (found == nullptr && !most) return std::nullopt;
  if (found != nullptr) found->used = true;
  if (found == nullptr || found->GoesBeyond(loop.name(), most)) {
    said.Add(reasons::kLoopMost, loop.name(), {{"loop", described}, {"count", *most}});
    return known_[loop.name()] = *most;
  }
  said.Add(reasons::kLoopStated, loop.name(), {{"loop", described}, {"count", found->count}});
  return known_[loop.name()] = found->count;
}

std::vector<Record> TripCounts::Unused() const {
  std::vector<Record> warnings;
  for (const Override& s : overrides_) {
    if (s.used) continue;
    std::vector<std::string> loops, matched;
    bool asked = false;
    for (const auto& [name, trips] : known_) {
      loops.push_back(name);
      if (!Matches(s.pattern, name)) continue;
      asked = true;
      if (derived_.count(name) != 0) matched.push_back(name);
    }
    std::string why;
    if (!matched.empty()) {
      why = fmt::format("the program says how often {} runs; only the name itself overrides that",
                        ListOf(matched));
    } else if (asked) {
      continue;  // An earlier statement says the same of its loops.
    } else {
      why = loops.empty() ? "the program has no loop"
                          : fmt::format("its loops are {}", ListOf(loops));
    }
    Records(&warnings).Add(reasons::kTripCountUnused, s.pattern,
                           {{"count", s.count}, {"why", why}});
  }
  return warnings;
}

}  // namespace tpusim::compiler
