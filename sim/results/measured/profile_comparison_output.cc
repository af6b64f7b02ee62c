#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/results/measured/profile_comparison.h"
#include "sim/results/report/rollup.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

std::string ErrorText(Picoseconds measured, Picoseconds simulated) {
  if (measured == Picoseconds(0)) return "";
  return fmt::format("{:+.1f}%", 100 * (Ratio(simulated, measured) - 1));
}

std::string ShareText(Picoseconds difference, Picoseconds step) {
  return fmt::format("{:+.1f}%", 100 * Ratio(difference, step));
}

std::string CountsText(const ProfileRow& row) {
  return row.measured_count == row.simulated_count
             ? fmt::format("{:g}", row.measured_count)
             : fmt::format("{:g}, {:g}", row.measured_count, row.simulated_count);
}

std::string HeadText(const ProfileComparison& c, size_t width) {
  const Profile& p = c.profile;
  std::string text = WrappedText(
      fmt::format("{}, mean of {} executions on {} devices: {} ({} to {}), simulated {} ({})",
                  p.module, p.executions, p.devices, TimeText(p.step), TimeText(p.shortest),
                  TimeText(p.longest), TimeText(c.simulated), ErrorText(p.step, c.simulated)),
      2, width);
  if (p.gap > Picoseconds(0)) {
    text += fmt::format("between executions: {}, which no simulated step has\n", TimeText(p.gap));
  }
  if (!p.other_modules.empty()) {
    text +=
        WrappedText(fmt::format("not compared: {}", fmt::join(p.other_modules, ", ")), 2, width);
  }
  return text;
}

std::string CategoriesText(const ProfileComparison& c, size_t width) {
  std::vector<std::vector<std::string>> table = {
      {"category of XProf", "count", "measured", "simulated", "error", "of the step"}};
  for (const ProfileRow& row : c.categories) {
    table.push_back({row.name, CountsText(row), TimeText(row.measured), TimeText(row.simulated),
                     ErrorText(row.measured, row.simulated),
                     ShareText(row.Difference(), c.profile.step)});
  }
  return TableText(table, width);
}

std::string RowsText(const ProfileComparison& c, size_t top, size_t width) {
  const bool operations = c.rows_are == ProfileRowsAre::kOperations;
  const std::string what = operations ? "operation" : "scope";
  const size_t shown = std::min(top, c.rows.size());
  std::vector<std::vector<std::string>> table = {
      {shown < c.rows.size() ? fmt::format("{} ({} of {})", what, shown, c.rows.size()) : what,
       "<category", "count", "measured", "simulated", "difference", "<source"}};
  for (size_t i = 0; i < shown; ++i) {
    const ProfileRow& row = c.rows[i];
    const std::string name = operations ? row.name : row.scope;
    table.push_back({name.empty() ? std::string(kNoScope) : name, row.category, CountsText(row),
                     TimeText(row.measured), TimeText(row.simulated),
                     SignedTimeText(row.Difference()), row.source});
  }
  return TableText(table, width);
}

nlohmann::ordered_json RowJson(const ProfileRow& row) {
  return {{"name", row.name},
          {"category", row.category},
          {"scope", row.scope},
          {"source", row.source},
          {"measured_count", row.measured_count},
          {"simulated_count", row.simulated_count},
          {"measured_ns", ToNanoseconds(row.measured)},
          {"simulated_ns", ToNanoseconds(row.simulated)}};
}

nlohmann::ordered_json RowsJson(const std::vector<ProfileRow>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ProfileRow& row : rows) json.push_back(RowJson(row));
  return json;
}

}  // namespace

std::string ProfileComparisonText(const ProfileComparison& comparison, size_t top, size_t width) {
  std::string text = HeadText(comparison, width) + '\n' + CategoriesText(comparison, width) + '\n' +
                     RowsText(comparison, top, width);
  text += fmt::format("{} of what was measured is in rows that the simulation has, too\n",
                      PercentText(Ratio(comparison.matched, comparison.profile.step)));
  return text;
}

nlohmann::ordered_json ProfileComparisonJson(const ProfileComparison& comparison) {
  const Profile& p = comparison.profile;
  return {
      {"module", p.module},
      {"devices", p.devices},
      {"executions", p.executions},
      {"measured_ns", ToNanoseconds(p.step)},
      {"shortest_ns", ToNanoseconds(p.shortest)},
      {"longest_ns", ToNanoseconds(p.longest)},
      {"gap_ns", ToNanoseconds(p.gap)},
      {"simulated_ns", ToNanoseconds(comparison.simulated)},
      {"matched_ns", ToNanoseconds(comparison.matched)},
      {"other_modules", p.other_modules},
      {"rows_are", comparison.rows_are == ProfileRowsAre::kOperations ? "operations" : "places"},
      {"categories", RowsJson(comparison.categories)},
      {"rows", RowsJson(comparison.rows)}};
}

}  // namespace tpusim::results
