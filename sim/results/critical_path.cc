#include "sim/results/critical_path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "sim/results/rollup_text.h"

namespace tpusim::results {
namespace {

struct SpentRow {
  std::string_view text, key;
  Binding binding;
};
// By events::Spent.
constexpr std::array<SpentRow, events::kSpentKinds> kRows = {{
    {"MXU", "mxu", Binding::kCompute},
    {"VPU", "vpu", Binding::kCompute},
    {"HBM", "hbm", Binding::kHbm},
    {"ICI", "ici", Binding::kIci},
    {"DCN", "dcn", Binding::kDcn},
    {"PCIe", "host", Binding::kHost},
    {"latency", "latency", Binding::kLatency},
}};

constexpr size_t kShown = 3;

}  // namespace

std::string_view SpentText(events::Spent spent) { return kRows[static_cast<size_t>(spent)].text; }
std::string_view SpentKey(events::Spent spent) { return kRows[static_cast<size_t>(spent)].key; }

PathTimes PathTimesOf(const sim::Timeline& timeline) {
  PathTimes times{};
  for (const events::Causes::Part& part : timeline.critical_path) {
    times[static_cast<size_t>(part.spent)] += part.time;
  }
  return times;
}

std::string_view BindingName(Binding b) {
  switch (b) {
    case Binding::kCompute:
      return "compute";
    case Binding::kHbm:
      return "hbm";
    case Binding::kIci:
      return "ici";
    case Binding::kDcn:
      return "dcn";
    case Binding::kHost:
      return "host";
    case Binding::kLatency:
      break;
  }
  return "launch/latency";
}

Binding BindingOf(const PathTimes& path) {
  std::array<Picoseconds, static_cast<size_t>(Binding::kLatency) + 1> sums{};
  for (size_t i = 0; i < path.size(); ++i) sums[static_cast<size_t>(kRows[i].binding)] += path[i];
  return static_cast<Binding>(std::ranges::max_element(sums) - sums.begin());
}

std::string BindingText(const PathTimes& path) {
  std::vector<size_t> order;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] > Picoseconds(0)) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return path[i]; });
  std::vector<Picoseconds> times;
  for (const size_t i : order) times.push_back(path[i]);
  std::vector<std::string_view> names;
  for (const size_t i : order) names.push_back(kRows[i].text);
  // As many as a line has room for.
  if (times.size() > kShown + 1) {
    times[kShown] = std::accumulate(times.begin() + kShown, times.end(), Picoseconds(0));
    times.resize(kShown + 1);
    names[kShown] = "other";
  }
  const std::vector<std::string> shares = SharesText(times);
  std::vector<std::string> parts;
  for (size_t i = 0; i < times.size(); ++i) {
    parts.push_back(fmt::format("{} {}", names[i], shares[i]));
  }
  if (parts.empty()) return "-";
  return fmt::format("{} (critical path: {})", BindingName(BindingOf(path)),
                     fmt::join(parts, ", "));
}

}  // namespace tpusim::results
