#include "configs/chip_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "configs/chip_schema.h"
#include "configs/compiler_files.h"
#include "configs/embedded_files.h"
#include "configs/instructions.h"
#include "configs/names.h"
#include "configs/slices.h"
#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

using Json = nlohmann::json;

constexpr int kMaxBases = 8;
constexpr std::streamsize kMaxFileBytes = 4 * kMiB;

// A chip that is asked for: of which compiler, and how many files have named it as a base.
struct Asked {
  std::string compiler;
  int depth = 0;
};

absl::StatusOr<ChipFile> LoadChipAt(const std::string& name, const std::string& folder,
                                    const Asked& asked);

// Returns the chip of this name by its other names; "" if it has none.
std::string OtherName(std::string name) {
  static const std::map<std::string, std::string> kNames = {
      {"7", "v7x"},         {"7x", "v7x"},     {"ironwood", "v7x"}, {"tpu7", "v7x"},
      {"tpu7x", "v7x"},     {"tpu8i", "8i"},   {"tpu8t", "8t"},     {"trillium", "v6e"},
      {"v4 lite", "v4i"},   {"v4lite", "v4i"}, {"v5 lite", "v5e"},  {"v5lite", "v5e"},
      {"v5litepod", "v5e"}, {"v5", "v5e"},     {"v6", "v6e"},       {"v6 lite", "v6e"},
      {"v6lite", "v6e"},    {"v7", "v7x"},     {"v8i", "8i"},       {"v8t", "8t"},
  };
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found = kNames.find(name);
  return found == kNames.end() ? "" : found->second;
}

// "unknown chip ...", and what may be meant.
std::string UnknownChip(const std::string& name) {
  const std::vector<std::string> names = EmbeddedNames("chips");
  const std::string other = OtherName(name);
  return fmt::format("unknown chip \"{}\"; the nearest is {} (chips: {}", name,
                     other.empty() ? Nearest(name, names) : other, Join(names, ", "));
}

absl::StatusOr<Json> ParseJson(std::string_view text, const std::string& where) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& error) {  // no JSON, or a number beyond any double
    // Keep "parse error at line 3, column 7: ...", drop the library's own tag.
    std::string_view what = error.what();
    if (const size_t tag = what.find("] "); tag != std::string_view::npos) {
      what.remove_prefix(tag + 2);
    }
    return UserError(fmt::format("{}: {}", where, what));
  }
}

absl::Status WrongType(const std::string& where, std::string_view what, std::string_view wanted) {
  return UserError(fmt::format("{}: {} must be {}", where, what, wanted));
}

absl::StatusOr<std::string> ReadString(const Json& object, const std::string& key,
                                       const std::string& where) {
  if (!object.contains(key)) return std::string();
  if (!object[key].is_string()) return WrongType(where, key, "a string");
  return object[key].get<std::string>();
}

size_t IndexOf(const Parameter& parameter) {
  return static_cast<size_t>(&parameter - ChipParameters().data());
}

// {"value":, "unit":, "source":, "note":}, or a plain value; of the compiler also "bracket" and
// "flag". `source` is that of a row without one.
absl::Status ReadParameter(const Parameter& parameter, const Json& json, const std::string& where,
                           const std::string& source, ChipFile* file) {
  const std::string at = fmt::format("{}: {}", where, parameter.path);
  Provenance provenance = {source, "", "", ""};
  const Json* value = &json;
  if (json.is_object()) {
    for (const auto& [key, unused] : json.items()) {
      const bool known = key == "value" || key == "unit" || key == "source" || key == "note" ||
                         (IsPolicy(parameter) && (key == "bracket" || key == "flag"));
      if (!known) {
        return UserError(
            fmt::format("{}: unknown field \"{}\"; value, unit, source, note", at, key));
      }
    }
    if (!json.contains("value")) return WrongType(at, "value", "given");
    value = &json["value"];
    ASSIGN_OR_RETURN(const std::string unit, ReadString(json, "unit", at));
    if (!unit.empty() && unit != parameter.unit) {
      return UserError(fmt::format("{}: the unit is {}, not {}", at, parameter.unit, unit));
    }
    ASSIGN_OR_RETURN(const std::string stated, ReadString(json, "source", at));
    if (!stated.empty()) provenance.source = stated;
    ASSIGN_OR_RETURN(provenance.note, ReadString(json, "note", at));
    ASSIGN_OR_RETURN(provenance.bracket, ReadString(json, "bracket", at));
    ASSIGN_OR_RETURN(provenance.flag, ReadString(json, "flag", at));
  }
  const std::optional<double> number = NumberOf(parameter, *value);
  if (!number) {
    return WrongType(at, "the value",
                     parameter.words.empty() ? fmt::format("a number ({})", parameter.unit)
                                             : Join(parameter.words, " or "));
  }
  const absl::Status status = SetParameter(parameter, *number, &file->chip);
  if (!status.ok()) return UserError(fmt::format("{}: {}", where, Message(status)));
  file->provenance[IndexOf(parameter)] = provenance;
  return absl::OkStatus();
}

