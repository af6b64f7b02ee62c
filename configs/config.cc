#include "configs/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "configs/chip_file.h"
#include "configs/chip_schema.h"
#include "configs/cloud_names.h"
#include "configs/embedded_files.h"
#include "configs/instructions.h"
#include "configs/name_value.h"
#include "configs/names.h"
#include "configs/quantity_text.h"
#include "configs/slices.h"
#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

// More than any pod: keeps chip numbers within bounds.
constexpr int64_t kMostSlices = 1024;

// A --set before it is applied.
struct Override {
  std::string path;
  double value = 0;
  bool factor = false;  // of what it is now
  std::string where;    // "--set", or the file that holds it
};

// The contents of --config, whichever form it took.
struct Request {
  std::string chip = {};
  std::string folder = {};  // relative chip paths start here
  std::string slice = {};
  int64_t slices = 1;
  std::vector<Override> overrides = {};
};

absl::StatusOr<Request> FromFile(const std::string& path) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonFile(path));
  if (!json.is_object() || !json.contains("chip") || !json["chip"].is_string() ||
      !json.contains("slice") || !json["slice"].is_string()) {
    return UserError(
        fmt::format("{}: a configuration is {{\"chip\": NAME or PATH, \"slice\": \"4x2\", "
                    "\"slices\": 1, \"set\": "
                    "{{...}}}}{}",
                    path,
                    json.is_object() && (json.contains("base") || json.contains("ici"))
                        ? "; this is a chip file: name it as the \"chip\" of a configuration"
                        : ""));
  }
  Request request;
  request.chip = json["chip"].get<std::string>();
  request.folder = FolderOf(path);
  request.slice = json["slice"].get<std::string>();
  for (const auto& [key, value] : json.items()) {
    if (key != "chip" && key != "slice" && key != "slices" && key != "set") {
      return UserError(fmt::format("{}: unknown field \"{}\"; the nearest is {}", path, key,
                                   Nearest(key, {"chip", "slice", "slices", "set"})));
    }
  }
  if (json.contains("slices")) {
    const nlohmann::json& slices = json["slices"];
    if (!slices.is_number_integer() || slices.get<int64_t>() < 1 ||
        slices.get<int64_t>() > kMostSlices) {
      return UserError(
          fmt::format("{}: slices must be a whole number from 1 to {}", path, kMostSlices));
    }
    request.slices = slices.get<int64_t>();
  }
  if (!json.contains("set")) return request;
  if (!json["set"].is_object()) return UserError(path + ": set must be an object");
  for (const auto& [key, value] : json["set"].items()) {
    const Parameter* parameter = FindParameter(key);  // an unknown name is an error later
    const std::optional<double> number = NumberOf(parameter ? *parameter : Parameter(), value);
    if (!number && parameter != nullptr && !parameter->words.empty()) {
      return UserError(
          fmt::format("{}: set {} must be {}", path, key, Join(parameter->words, " or ")));
    }
    if (!number) return UserError(fmt::format("{}: set {} must be a number", path, key));
    request.overrides.push_back({key, *number, /*factor=*/false, path});
  }
  return request;
}

std::string Examples() {
  std::vector<std::string> examples;
  for (const std::string& chip : ChipNames()) {
    const std::vector<std::string> slices = SliceNames(chip);
    if (slices.size() > 1)
      examples.push_back(chip + "-" + slices[std::min<size_t>(4, slices.size() - 1)]);
  }
  return Join(examples, ", ");
}

absl::StatusOr<Request> FromText(const std::string& text);

// "2x(v5e-16x16)": how many slices, and what is in the brackets.
absl::StatusOr<Request> FromSlices(const std::string& text) {
  const size_t open = text.find('(');
  int64_t slices = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + open, slices);
  const bool count = error == std::errc() && end + 1 == text.data() + open && *end == 'x' &&
                     text.find('(', open + 1) == std::string::npos;
  if (!count || text.back() != ')' || slices < 1 || slices > kMostSlices) {
    return UserError(fmt::format(
        "--config {}: several slices are written as 2x(v5e-16x16), with 1 to {} of them", text,
        kMostSlices));
  }
  ASSIGN_OR_RETURN(Request request, FromText(text.substr(open + 1, text.size() - open - 2)));
  request.slices = slices;
  return request;
}

