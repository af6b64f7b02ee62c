#include "workloads/collectives/choice_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "configs/chip_file.h"
#include "configs/embedded_files.h"
#include "configs/names.h"
#include "configs/slices.h"
#include "configs/status_macros.h"
#include "workloads/collectives/candidates.h"

namespace tpusim::collectives {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, kFacts> kFactNames = {
    "axes",         "shortest_axis",   "longest_axis",   "even",        "devices_per_chip",
    "members",      "every_chip",      "slices",         "slice_chips", "operand_bytes",
    "part_bytes",   "minor_dimension", "part_row_bytes", "offloaded",   "ring",
    "single_phase", "offload_size",    "one_way_ring",   "one_way_axes"};
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

absl::Status NoSuch(const std::string& where, std::string_view what, std::string_view name,
                    const std::vector<std::string>& there_are) {
  return UserError(fmt::format("{}: no {} \"{}\"; there are {}", where, what, name,
                               configs::Join(there_are, ", ")));
}

absl::Status CheckKeys(const Json& json, const std::vector<std::string>& keys,
                       const std::string& where) {
  if (!json.is_object()) return UserError(where + " must be an object");
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(keys, key) == keys.end()) {
      return NoSuch(where, "key", key, keys);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReadNames(const Json& json, const std::string& where) {
  std::vector<std::string> names;
  if (!json.is_array()) return UserError(where + " must be a list of names");
  for (const Json& name : json) {
    if (!name.is_string()) return UserError(where + " must be a list of names");
    names.push_back(name.get<std::string>());
  }
  return names;
}

absl::StatusOr<int64_t> ReadCount(const Json& json, const std::string& where) {
  if (!json.is_number_integer() || json.get<int64_t>() < 0) {
    return UserError(where + " must be a whole number from 0");
  }
  return json.get<int64_t>();
}

// A number, yes or no, or {"least": 2, "most": 8}.
absl::StatusOr<Condition::Bound> ReadBound(Fact fact, const Json& json, const std::string& where) {
  if (json.is_boolean()) return Condition::Bound{fact, json.get<bool>(), json.get<bool>()};
  if (!json.is_object()) {
    ASSIGN_OR_RETURN(const int64_t value, ReadCount(json, where));
    return Condition::Bound{fact, value, value};
  }
  RETURN_IF_ERROR(CheckKeys(json, {"least", "most"}, where));
  Condition::Bound bound{fact, 0, kMost};
  if (json.contains("least")) {
    ASSIGN_OR_RETURN(bound.least, ReadCount(json["least"], where + ".least"));
  }
  if (json.contains("most")) {
    ASSIGN_OR_RETURN(bound.most, ReadCount(json["most"], where + ".most"));
  }
  if (bound.least > bound.most) return UserError(where + ": least is more than most");
  return bound;
}

absl::StatusOr<Condition> ReadCondition(const Json& json, const std::string& where) {
  Condition condition;
  std::vector<std::string> keys = {"kinds", "chips"};
  keys.insert(keys.end(), kFactNames.begin(), kFactNames.end());
  RETURN_IF_ERROR(CheckKeys(json, keys, where));
  for (const auto& [key, value] : json.items()) {
    const std::string at = fmt::format("{}.{}", where, key);
    if (key == "kinds") {
      ASSIGN_OR_RETURN(const std::vector<std::string> names, ReadNames(value, at));
      for (const std::string& name : names) {
        const std::optional<CollectiveKind> kind = KindOf(name);
        if (!kind) return NoSuch(at, "collective", name, KindNames());
        condition.kinds.push_back(*kind);
      }
    } else if (key == "chips") {
      ASSIGN_OR_RETURN(condition.chips, ReadNames(value, at));
    } else {
      const auto* name = std::ranges::find(kFactNames, key);
      ASSIGN_OR_RETURN(const Condition::Bound bound,
                       ReadBound(static_cast<Fact>(name - kFactNames.begin()), value, at));
      condition.bounds.push_back(bound);
    }
  }
  return condition;
}

absl::Status ReadText(const Json& json, const char* key, const std::string& where,
                      std::string* text) {
  if (!json.contains(key)) return absl::OkStatus();
  if (!json[key].is_string()) return UserError(fmt::format("{}.{} must be text", where, key));
  *text = json[key].get<std::string>();
  return absl::OkStatus();
}

absl::StatusOr<Evidence> ReadEvidence(const Json& row, const char* collectives,
                                      const std::string& row_name) {
  Evidence evidence;
  const std::string where = row_name + ".evidence";
  const Json json = row.value("evidence", Json::object());
  RETURN_IF_ERROR(CheckKeys(json, {collectives, "source", "bracket", "flag"}, where));
  const Json counts = json.value(collectives, Json::object());
  const std::string at = fmt::format("{}.{}", where, collectives);
  if (!counts.is_object()) return UserError(at + " must be an object of counts by chip");
  for (const auto& [chip, count] : counts.items()) {
    ASSIGN_OR_RETURN(const int64_t number, ReadCount(count, fmt::format("{}.{}", at, chip)));
    evidence.collectives[chip] = static_cast<int>(number);
  }
  RETURN_IF_ERROR(ReadText(json, "source", where, &evidence.source));
  RETURN_IF_ERROR(ReadText(json, "bracket", where, &evidence.bracket));
  RETURN_IF_ERROR(ReadText(json, "flag", where, &evidence.flag));
  return evidence;
}

absl::StatusOr<std::vector<ConditionRow>> ReadConditions(const Json& rows,
                                                         const std::string& where) {
  std::vector<ConditionRow> conditions;
  if (!rows.is_array()) return UserError(where + " must be a list of rows");
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", where, i);
    RETURN_IF_ERROR(CheckKeys(rows[i], {"when", "evidence"}, at));
    ConditionRow& row = conditions.emplace_back();
    ASSIGN_OR_RETURN(row.when, ReadCondition(rows[i].value("when", Json::object()), at + ".when"));
    ASSIGN_OR_RETURN(row.evidence, ReadEvidence(rows[i], "decides", at));
  }
  return conditions;
}

absl::StatusOr<double> ReadNumber(const Json& json, const char* key, const std::string& where) {
  if (!json.contains(key)) return 0.0;
  if (!json[key].is_number() || json[key].get<double>() < 0) {
    return UserError(fmt::format("{}.{} must be a number from 0", where, key));
  }
  return json[key].get<double>();
}

absl::StatusOr<std::vector<SpanPart>> ReadParts(const Json& json, const char* key,
                                                const std::string& where) {
  const std::string at = fmt::format("{}.{}", where, key);
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ReadNames(json.value(key, Json::array()), at));
  const std::vector<std::string> known = SpanPartNames();
  std::vector<SpanPart> parts;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) return NoSuch(at, "part of a span", name, known);
    parts.push_back(static_cast<SpanPart>(found - known.begin()));
  }
  return parts;
}

