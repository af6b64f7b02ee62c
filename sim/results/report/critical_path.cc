#include "sim/results/report/critical_path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

struct SpentRow {
  std::string_view text, key;
  Binding binding;
};
// Rows in the order of events::Spent.
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
  for (const events::Causes::PathPart& part : timeline.critical_path) {
    times[static_cast<size_t>(part.spent)] += part.time;
  }
  return times;
}

std::string_view BindingName(Binding b) {
  static constexpr std::string_view kNames[] = {"compute", "hbm",  "ici",
                                                "dcn",     "host", "launch/latency"};
  return kNames[static_cast<size_t>(b)];
}

Binding BindingOf(const PathTimes& path) {
  std::array<Picoseconds, static_cast<size_t>(Binding::kLatency) + 1> sums{};
  for (size_t i = 0; i < path.size(); ++i) sums[static_cast<size_t>(kRows[i].binding)] += path[i];
  return static_cast<Binding>(std::ranges::max_element(sums) - sums.begin());
}

std::string BindingText(const PathTimes& path) {
  struct Share {
    std::string name;
    Binding binding;
    Picoseconds time;
  };
  std::vector<Share> parts;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] > Picoseconds(0)) {
      parts.push_back({std::string(kRows[i].text), kRows[i].binding, path[i]});
    }
  }
  if (parts.empty()) return "-";
  const auto sort = [&parts] {
    std::ranges::stable_sort(parts, std::greater<>(), [](const Share& p) { return p.time; });
  };
  sort();
  // What is named has the largest share that is shown: where only both units of a core together
  // have it, they are told together.
  const Binding named = BindingOf(path);
  if (parts[0].binding != named) {
    const auto first = std::ranges::find(parts, named, &Share::binding);
    for (auto other = std::next(first); other != parts.end();) {
      if (other->binding != named) {
        ++other;
        continue;
      }
      first->name += " + " + other->name;
      first->time += other->time;
      other = parts.erase(other);
    }
    sort();
  }
  // As many as a line has room for; the others together have less than the first.
  size_t shown = std::min(kShown, parts.size());
  const auto rest = [&] {
    return std::accumulate(parts.begin() + shown, parts.end(), Picoseconds(0),
                           [](Picoseconds sum, const Share& p) { return sum + p.time; });
  };
  while (shown < parts.size() && rest() >= parts[0].time) ++shown;
  if (shown + 1 < parts.size()) {
    const Share others = {"other", Binding::kLatency, rest()};
    parts.erase(parts.begin() + shown, parts.end());
    parts.push_back(others);
  }
  std::vector<Picoseconds> times;
  for (const Share& part : parts) times.push_back(part.time);
  const std::vector<std::string> shares = SharesText(times);
  std::vector<std::string> texts;
  for (size_t i = 0; i < parts.size(); ++i) {
    texts.push_back(fmt::format("{} {}", parts[i].name, shares[i]));
  }
  return fmt::format("{} (critical path: {})", BindingName(named), fmt::join(texts, ", "));
}

}  // namespace tpusim::results
