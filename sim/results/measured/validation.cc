#include "sim/results/measured/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "configs/status_macros.h"
#include "sim/results/measured/model_steps.h"
#include "sim/results/measured/step_categories.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kStepTime[] = "step time";

struct RoleName {
  Role role;
  const char* name;
};
constexpr RoleName kRoles[] = {{Role::kCalibration, "calibration"},
                               {Role::kValidation, "validation"},
                               {Role::kUpperBound, "upper bound"}};

// Whole steps of models. They tell how good the model is as long as no parameter knows them.
constexpr std::string_view kNeverFitted[] = {"training", "inference"};

std::string NameOf(Role role) {
  for (const RoleName& r : kRoles) {
    if (r.role == role) return r.name;
  }
  return "";
}

// Reads the fields of one object and remembers the first that is wrong.
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) problem_ = where_ + " is not an object";
  }

  std::string Text(const char* key, bool required = true) {
    const auto it = object_.is_object() ? object_.find(key) : object_.end();
    if (!object_.is_object() || it == object_.end()) {
      if (required) Complain(key, "is missing");
      return "";
    }
    if (!it->is_string()) {
      Complain(key, "is not a text");
      return "";
    }
    return it->get<std::string>();
  }

  double Positive(const char* key, double below, const char* problem) {
    const auto it = object_.is_object() ? object_.find(key) : object_.end();
    if (!object_.is_object() || it == object_.end() || !it->is_number() ||
        !(it->get<double>() > 0 && it->get<double>() < below)) {
      Complain(key, problem);
      return 1;
    }
    return it->get<double>();
  }

  bool Has(const char* key) const { return object_.is_object() && object_.contains(key); }

  std::vector<std::string> Texts(const char* key) {
    std::vector<std::string> texts;
    if (!Has(key)) return texts;
    const Json& list = object_[key];
    if (!list.is_array() ||
        !std::ranges::all_of(list, [](const Json& t) { return t.is_string(); })) {
      Complain(key, "is not a list of texts");
      return texts;
    }
    for (const Json& text : list) texts.push_back(text.get<std::string>());
    return texts;
  }

  // {"category": milliseconds, ...}
  std::vector<CategoryTime> Categories(const char* key) {
    std::vector<CategoryTime> categories;
    if (!Has(key)) return categories;
    const Json& times = object_[key];
    if (!times.is_object()) Complain(key, "is not an object of milliseconds by category");
    for (const auto& [name, time] : times.items()) {
      if (!time.is_number() || !(time.get<double>() > 0 && time.get<double>() < 1e9)) {
        Complain(key, "has a category that is not a number of milliseconds above 0");
        return categories;
      }
      categories.push_back({name, FromSeconds(time.get<double>() * 1e-3)});
    }
    return categories;
  }

  Role RoleOf(const char* key) {
    const std::string name = Text(key);
    for (const RoleName& r : kRoles) {
      if (name == r.name) return r.role;
    }
    Complain(key, "is none of calibration, validation, upper bound");
    return Role::kValidation;
  }

  absl::Status status() const { return problem_.empty() ? absl::OkStatus() : UserError(problem_); }

 private:
  void Complain(const char* key, const char* what) {
    if (problem_.empty()) problem_ = fmt::format("{}: \"{}\" {}", where_, key, what);
  }

  const Json& object_;
  const std::string where_;
  std::string problem_;
};

