#include "sim/results/measured/step_categories.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/results/report/text.h"

namespace tpusim::results {

namespace {

// XProf's category of what is waited for, or of a part of it: `all-gather` if the main stream
// executes it, `all-gather-done` if it waits for it.
bool IsOf(std::string_view row, std::string_view category) {
  constexpr std::string_view kExposed = "exposed ";
  if (!category.starts_with(kExposed)) return row == category;
  category.remove_prefix(kExposed.size());
  if (!row.starts_with(category)) return false;
  row.remove_prefix(category.size());
  return row.empty() || row == "-start" || row == "-done";
}

}  // namespace

std::vector<Picoseconds> SimulatedCategories(const Report& report, const Measurement& measurement) {
  std::vector<Picoseconds> times;
  for (const CategoryTime& category : measurement.categories) {
    Picoseconds time(0);
    for (const RollupRow& row : report.rollups.Of(RollupBy::kXprof)) {
      if (IsOf(row.name, category.name)) time += row.time;
    }
    times.push_back(time);
  }
  return times;
}

void AddStepCategories(const std::vector<Outcome>& outcomes, size_t width,
                       std::vector<std::string>& lines) {
  std::vector<std::vector<std::string>> table = {
      {"id", "<category", "measured", "simulated", "error", "of the step"}};
  for (const Outcome& o : outcomes) {
    const std::vector<CategoryTime>& measured = o.measurement.categories;
    for (size_t i = 0; i < measured.size(); ++i) {
      const double difference = ToSeconds(o.categories[i]) - ToSeconds(measured[i].time);
      table.push_back(
          {o.measurement.id, measured[i].name, TimeText(measured[i].time),
           TimeText(o.categories[i]),
           fmt::format("{:+.1f}%", 100 * difference / ToSeconds(measured[i].time)),
           fmt::format("{:+.1f}%", 100 * difference / ToSeconds(o.measurement.measured))});
    }
  }
  if (table.size() == 1) return;
  for (std::string& line : TableLines(table, width)) lines.push_back(std::move(line));
  lines.emplace_back();
}

nlohmann::ordered_json StepCategoriesJson(const Outcome& outcome) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < outcome.measurement.categories.size(); ++i) {
    const CategoryTime& measured = outcome.measurement.categories[i];
    rows.push_back({{"category", measured.name},
                    {"measured_ns", ToNanoseconds(measured.time)},
                    {"simulated_ns", ToNanoseconds(outcome.categories[i])}});
  }
  return rows;
}

}  // namespace tpusim::results
