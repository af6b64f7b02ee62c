#include "sim/results/report/overlap.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace tpusim::results {
namespace {

// More operations than this are in the trace.
constexpr size_t kCoversShown = 8;

// In the order of isa::WaitReason.
constexpr std::string_view kReasonNames[] = {"synchronous", "dependency", "resource", "memory",
                                             "schedule"};

}  // namespace

std::vector<std::vector<OverlapReport>> CoversOf(const isa::ProgramInfo& info,
                                                 const sim::Timeline& timeline) {
  // Operations of one name are one row of the report.
  std::vector<std::map<std::string, Picoseconds>> by_name(timeline.ops.size());
  for (const sim::Cover& cover : timeline.covers) {
    by_name[cover.collective][cover.by < 0 ? "(scalars)" : info.ops[cover.by].name] += cover.time;
  }
  std::vector<std::vector<OverlapReport>> covers(timeline.ops.size());
  for (size_t op = 0; op < covers.size(); ++op) {
    for (const auto& [name, time] : by_name[op]) covers[op].push_back({name, time, ""});
    std::ranges::stable_sort(covers[op], std::greater<>(), &OverlapReport::time);
    if (covers[op].size() > kCoversShown) covers[op].resize(kCoversShown);
  }
  return covers;
}

std::vector<OverlapReport> ReasonsOf(const isa::CollectiveInfo& collective,
                                     const sim::OpTotals& totals) {
  std::vector<OverlapReport> reasons = {
      {std::string(kReasonNames[static_cast<size_t>(collective.reason)]), totals.waited,
       collective.reason_text},
      {"transfer", totals.behind, "the TensorCore is blocked on a different transfer"},
      {"operation", totals.exposed - totals.waited - totals.behind,
       "the overlapping kernel is itself waiting for HBM, or starting"}};
  std::erase_if(reasons, [](const OverlapReport& r) { return r.time == Picoseconds(0); });
  std::ranges::stable_sort(reasons, std::greater<>(), &OverlapReport::time);
  return reasons;
}

}  // namespace tpusim::results