bool IsGroup(const std::string& path) {
  const std::vector<Parameter>& table = ChipParameters();
  return std::any_of(table.begin(), table.end(),
                     [&](const Parameter& p) { return p.path.starts_with(path + "."); });
}

absl::Status ReadParameters(const Json& json, const std::string& path, const std::string& where,
                            ChipFile* file) {
  if (const Parameter* parameter = FindParameter(path)) {
    return ReadParameter(*parameter, json, where, /*source=*/where, file);
  }
  if (!IsGroup(path)) {
    return UserError(fmt::format("{}: {}", where, NoParameterText(path)));
  }
  if (!json.is_object()) return WrongType(where, path, "an object");
  for (const auto& [key, child] : json.items()) {
    RETURN_IF_ERROR(ReadParameters(child, path + "." + key, where, file));
  }
  return absl::OkStatus();
}

// [4, 2] or [4, 2, 1]; missing axes are 1.
absl::StatusOr<std::array<int64_t, 3>> ReadLengths(const Json& json, const std::string& where) {
  std::array<int64_t, 3> lengths = {1, 1, 1};
  if (!json.is_array() || json.size() < 2 || json.size() > 3) {
    return UserError(where + " must list two or three lengths");
  }
  for (size_t i = 0; i < json.size(); ++i) {
    if (!json[i].is_number_integer() || json[i].get<int64_t>() < 1) {
      return UserError(where + " must list whole numbers of at least 1");
    }
    lengths[i] = json[i].get<int64_t>();
  }
  return lengths;
}