using Kernels = std::map<std::string, SumKernel>;

absl::StatusOr<Kernels> ReadKernels(const Json& json, const std::string& where) {
  Kernels kernels;
  if (!json.is_object()) return UserError(where + " must be an object");
  for (const auto& [name, row] : json.items()) {
    const std::string at = fmt::format("{}.{}", where, name);
    RETURN_IF_ERROR(CheckKeys(row,
                              {"vmem_share", "spare_shards", "together", "neighbour_barriers",
                               "slice_barriers", "phases", "reads", "writes", "source"},
                              at));
    SumKernel& kernel = kernels[name];
    kernel.name = name;
    ASSIGN_OR_RETURN(kernel.vmem_share, ReadNumber(row, "vmem_share", at));
    if (kernel.vmem_share == 0) return UserError(at + ".vmem_share must be more than 0");
    ASSIGN_OR_RETURN(kernel.spare_shards,
                     ReadCount(row.value("spare_shards", Json(0)), at + ".spare_shards"));
    ASSIGN_OR_RETURN(kernel.together, ReadCount(row.value("together", Json(1)), at + ".together"));
    kernel.together = std::max<int64_t>(1, kernel.together);
    ASSIGN_OR_RETURN(kernel.neighbour_barriers, ReadNumber(row, "neighbour_barriers", at));
    ASSIGN_OR_RETURN(kernel.slice_barriers, ReadNumber(row, "slice_barriers", at));
    ASSIGN_OR_RETURN(kernel.phases, ReadNumber(row, "phases", at));
    ASSIGN_OR_RETURN(kernel.reads, ReadParts(row, "reads", at));
    ASSIGN_OR_RETURN(kernel.writes, ReadParts(row, "writes", at));
    std::string source;
    RETURN_IF_ERROR(ReadText(row, "source", at, &source));
  }
  return kernels;
}

using Algorithms = std::map<std::string, std::vector<std::string>>;

