#include "sim/results/measured/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "configs/status_macros.h"
#include "sim/results/measured/model_steps.h"
#include "sim/results/measured/step_categories.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

using Json = nlohmann::ordered_json;

// "calibration", "validation A", "validation B", ...
std::string ClassOf(const Measurement& m) {
  if (m.role != MeasurementRole::kValidation) return NameOf(m.role);
  return "validation " + m.reproducibility;
}

struct Mean {
  double sum = 0, worst = 0;
  int64_t rows = 0;
  std::string worst_id;
};

void AddErrors(const std::vector<Outcome>& outcomes, size_t width,
               std::vector<std::string>& lines) {
  std::map<std::tuple<std::string, std::string, std::string>, Mean> means;
  for (const Outcome& o : outcomes) {
    const Measurement& m = o.measurement;
    if (m.role == MeasurementRole::kUpperBound) continue;
    for (const auto& [chip, kind] : {std::pair(m.chip, m.kind), {std::string("all"), "all"}}) {
      Mean& mean = means[{chip == "all" ? "~" : chip, ClassOf(m), kind}];
      const double error = std::abs(o.Error());
      mean.sum += error;
      ++mean.rows;
      if (mean.rows == 1 || error > mean.worst) {
        mean.worst = error;
        mean.worst_id = m.id;
      }
    }
  }
  std::vector<std::vector<std::string>> table = {
      {"chip", "<class", "<kind", "rows", "mean error", "worst", "<of"}};
  for (const auto& [key, mean] : means) {
    const auto& [chip, row_class, kind] = key;
    table.push_back({chip == "~" ? "all" : chip, row_class, kind, fmt::format("{}", mean.rows),
                     PercentText(mean.sum / static_cast<double>(mean.rows)),
                     PercentText(mean.worst), mean.worst_id});
  }
  lines.emplace_back("Mean absolute errors");
  for (std::string& line : TableLines(table, width)) lines.push_back(std::move(line));
}

// Adds a table of pending measurements by reason and chip.
void AddPending(const std::vector<PendingMeasurement>& pending, size_t width,
                std::vector<std::string>& lines) {
  if (pending.empty()) return;
  std::vector<std::vector<std::string>> table = {{"pending", "<chip", "rows", "<because", "<ids"}};
  std::vector<std::pair<std::string, std::string>> seen;  // reason and chip, as they come
  for (const PendingMeasurement& p : pending) {
    if (std::find(seen.begin(), seen.end(), std::pair(p.why, p.chip)) != seen.end()) continue;
    seen.emplace_back(p.why, p.chip);
    int64_t rows = 0;
    std::vector<std::string> ids;
    for (const PendingMeasurement& other : pending) {
      if (other.why != p.why || other.chip != p.chip) continue;
      ++rows;
      // "V29 524288" is a point of V29.
      const std::string id = other.id.substr(0, other.id.find(' '));
      if (ids.empty() || ids.back() != id) ids.push_back(id);
    }
    table.push_back(
        {"", p.chip, fmt::format("{}", rows), p.why, fmt::format("{}", fmt::join(ids, " "))});
  }
  lines.emplace_back();
  for (std::string& line : TableLines(table, width)) lines.push_back(std::move(line));
}

}  // namespace

absl::StatusOr<Outcome> OutcomeOf(const Report& report, const Measurement& measurement) {
  Outcome outcome;
  outcome.measurement = measurement;
  outcome.simulated = report.step_time;
  outcome.peak_hbm = report.peak.hbm();
  outcome.usable_hbm = report.usable.hbm();
  outcome.peak_flops_per_second = report.peak_flops_per_second;
  outcome.critical_path = report.critical_path;
  outcome.categories = SimulatedCategories(report, measurement);
  if (measurement.quantity == kStepTime) return outcome;
  Picoseconds total(0);
  int64_t count = 0;
  for (const CollectiveReport& c : report.collectives) {
    if (c.kind != measurement.quantity) continue;
    total += c.total;
    count += c.count;
  }
  if (count == 0) {
    return UserError(
        fmt::format("{}: \"quantity\" is \"{}\", but {} has no such collective; give "
                    "\"{}\" or the kind of one that it has",
                    measurement.id, measurement.quantity, measurement.workload, kStepTime));
  }
  outcome.simulated = Picoseconds(total.value() / count);
  return outcome;
}

std::string FormatValidation(const std::vector<Outcome>& outcomes,
                             const std::vector<PendingMeasurement>& pending, size_t width) {
  std::vector<std::string> lines;
  std::vector<std::vector<std::string>> table = {
      {"id", "<chip", "<class", "measured", "simulated", "error", "<what"}};
  for (const Outcome& o : outcomes) {
    const Measurement& m = o.measurement;
    if (IsModelStep(m)) continue;
    std::string error = fmt::format("{:+.1f}%", 100 * o.Error());
    if (m.role == MeasurementRole::kUpperBound) {
      error = o.simulated > m.measured ? "EXCEEDED" : "below";
    }
    table.push_back({m.id, m.chip, ClassOf(m), TimeText(m.measured), TimeText(o.simulated), error,
                     m.quantity == kStepTime ? m.name : m.name + ": " + m.quantity});
  }
  for (std::string& line : TableLines(table, width)) lines.push_back(std::move(line));
  lines.emplace_back();
  AddModelSteps(outcomes, width, lines);
  AddStepCategories(outcomes, width, lines);
  AddErrors(outcomes, width, lines);
  AddPending(pending, width, lines);
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::string ToJson(const std::vector<Outcome>& outcomes,
                   const std::vector<PendingMeasurement>& pending, const Producer& producer) {
  Json rows = Json::array();
  for (const Outcome& o : outcomes) {
    const Measurement& m = o.measurement;
    Json row = {{"id", m.id},
                {"name", m.name},
                {"chip", m.chip},
                {"kind", m.kind},
                {"quantity", m.quantity},
                {"role", NameOf(m.role)},
                {"reproducibility", m.reproducibility},
                {"measured_ns", ToNanoseconds(m.measured)},
                {"simulated_ns", ToNanoseconds(o.simulated)},
                {"error", o.Error()},
                {"source", m.source},
                {"note", m.note}};
    if (IsModelStep(m)) row.update(ModelStepJson(o));
    rows.push_back(std::move(row));
  }
  Json rest = Json::array();
  for (const PendingMeasurement& p : pending) {
    rest.push_back({{"id", p.id},
                    {"chip", p.chip},
                    {"what", p.what},
                    {"measured", p.measured},
                    {"why", p.why},
                    {"source", p.source}});
  }
  Json json = HeadOf("tpusim.validation/1", producer);
  json["rows"] = std::move(rows);
  json["pending"] = std::move(rest);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tpusim::results