absl::Status CheckKeys(const Json& json, const std::vector<std::string>& known,
                       const std::string& where) {
  if (!json.is_object()) return UserError(where + " must be an object");
  for (const auto& [key, unused] : json.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return UserError(fmt::format("{}: unknown field \"{}\"; the nearest is {}", where, key,
                                   Nearest(key, known)));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadFlag(const Json& json, const std::string& key, const std::string& where,
                      bool* flag) {
  if (!json.contains(key)) return absl::OkStatus();
  if (!json[key].is_boolean()) {
    return UserError(fmt::format("{}.{} must be true or false", where, key));
  }
  *flag = json[key].get<bool>();
  return absl::OkStatus();
}

// A field with two possible words.
absl::Status ReadChoice(const Json& json, const std::string& key, const std::string& no,
                        const std::string& yes, const std::string& where, bool* flag) {
  if (!json.contains(key)) return absl::OkStatus();
  if (json[key] != no && json[key] != yes) {
    return UserError(fmt::format("{}.{} must be {} or {}", where, key, no, yes));
  }
  *flag = json[key] == yes;
  return absl::OkStatus();
}

absl::Status ReadSlices(const Json& json, const std::string& where, SliceRules* rules) {
  RETURN_IF_ERROR(
      CheckKeys(json, {"axes", "max", "wrap", "twisted", "slices", "source", "note"}, where));
  if (json.contains("axes")) {
    if (json["axes"] != 2 && json["axes"] != 3) return UserError(where + ".axes must be 2 or 3");
    rules->axes = json["axes"].get<int64_t>();
  }
  if (json.contains("max")) {
    ASSIGN_OR_RETURN(rules->max, ReadLengths(json["max"], where + ".max"));
  }
  if (json.contains("wrap")) {
    if (json["wrap"] == "never") {
      rules->wrap = WrapRule::kNever;
    } else if (json["wrap"] == "full_pod") {
      rules->wrap = WrapRule::kFullPod;
    } else if (json["wrap"] == "axis_length_16") {
      rules->wrap = WrapRule::kAxisLength16;
    } else if (json["wrap"] == "whole_cubes_of_4") {
      rules->wrap = WrapRule::kWholeCubes4;
    } else {
      return UserError(where + ".wrap must be never, full_pod, axis_length_16 or whole_cubes_of_4");
    }
  }
  RETURN_IF_ERROR(ReadFlag(json, "twisted", where, &rules->twisted));
  if (!json.contains("slices")) return absl::OkStatus();
  if (!json["slices"].is_array()) return UserError(where + ".slices must be a list");
  rules->slices.clear();
  for (const Json& slice : json["slices"]) {
    std::array<int64_t, kMaxAxes> shape;
    if (!slice.is_string() || !ParseShape(slice.get<std::string>(), &shape) ||
        ShapeName(shape, rules->axes) != slice.get<std::string>()) {
      return UserError(fmt::format("{}.slices: {} is not of the form AxB with one length per axis",
                                   where, slice.dump()));
    }
    for (int axis = 0; axis < kMaxAxes; ++axis) {
      if (shape[axis] > rules->max[axis]) {
        return UserError(fmt::format("{}.slices: {} is larger than max", where, slice.dump()));
      }
    }
    rules->slices.push_back(slice.get<std::string>());
  }
  return absl::OkStatus();
}

absl::StatusOr<TrayOrder> ReadTray(const Json& json, const std::string& where) {
  TrayOrder tray;
  RETURN_IF_ERROR(CheckKeys(
      json,
      {"shape", "within", "one_axis_only", "last_axis_only", "repeats", "numbering", "since", "order"},
      where));
  if (json.contains("shape")) {
    ASSIGN_OR_RETURN(tray.shape, ReadLengths(json["shape"], where + ".shape"));
  }
  if (json.contains("within")) {
    ASSIGN_OR_RETURN(tray.within, ReadLengths(json["within"], where + ".within"));
  }
  RETURN_IF_ERROR(ReadFlag(json, "one_axis_only", where, &tray.one_axis_only));
  RETURN_IF_ERROR(ReadFlag(json, "last_axis_only", where, &tray.last_axis_only));
  RETURN_IF_ERROR(ReadChoice(json, "numbering", "chips", "listed", where, &tray.listed));
  if (json.contains("since")) {
    ASSIGN_OR_RETURN(const std::string since, ReadString(json, "since", where));
    tray.since = ParseJaxVersion(since);
  }
  if (json.contains("repeats")) {
    if (!json["repeats"].is_number_integer() || json["repeats"].get<int64_t>() < 1) {
      return UserError(where + ".repeats must be a whole number of at least 1");
    }
    tray.repeats = json["repeats"].get<int64_t>();
  }
  if (!json.contains("order") || !json["order"].is_array()) {
    return UserError(where + ".order must be a list");
  }
  std::vector<bool> seen(json["order"].size(), false);
  for (const Json& position : json["order"]) {
    const int64_t at = position.is_number_integer() ? position.get<int64_t>() : -1;
    if (at < 0 || at >= static_cast<int64_t>(seen.size()) || seen[at]) {
      return UserError(where + ".order must hold every position from 0 once");
    }
    seen[at] = true;
    tray.order.push_back(at);
  }
  tray.devices = static_cast<int64_t>(tray.order.size());
  return tray;
}

absl::Status ReadDeviceOrder(const Json& json, const std::string& where, DeviceOrderRules* rules) {
  RETURN_IF_ERROR(CheckKeys(
      json,
      {"enumeration_tile", "splits_physical_axes", "general", "chip_first_since", "trays", "source",
       "note"},
      where));
  if (json.contains("enumeration_tile")) {
    ASSIGN_OR_RETURN(rules->enumeration_tile,
                     ReadLengths(json["enumeration_tile"], where + ".enumeration_tile"));
  }
  RETURN_IF_ERROR(ReadFlag(json, "splits_physical_axes", where, &rules->splits_physical_axes));
  RETURN_IF_ERROR(ReadChoice(json, "general", "torus", "listed", where, &rules->listed));
  if (json.contains("chip_first_since")) {
    ASSIGN_OR_RETURN(const std::string since, ReadString(json, "chip_first_since", where));
    rules->chip_first_since = ParseJaxVersion(since);
  }
  if (!json.contains("trays")) return absl::OkStatus();
  if (!json["trays"].is_array()) return UserError(where + ".trays must be a list");
  rules->trays.clear();
  for (const Json& tray : json["trays"]) {
    ASSIGN_OR_RETURN(TrayOrder read, ReadTray(tray, where + ".trays"));
    rules->trays.push_back(std::move(read));
  }
  return absl::OkStatus();
}

// Reads the values of the TPU compiler for a chip: those that its file gives for this chip by name,
// else for the chip that this one is like ("like" in the file), else for all chips. A chip that the
// file does not list, "" for one, has the values for all chips.
absl::Status ReadCompilerFile(const std::string& chip, const std::string& compiler,
                              ChipFile* file) {
  const Json* found = CompilerFile(compiler);
  if (found == nullptr) {
    return UserError(fmt::format("unknown compiler \"{}\"; the nearest is {} (compilers: {})",
                                 compiler, Nearest(compiler, CompilerNames()),
                                 Join(CompilerNames(), ", ")));
  }
  const Json& json = *found;
  const std::string where = compiler + ".json";
  Policy& policy = file->chip.compiler;
  policy = Policy();
  policy.compiler = compiler;
  std::string borrowed;
  if (json["chips"].contains(chip)) {
    const Json& known = json["chips"][chip];
    ASSIGN_OR_RETURN(policy.like, ReadString(known, "like", where));
    ASSIGN_OR_RETURN(file->like_source, ReadString(known, "source", where));
    if (policy.like != chip) borrowed = file->like_source + "; there: ";
  }
  for (const Parameter& parameter : ChipParameters()) {
    if (!IsPolicy(parameter)) continue;
    const std::string name = parameter.path.substr(kPolicyPrefix.size());
    if (!json["values"].contains(name)) return WrongType(where, name, "given");
    Json row = json["values"][name];
    const Json by_chip = row.value("by_chip", Json::object());
    row.erase("by_chip");
    const bool own = by_chip.contains(chip);
    const bool others = !own && by_chip.contains(policy.like);
    if (own || others) row.update(by_chip[own ? chip : policy.like]);
    if (others) row["source"] = borrowed + row["source"].get<std::string>();
    RETURN_IF_ERROR(ReadParameter(parameter, row, where, where, file));
  }
  file->chip.instructions =
      std::make_shared<const Instructions>(BuiltInInstructions(chip, policy.like));
  return absl::OkStatus();
}

// The section of a user's own chip file: what differs from the base.
absl::Status ReadCompiler(const Json& json, const std::string& file_name, ChipFile* file) {
  const std::string where = file_name + ": compiler";
  std::vector<std::string> names = {"like", "source", "note"};
  for (const Parameter& parameter : ChipParameters()) {
    if (IsPolicy(parameter)) names.push_back(parameter.path.substr(kPolicyPrefix.size()));
  }
  RETURN_IF_ERROR(CheckKeys(json, names, where));
  Policy& policy = file->chip.compiler;
  if (json.contains("like")) {
    ASSIGN_OR_RETURN(const std::string like, ReadString(json, "like", where));
    const std::vector<std::string> chips = EmbeddedNames("chips");
    if (like.empty()) {
      policy.like.clear();
    } else if (std::ranges::find(chips, like) != chips.end()) {
      RETURN_IF_ERROR(ReadCompilerFile(like, std::string(policy.compiler), file));
    } else {
      return UserError(fmt::format("{}.like: {})", where, UnknownChip(like)));
    }
    file->like_source = file_name;
  }
  ASSIGN_OR_RETURN(std::string source, ReadString(json, "source", where));
  if (source.empty()) source = file_name;
  for (const auto& [key, child] : json.items()) {
    const Parameter* parameter = FindParameter(std::string(kPolicyPrefix) + key);
    if (parameter == nullptr) continue;  // one of the four above
    RETURN_IF_ERROR(ReadParameter(*parameter, child, file_name, source, file));
  }
  return absl::OkStatus();
}

absl::StatusOr<ChipFile> ParseChipAt(std::string_view text, const std::string& where,
                                     const std::string& folder, const Asked& asked,
                                     const std::string& built_in = "") {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, where));
  if (!json.is_object()) return UserError(where + ": a chip file holds a JSON object");
  ChipFile file;
  file.provenance.resize(ChipParameters().size());
  ASSIGN_OR_RETURN(const std::string base, ReadString(json, "base", where));
  if (!base.empty()) {
    if (asked.depth >= kMaxBases) {
      return UserError(
          fmt::format("{}: more than {} bases; does a file name itself?", where, kMaxBases));
    }
    ASSIGN_OR_RETURN(file, LoadChipAt(base, folder, {asked.compiler, asked.depth + 1}));
  } else {
    RETURN_IF_ERROR(ReadCompilerFile(built_in, asked.compiler, &file));
  }
  static const std::vector<std::string> kFields = {
      "$schema", "name", "description",  "base",     "chip",
      "ici",     "host", "device_order", "topology", "compiler", "instructions"};
  RETURN_IF_ERROR(CheckKeys(json, kFields, where));
  for (const auto& [key, child] : json.items()) {
    if (key == "chip" || key == "ici" || key == "host") {
      RETURN_IF_ERROR(ReadParameters(child, key, where, &file));
    }
  }
  if (json.contains("topology")) {
    RETURN_IF_ERROR(ReadSlices(json["topology"], where + ": topology", &file.chip.slices));
  }
  if (json.contains("device_order")) {
    RETURN_IF_ERROR(
        ReadDeviceOrder(json["device_order"], where + ": device_order", &file.chip.device_order));
  }
  if (json.contains("compiler")) {
    RETURN_IF_ERROR(ReadCompiler(json["compiler"], where, &file));
  }
  if (json.contains("instructions")) {
    auto own = std::make_shared<Instructions>(*file.chip.instructions);
    RETURN_IF_ERROR(AddInstructions(json["instructions"], where + ": instructions", own.get()));
    file.chip.instructions = std::move(own);
  }
  ASSIGN_OR_RETURN(const std::string name, ReadString(json, "name", where));
  if (!name.empty()) file.chip.name = name;
  ASSIGN_OR_RETURN(const std::string description, ReadString(json, "description", where));
  if (!description.empty()) file.chip.description = description;

  for (size_t i = 0; i < file.provenance.size(); ++i) {
    const Parameter& parameter = ChipParameters()[i];
    if (file.provenance[i].source.empty() && !parameter.fallback.empty()) {
      const Parameter* other = FindParameter(parameter.fallback);
      parameter.set(file.chip,
                    other != nullptr ? other->get(file.chip) : std::stod(parameter.fallback));
      file.provenance[i].source =
          other != nullptr ? "default: as " + other->path : "default: none known";
    }
    if (file.provenance[i].source.empty()) {
      return UserError(fmt::format("{}: {} is missing; give it, or name a \"base\" chip", where,
                                   ChipParameters()[i].path));
    }
  }
  if (file.chip.name.empty()) return UserError(where + ": \"name\" is missing");
  if (file.chip.slices.slices.empty()) return UserError(where + ": topology.slices is missing");
  const absl::Status status = CheckChip(file.chip);
  if (!status.ok()) return UserError(fmt::format("{}: {}", where, Message(status)));
  return file;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return UserError(fmt::format("cannot read {}: no such file", path));
  }
  std::ifstream in(path, std::ios::binary);
  std::string text;
  text.resize(kMaxFileBytes + 1);
  if (!in) return UserError(fmt::format("cannot read {}", path));
  in.read(text.data(), kMaxFileBytes + 1);
  if (in.gcount() > kMaxFileBytes) {
    return UserError(fmt::format("{} is too large for a configuration ({} MiB at most)", path,
                                 kMaxFileBytes / kMiB));
  }
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

