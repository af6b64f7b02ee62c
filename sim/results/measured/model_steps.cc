#include "sim/results/measured/model_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/results/measured/step_categories.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

// Measured utilizations that are closer than this say nothing of an order.
constexpr double kClose = 0.05;

// Parts of the machine with at least so much of the critical path are named.
constexpr double kNamed = 0.03;

std::string UtilizationText(const Outcome& o, Picoseconds step) {
  const double utilization = ModelFlopsUtilization(o, step);
  return utilization > 0 ? fmt::format("{:.1f}%", 100 * utilization) : "";
}

// "28.02 GiB", and how far from what was measured: "28.02 GiB (-2%)".
std::string PeakText(const Outcome& o) {
  const std::string peak = BytesText(o.peak_hbm);
  if (o.measurement.peak_hbm == Bytes(0)) return peak;
  return fmt::format("{} ({:+.0f}%)", peak, 100 * (Ratio(o.peak_hbm, o.measurement.peak_hbm) - 1));
}

// "MXU 72%, ICI 20%"
std::string PathText(const Outcome& o) {
  std::vector<std::pair<Picoseconds, std::string_view>> parts;
  for (size_t i = 0; i < o.critical_path.size(); ++i) {
    if (Ratio(o.critical_path[i], o.simulated) < kNamed) continue;
    parts.emplace_back(o.critical_path[i], SpentText(static_cast<events::Spent>(i)));
  }
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> texts;
  for (const auto& [time, name] : parts) {
    texts.push_back(fmt::format("{} {:.0f}%", name, 100 * Ratio(time, o.simulated)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

double ModelFlopsUtilization(const Outcome& outcome, Picoseconds step) {
  const double peak = static_cast<double>(outcome.peak_flops_per_second.value());
  if (outcome.measurement.model_flops == 0 || peak == 0 || step == Picoseconds(0)) return 0;
  return outcome.measurement.model_flops / ToSeconds(step) / peak;
}

double RankedAlike(const std::vector<Outcome>& outcomes, int64_t* pairs) {
  int64_t alike = 0;
  *pairs = 0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    for (size_t j = i + 1; j < outcomes.size(); ++j) {
      const Outcome &a = outcomes[i], &b = outcomes[j];
      if (a.measurement.chip != b.measurement.chip) continue;
      const double measured_a = ModelFlopsUtilization(a, a.measurement.measured);
      const double measured_b = ModelFlopsUtilization(b, b.measurement.measured);
      if (measured_a == 0 || measured_b == 0) continue;
      if (std::abs(measured_a - measured_b) <= kClose * std::max(measured_a, measured_b)) continue;
      ++*pairs;
      const double simulated_a = ModelFlopsUtilization(a, a.simulated);
      const double simulated_b = ModelFlopsUtilization(b, b.simulated);
      if ((measured_a < measured_b) == (simulated_a < simulated_b)) ++alike;
    }
  }
  return *pairs == 0 ? 1 : static_cast<double>(alike) / static_cast<double>(*pairs);
}

void AddModelSteps(const std::vector<Outcome>& outcomes, size_t width,
                   std::vector<std::string>& lines) {
  std::vector<std::vector<std::string>> table = {{"id", "<chip", "<class", "measured", "simulated",
                                                  "error", "MFU", "simulated", "peak HBM", "<fits",
                                                  "<step of a model", "<critical path"}};
  for (const Outcome& o : outcomes) {
    const Measurement& m = o.measurement;
    if (!IsModelStep(m)) continue;
    table.push_back({m.id, m.chip, m.reproducibility, TimeText(m.measured), TimeText(o.simulated),
                     fmt::format("{:+.1f}%", 100 * o.Error()), UtilizationText(o, m.measured),
                     UtilizationText(o, o.simulated), PeakText(o),
                     o.peak_hbm <= o.usable_hbm ? "yes" : "NO", m.name, PathText(o)});
  }
  if (table.size() == 1) return;
  for (std::string& line : TableLines(table, width)) lines.push_back(std::move(line));
  int64_t pairs = 0;
  const double alike = RankedAlike(outcomes, &pairs);
  if (pairs > 0) {
    lines.push_back(fmt::format(
        "{} of {} pairs on one chip that differ by more than 5% in MFU are in the measured order",
        std::llround(alike * static_cast<double>(pairs)), pairs));
  }
  lines.emplace_back();
}

nlohmann::ordered_json ModelStepJson(const Outcome& o) {
  nlohmann::ordered_json path = nlohmann::ordered_json::object();
  for (size_t i = 0; i < o.critical_path.size(); ++i) {
    path[std::string(SpentKey(static_cast<events::Spent>(i)))] = ToNanoseconds(o.critical_path[i]);
  }
  nlohmann::ordered_json json = {{"peak_hbm_bytes", o.peak_hbm.value()},
                                 {"usable_hbm_bytes", o.usable_hbm.value()},
                                 {"critical_path_ns", path},
                                 {"assumptions", o.measurement.assumptions}};
  if (o.measurement.peak_hbm > Bytes(0)) {
    json["measured_peak_hbm_bytes"] = o.measurement.peak_hbm.value();
  }
  if (!o.measurement.categories.empty()) json["categories"] = StepCategoriesJson(o);
  if (o.measurement.model_flops > 0) {
    json["model_flops"] = o.measurement.model_flops;
    json["measured_mfu"] = ModelFlopsUtilization(o, o.measurement.measured);
    json["simulated_mfu"] = ModelFlopsUtilization(o, o.simulated);
  }
  return json;
}

}  // namespace tpusim::results
