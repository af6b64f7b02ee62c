#include "sim/results/measured/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::results {
namespace {

using Json = nlohmann::ordered_json;

struct RoleName {
  MeasurementRole role;
  const char* name;
};
constexpr RoleName kRoles[] = {{MeasurementRole::kCalibration, "calibration"},
                               {MeasurementRole::kValidation, "validation"},
                               {MeasurementRole::kUpperBound, "upper bound"}};

// Whole steps of models. They tell how good the model is as long as no parameter knows them.
constexpr std::string_view kNeverFitted[] = {"training", "inference"};

// Reads the fields of one object and remembers the first that is wrong.
class FieldReader {
 public:
  FieldReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
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

  MeasurementRole RoleOf(const char* key) {
    const std::string name = Text(key);
    for (const RoleName& r : kRoles) {
      if (name == r.name) return r.role;
    }
    Complain(key, "is not one of calibration, validation, upper bound");
    return MeasurementRole::kValidation;
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

}  // namespace

std::string NameOf(MeasurementRole role) {
  for (const RoleName& r : kRoles) {
    if (r.role == role) return r.name;
  }
  return "";
}

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
    FieldReader reader(rows[i], fmt::format("measurement {}", i));
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
    if (m.role == MeasurementRole::kCalibration && IsModelStep(m)) {
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
    FieldReader reader(pending[i], fmt::format("pending measurement {}", i));
    PendingMeasurement p{reader.Text("id"),       reader.Text("chip"), reader.Text("what"),
              reader.Text("measured"), reader.Text("why"),  reader.Text("source")};
    RETURN_IF_ERROR(reader.status());
    result.pending.push_back(std::move(p));
  }
  return result;
}

}  // namespace tpusim::results