absl::StatusOr<ChipFile> LoadChipAt(const std::string& name, const std::string& folder,
                                    const Asked& asked) {
  if (IsJsonPath(name)) {
    const std::string path = (std::filesystem::path(folder) / name).lexically_normal().string();
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    return ParseChipAt(text, path, FolderOf(path), asked);
  }
  for (const EmbeddedFile& chip : EmbeddedFiles("chips")) {
    if (chip.name == name) return ParseChipAt(chip.text, name + ".json", "", asked, name);
  }
  return UserError(UnknownChip(name) + "; or a path ending in .json)");
}

}  // namespace

std::optional<double> NumberOf(const Parameter& parameter, const Json& json) {
  if (json.is_boolean()) return ValueOfWord(parameter, json.get<bool>() ? "true" : "false");
  if (json.is_string()) return ValueOfWord(parameter, json.get<std::string>());
  if (!json.is_number() || !parameter.words.empty()) return std::nullopt;
  return json.get<double>();
}

const Parameter* ParameterOfFlag(std::string_view flag) {
  for (const auto& [name, row] : (*CompilerFile(CompilerName()))["values"].items()) {
    if (row.contains("flag") && row["flag"] == flag) {
      return FindParameter(std::string(kPolicyPrefix) + name);
    }
  }
  return nullptr;
}