// "calibration", "validation A", "validation B", ...
std::string ClassOf(const Measurement& m) {
  if (m.role != Role::kValidation) return NameOf(m.role);
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
    if (m.role == Role::kUpperBound) continue;
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

// By reason: which measurements of which chip wait for it.
void AddPending(const std::vector<Pending>& pending, size_t width,
                std::vector<std::string>& lines) {
  if (pending.empty()) return;
  std::vector<std::vector<std::string>> table = {{"pending", "<chip", "rows", "<because", "<ids"}};
  std::vector<std::pair<std::string, std::string>> seen;  // reason and chip, as they come
  for (const Pending& p : pending) {
    if (std::find(seen.begin(), seen.end(), std::pair(p.why, p.chip)) != seen.end()) continue;
    seen.emplace_back(p.why, p.chip);
    int64_t rows = 0;
    std::vector<std::string> ids;
    for (const Pending& other : pending) {
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

bool IsModelStep(const Measurement& measurement) {
  return std::ranges::find(kNeverFitted, measurement.kind) != std::end(kNeverFitted);
}

double Outcome::Error() const { return Ratio(simulated, measurement.measured) - 1; }

absl::StatusOr<Measurements> ParseMeasurements(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("schema", Json()) != "tpusim.measurements/1") {
    return UserError("no file of measurements: \"schema\" is not \"tpusim.measurements/1\"");
  }
  Measurements result;
  const Json rows = json.value("measurements", Json());
  if (!rows.is_array()) return UserError("\"measurements\" is not a list");
  for (size_t i = 0; i < rows.size(); ++i) {
    Reader reader(rows[i], fmt::format("measurement {}", i));
    Measurement m;
    m.id = reader.Text("id");
    m.name = reader.Text("name");
    m.chip = reader.Text("chip");
    m.kind = reader.Text("kind");
    m.workload = reader.Text("workload");
    m.quantity = reader.Text("quantity");
    m.measured = FromSeconds(
        reader.Positive("seconds", /*below=*/1e6, "is not a number of seconds above 0"));
    if (reader.Has("model_flops")) {
      m.model_flops = reader.Positive("model_flops", /*below=*/1e21, "is not a number of FLOPs");
    }
    m.categories = reader.Categories("categories_ms");
    if (reader.Has("peak_hbm_gib")) {
      const double gib = reader.Positive("peak_hbm_gib", /*below=*/1e6, "is not a number of GiB");
      m.peak_hbm = Bytes(std::llround(gib * (int64_t{1} << 30)));
    }
    m.xla_flags = reader.Text("xla_flags", /*required=*/false);
    m.assumptions = reader.Texts("assumptions");
    m.role = reader.RoleOf("role");
    m.reproducibility = reader.Text("reproducibility");
    m.source = reader.Text("source");
    m.note = reader.Text("note", /*required=*/false);
    RETURN_IF_ERROR(reader.status());
    if (m.role == Role::kCalibration && IsModelStep(m)) {
      return UserError(fmt::format(
          "measurement {}: {} is of kind \"{}\" and may not be \"calibration\": nothing is fitted "
          "to a {} step; give \"validation\"",
          i, m.id, m.kind, m.kind));
    }
    result.rows.push_back(std::move(m));
  }
  const Json pending = json.value("pending", Json::array());
  if (!pending.is_array()) return UserError("\"pending\" is not a list");
  for (size_t i = 0; i < pending.size(); ++i) {
    Reader reader(pending[i], fmt::format("pending measurement {}", i));
    Pending p{reader.Text("id"),       reader.Text("chip"), reader.Text("what"),
              reader.Text("measured"), reader.Text("why"),  reader.Text("source")};
    RETURN_IF_ERROR(reader.status());
    result.pending.push_back(std::move(p));
  }
  return result;
}

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
                             const std::vector<Pending>& pending, size_t width) {
  std::vector<std::string> lines;
  std::vector<std::vector<std::string>> table = {
      {"id", "<chip", "<class", "measured", "simulated", "error", "<what"}};
  for (const Outcome& o : outcomes) {
    const Measurement& m = o.measurement;
    if (IsModelStep(m)) continue;
    std::string error = fmt::format("{:+.1f}%", 100 * o.Error());
    if (m.role == Role::kUpperBound) error = o.simulated > m.measured ? "EXCEEDED" : "below";
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

std::string ToJson(const std::vector<Outcome>& outcomes, const std::vector<Pending>& pending,
                   const Producer& producer) {
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
  for (const Pending& p : pending) {
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