absl::StatusOr<Request> FromText(const std::string& text) {
  if (text.find('(') != std::string::npos) return FromSlices(text);
  const std::string name = Respelled(text);
  const size_t dash = name.find('-');
  if (dash == std::string::npos) {
    const std::vector<std::string> slices = SliceNames(text);
    if (slices.empty()) {
      return UserError(fmt::format("--config {}: write CHIP-SLICE, such as {}, or a JSON file",
                                   text.empty() ? "\"\"" : text, Examples()));
    }
    SliceRules rules;
    rules.slices = slices;
    return UserError(fmt::format("--config {}: no slice given; write {}-SLICE with one of {}", text,
                                 text, SliceList(rules)));
  }
  if (const std::optional<CloudName> cloud = ParseCloudName(text)) {
    const std::vector<std::string> slices = SliceNames(cloud->chip);
    const std::string slice = SliceOfChips(slices, cloud->chips);
    if (!slice.empty()) return Request{.chip = cloud->chip, .slice = slice};
    SliceRules rules;
    rules.slices = slices;
    const std::string why =
        cloud->chips > 0 ? fmt::format("{} has no slice of {} chips", cloud->chip, cloud->chips)
                         : "this name counts TensorCores, two per chip";
    return UserError(fmt::format("--config {}: {}; write {}-SLICE with one of {}", text, why,
                                 cloud->chip, SliceList(rules)));
  }
  return Request{.chip = name.substr(0, dash), .slice = name.substr(dash + 1)};
}

absl::StatusOr<Override> ParseOverride(const std::string& text) {
  const auto parts = ParseNameAndValue(text);
  if (!parts) return UserError(fmt::format("--set {}: write NAME=VALUE", text));
  const std::string_view value = parts->value;
  Override parsed = {std::string(parts->name), 0, /*factor=*/false, "--set"};
  // An unknown name is an error later; a number alone has any unit.
  const Parameter* parameter = FindParameter(parsed.path);
  if (parameter != nullptr && !parameter->words.empty()) {
    const std::optional<double> word = ValueOfWord(*parameter, value);
    if (!word) {
      return UserError(
          fmt::format("--set {}: \"{}\" is not {}", text, value, Join(parameter->words, " or ")));
    }
    parsed.value = *word;
    return parsed;
  }
  const auto quantity = ParseQuantity(value, parameter == nullptr ? "" : parameter->unit);
  if (!quantity) {
    return UserError(fmt::format("--set {}: \"{}\" is not a number{}", text, value,
                                 parameter ? fmt::format(" ({})", parameter->unit) : ""));
  }
  parsed.value = quantity->value;
  parsed.factor = quantity->factor;
  return parsed;
}

absl::Status Apply(const Override& change, Config* config) {
  const Parameter* parameter = FindParameter(change.path);
  if (parameter == nullptr) {
    return UserError(fmt::format("{}: {}", change.where, NoParameterText(change.path)));
  }
  const double before = parameter->get(config->chip);
  const absl::Status status =
      SetParameter(*parameter, change.factor ? before * change.value : change.value, &config->chip);
  if (!status.ok()) return UserError(fmt::format("{}: {}", change.where, Message(status)));
  const double after = parameter->get(config->chip);
  for (const AppliedOverride& earlier : config->overrides) {
    if (earlier.path == change.path) {
      config->warnings.push_back(fmt::format("{} is set more than once; the last value, {}, holds",
                                             change.path, FormatValue(*parameter, after)));
    }
  }
  if (before == after) {
    config->warnings.push_back(fmt::format("setting {} to {} changes nothing: it was so already",
                                           change.path, FormatValue(*parameter, after)));
  }
  config->overrides.push_back({change.path, before, after});
  return absl::OkStatus();
}

// The published peak is a parameter of its own: MFU is against it. After a
// change of clock or array it may no longer be what the arrays can do.
void WarnAboutPeak(Config* config) {
  const double made = config->chip.FastestPeak().value() * static_cast<double>(config->chip.devices);
  const double published = config->chip.peak_bf16.value();
  if (std::fabs(made / published - 1) <= 0.02) return;
  config->warnings.push_back(fmt::format(
      "the arrays as configured reach {:.4g} FLOP/s, the published peak that MFU is against is "
      "{:.4g}; set chip.peak_bf16_flops_per_second too",
      made, published));
}

}  // namespace