bool IsJsonPath(std::string_view name) { return name.ends_with(".json"); }

std::string FolderOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

absl::StatusOr<Json> ReadJsonFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseJson(text, path);
}

absl::StatusOr<ChipFile> LoadChip(const std::string& name, const std::string& folder,
                                  const std::string& compiler) {
  return LoadChipAt(name, folder, {compiler});
}

absl::StatusOr<ChipFile> ParseChip(std::string_view text, const std::string& where,
                                   const std::string& folder) {
  return ParseChipAt(text, where, folder, {CompilerName()});
}

absl::Status CheckChip(const ChipParams& chip) {
  if (chip.tensor_cores % chip.devices != 0) {
    return UserError(fmt::format("chip.devices = {} must divide chip.tensor_cores = {}",
                                 chip.devices, chip.tensor_cores));
  }
  if (chip.vmem.scoped_bytes > chip.vmem.bytes) {
    return UserError(fmt::format("chip.vmem.scoped_bytes = {} exceeds chip.vmem.bytes = {}",
                                 chip.vmem.scoped_bytes.value(), chip.vmem.bytes.value()));
  }
  if (chip.vmem.reserved_bytes > chip.vmem.bytes) {
    return UserError(fmt::format("chip.vmem.reserved_bytes = {} exceeds chip.vmem.bytes = {}",
                                 chip.vmem.reserved_bytes.value(), chip.vmem.bytes.value()));
  }
  if (chip.hbm.reserved_bytes >= chip.hbm.bytes) {
    return UserError(
        fmt::format("chip.hbm.reserved_bytes = {} leaves nothing of chip.hbm.bytes = {}",
                    chip.hbm.reserved_bytes.value(), chip.hbm.bytes.value()));
  }
  if (chip.cmem.bytes > Bytes(0) && chip.cmem.bytes_per_second.value() <= 0) {
    return UserError(fmt::format(
        "chip.cmem.bytes = {} has no chip.cmem.bytes_per_second beside it: give both, or neither",
        chip.cmem.bytes.value()));
  }
  const SparseCoreParams& sparse = chip.sparse_core;
  const bool adds = sparse.count > 0 && sparse.tiles > 0 && sparse.lanes > 0;
  const Bytes offloads =
      sparse.offload_all_gather + sparse.offload_all_reduce + sparse.offload_reduce_scatter;
  if (offloads > Bytes(0) && !adds) {
    return UserError(fmt::format(
        "chip.sparse_core.offload_*_bytes send collectives to SparseCores, but the chip has {} of "
        "{} tiles with {} lanes; set them to 0, or say what the SparseCores are",
        sparse.count, sparse.tiles, sparse.lanes));
  }
  return absl::OkStatus();
}

}  // namespace tpusim::configs