absl::StatusOr<Algorithms> ReadAlgorithms(const Json& json, const std::string& where) {
  Algorithms algorithms;
  if (!json.is_object()) return UserError(where + " must be an object of lists");
  for (const auto& [name, families] : json.items()) {
    const std::string at = fmt::format("{}.{}", where, name);
    ASSIGN_OR_RETURN(algorithms[name], ReadNames(families, at));
    for (const std::string& family : algorithms[name]) {
      if (!IsFamily(family)) return NoSuch(at, "algorithm", family, Families());
    }
  }
  return algorithms;
}

absl::StatusOr<ChoiceRow> ReadRow(const Json& json, const Algorithms& algorithms,
                                  const Kernels& kernels, const std::string& where) {
  ChoiceRow row;
  RETURN_IF_ERROR(CheckKeys(json, {"when", "choice", "assumed", "evidence"}, where));
  ASSIGN_OR_RETURN(row.when, ReadCondition(json.value("when", Json::object()), where + ".when"));
  ASSIGN_OR_RETURN(row.evidence, ReadEvidence(json, "agree", where));
  RETURN_IF_ERROR(ReadText(json, "assumed", where, &row.assumed));
  const std::string at = where + ".choice";
  const Json choice = json.value("choice", Json::object());
  RETURN_IF_ERROR(CheckKeys(choice,
                            {"as", "emitter", "strategy", "colors", "colors_per_axis", "phases",
                             "phases_per_axis", "asynchronous", "by", "kernel"},
                            at));
  if (choice.contains("as") && choice["as"] != KindName(CollectiveKind::kAllReduce)) {
    return UserError(at + ".as must be all-reduce");
  }
  row.as_all_reduce = choice.contains("as");
  RETURN_IF_ERROR(ReadText(choice, "emitter", at, &row.emitter));
  RETURN_IF_ERROR(ReadText(choice, "strategy", at, &row.strategy));
  for (const auto& [key, number] : {std::pair{"colors", &row.colors},
                                    {"colors_per_axis", &row.colors_per_axis},
                                    {"phases", &row.phases},
                                    {"phases_per_axis", &row.phases_per_axis}}) {
    if (!choice.contains(key)) continue;
    ASSIGN_OR_RETURN(const int64_t count, ReadCount(choice[key], fmt::format("{}.{}", at, key)));
    *number = static_cast<int>(std::min<int64_t>(count, kMaxDimensions * 2));
  }
  if (choice.contains("asynchronous")) {
    if (!choice["asynchronous"].is_boolean()) return UserError(at + ".asynchronous: true or false");
    row.asynchronous = choice["asynchronous"].get<bool>();
  }
  if (choice.contains("by")) {
    const auto by = choice["by"].is_string() ? algorithms.find(choice["by"].get<std::string>())
                                             : algorithms.end();
    if (by == algorithms.end()) {
      std::vector<std::string> names;
      for (const auto& [name, families] : algorithms) names.push_back(name);
      const Json& stated = choice["by"];
      return NoSuch(at + ".by", "list of algorithms",
                    stated.is_string() ? stated.get<std::string>() : stated.dump(), names);
    }
    row.families = by->second;
  }
  std::string kernel;
  RETURN_IF_ERROR(ReadText(choice, "kernel", at, &kernel));
  if (!kernel.empty()) {
    const auto found = kernels.find(kernel);
    if (found == kernels.end()) {
      std::vector<std::string> names;
      for (const auto& [name, each] : kernels) names.push_back(name);
      return NoSuch(at + ".kernel", "kernel", kernel, names);
    }
    row.kernel = found->second;
  }
  return row;
}

}  // namespace

bool Condition::IsAbout(std::string_view chip) const {
  return chips.empty() || std::ranges::find(chips, chip) != chips.end();
}

bool Condition::Holds(CollectiveKind kind, std::string_view chip, const Facts& facts) const {
  const bool of_kind = kinds.empty() || std::ranges::find(kinds, kind) != kinds.end();
  return of_kind && IsAbout(chip) && std::ranges::all_of(bounds, [&](const Bound& bound) {
           const int64_t value = facts[static_cast<size_t>(bound.fact)];
           return bound.least <= value && value <= bound.most;
         });
}