absl::StatusOr<Config> LoadConfig(const std::string& text,
                                  const std::vector<std::string>& overrides,
                                  const std::string& compiler) {
  absl::StatusOr<Request> request = IsJsonPath(text) ? FromFile(text) : FromText(text);
  if (!request.ok()) return request.status();
  for (const std::string& change : overrides) {
    ASSIGN_OR_RETURN(Override parsed, ParseOverride(change));
    request->overrides.push_back(std::move(parsed));
  }
  ASSIGN_OR_RETURN(ChipFile file, LoadChip(request->chip, request->folder,
                                           compiler.empty() ? CompilerName() : compiler));
  Config config;
  config.chip = std::move(file.chip);
  for (const Override& change : request->overrides) RETURN_IF_ERROR(Apply(change, &config));
  if (!config.overrides.empty()) {
    RETURN_IF_ERROR(CheckChip(config.chip));
    WarnAboutPeak(&config);
  }
  ASSIGN_OR_RETURN(config.topology, MakeSlices(config.chip, request->slice, request->slices));
  config.name = config.chip.name + "-" +
                ShapeName(config.topology.shape(), config.chip.slices.axes) +
                (config.topology.twisted() ? "_twisted" : "");
  if (request->slices > 1) config.name = fmt::format("{}x({})", request->slices, config.name);
  return config;
}

std::vector<std::string> WithoutSpeeds(const std::vector<std::string>& overrides,
                                       const Config& config) {
  static constexpr std::string_view kByteRate = "bytes_per_second";
  static constexpr std::string_view kSpeedUnits[] = {kByteRate, "flops_per_second", "hertz",
                                                     "ns",      "per_cycle",        "ratio"};
  TPUSIM_CHECK(config.overrides.size() >= overrides.size(), "a config without its overrides");
  const size_t first = config.overrides.size() - overrides.size();  // from its file
  std::vector<std::string> others;
  for (size_t i = 0; i < overrides.size(); ++i) {
    const AppliedOverride& applied = config.overrides[first + i];
    const Parameter* parameter = FindParameter(applied.path);
    TPUSIM_CHECK(parameter != nullptr, applied.path);
    const bool speed = !IsPolicy(*parameter) &&
                       std::ranges::find(kSpeedUnits, parameter->unit) != std::end(kSpeedUnits);
    const bool adds_part = parameter->unit == kByteRate && applied.before == 0;
    if (!speed || adds_part) others.push_back(overrides[i]);
  }
  return others;
}

std::vector<std::string> ChipNames() { return EmbeddedNames("chips"); }

std::vector<std::string> SliceNames(const std::string& chip) {
  const absl::StatusOr<ChipFile> file = LoadChip(chip, "");
  if (!file.ok()) return {};
  return file->chip.slices.slices;
}

namespace {

absl::StatusOr<std::vector<ParameterInfo>> Describe(const std::string& chip, bool compiler) {
  ASSIGN_OR_RETURN(const ChipFile file, LoadChip(chip, ""));
  std::vector<ParameterInfo> result;
  const std::vector<Parameter>& table = ChipParameters();
  for (size_t i = 0; i < table.size(); ++i) {
    if (IsPolicy(table[i]) != compiler) continue;
    const Provenance& from = file.provenance[i];
    result.push_back({table[i].path, FormatValue(table[i], table[i].get(file.chip)), table[i].unit,
                      from.source, from.note, from.bracket, from.flag});
  }
  if (!compiler) return result;
  for (const InstructionRow& row : file.chip.instructions->rows()) {
    result.push_back({fmt::format("instructions.{}.{}", row.operation, row.type),
                      ToString(row.cost), "per_register", row.source, "", "", ""});
  }
  return result;
}

}  // namespace

absl::StatusOr<std::vector<ParameterInfo>> DescribeChip(const std::string& chip) {
  return Describe(chip, /*compiler=*/false);
}

absl::StatusOr<std::vector<ParameterInfo>> DescribeCompiler(const std::string& chip) {
  return Describe(chip, /*compiler=*/true);
}

}  // namespace tpusim::configs