absl::StatusOr<ChoiceTable> ParseChoiceTable(std::string_view json, const std::string& where) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return UserError(where + " is no JSON");
  RETURN_IF_ERROR(CheckKeys(
      root, {"source", "swept", "algorithms", "kernels", "rings", "offloads", "choices"}, where));
  for (const char* key : {"swept", "algorithms", "rings", "offloads", "choices"}) {
    if (!root.contains(key)) return UserError(fmt::format("{}: {} is missing", where, key));
  }
  ChoiceTable table;
  if (!root["swept"].is_object()) return UserError(where + ".swept must be an object of lists");
  for (const auto& [chip, slices] : root["swept"].items()) {
    const std::string at = fmt::format("{}.swept.{}", where, chip);
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ReadNames(slices, at));
    for (const std::string& name : names) {
      std::array<int64_t, 3>& slice = table.swept[chip].emplace_back();  // number: axes of a slice
      if (!configs::ParseShape(name, &slice)) {
        return UserError(fmt::format("{}: \"{}\" is not of the form AxB", at, name));
      }
      std::ranges::sort(slice);
    }
  }
  ASSIGN_OR_RETURN(const Algorithms algorithms,
                   ReadAlgorithms(root["algorithms"], where + ".algorithms"));
  ASSIGN_OR_RETURN(const Kernels kernels,
                   ReadKernels(root.value("kernels", Json::object()), where + ".kernels"));
  ASSIGN_OR_RETURN(table.rings, ReadConditions(root["rings"], where + ".rings"));
  ASSIGN_OR_RETURN(table.offloads, ReadConditions(root["offloads"], where + ".offloads"));
  if (!root["choices"].is_array()) return UserError(where + ".choices must be a list of rows");
  for (size_t i = 0; i < root["choices"].size(); ++i) {
    ASSIGN_OR_RETURN(ChoiceRow row, ReadRow(root["choices"][i], algorithms, kernels,
                                            fmt::format("{}.choices[{}]", where, i)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

const ChoiceTable& CompilerChoices() {
  static const auto* const table = [] {
    // All versions of the compiler that are known choose alike.
    const std::vector<configs::EmbeddedFile>& files = configs::EmbeddedFiles("collectives");
    TPUSIM_CHECK(files.size() == 1, "several tables of choices, and no rule which holds");
    const configs::EmbeddedFile& file = files.front();
    absl::StatusOr<ChoiceTable> parsed =
        ParseChoiceTable(file.text, fmt::format("collectives/{}.json", file.name));
    TPUSIM_CHECK(parsed.ok(), Message(parsed.status()));
    return new ChoiceTable(*std::move(parsed));
  }();
  return *table;
}

std::string TextOf(const Condition& condition) {
  std::vector<std::string> parts;
  for (const CollectiveKind kind : condition.kinds) parts.emplace_back(KindName(kind));
  if (parts.size() > 1) parts = {configs::Join(parts, " or ")};
  for (const auto& [fact, least, most] : condition.bounds) {
    const std::string_view name = kFactNames[static_cast<size_t>(fact)];
    constexpr Fact kYesOrNo[] = {Fact::kEven,        Fact::kEveryChip,  Fact::kMinorDimension,
                                 Fact::kOffloaded,   Fact::kRing,       Fact::kSinglePhase,
                                 Fact::kOffloadSize, Fact::kOneWayRing, Fact::kOneWayAxes};
    const bool yes_or_no = std::ranges::find(kYesOrNo, fact) != std::end(kYesOrNo);
    parts.push_back(yes_or_no       ? fmt::format("{}{}", least > 0 ? "" : "not ", name)
                    : least == most ? fmt::format("{} = {}", name, least)
                    : least == 0    ? fmt::format("{} <= {}", name, most)
                    : most == kMost ? fmt::format("{} >= {}", name, least)
                                    : fmt::format("{} <= {} <= {}", least, name, most));
  }
  return parts.empty() ? "always" : configs::Join(parts, ", ");
}

std::string TextOf(const ChoiceRow& row) {
  if (row.as_all_reduce) return "as an all-reduce";
  std::vector<std::string> parts;
  if (!row.emitter.empty()) parts.push_back(row.emitter);
  if (!row.strategy.empty()) parts.push_back(row.strategy);
  const auto add = [&parts](const char* what, int count, int per_axis) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
    if (per_axis > 0) parts.push_back(fmt::format("{} {} per axis", per_axis, what));
  };
  add("colors", row.colors, row.colors_per_axis);
  add("phases", row.phases, row.phases_per_axis);
  if (row.families.empty()) parts.emplace_back(row.asynchronous ? "start and done" : "synchronous");
  if (!row.assumed.empty()) parts.push_back(row.assumed);
  if (!row.families.empty()) parts.push_back("here: " + configs::Join(row.families, ", "));
  if (row.kernel) parts.push_back("kernel: " + row.kernel->name);
  return configs::Join(parts, ", ");
}

}  // namespace tpusim::collectives
