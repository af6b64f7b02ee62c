#include "workloads/sharding/stated/stated_constraints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "configs/number_text.h"
#include "configs/status_macros.h"
#include "workloads/sharding/normalised/named_values.h"
#include "workloads/sharding/normalised/normalise.h"
#include "workloads/sharding/types/axes.h"

namespace tpusim::sharding {
namespace {

using hlo::Computation;
using hlo::Instruction;

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Returns the end of a text in quotes that begins at `first`, as keys of dictionaries stand in
// names: params['up,1']. `first` itself: nothing begins there.
size_t EndOfQuoted(std::string_view text, size_t first) {
  const char c = text[first];
  if ((c != '\'' && c != '"') || first == 0 || text[first - 1] != '[') return first;
  const size_t end = text.find(std::string{c, ']'}, first + 1);
  return end == std::string_view::npos ? first : end;
}

// Parts between commas that stand in no brackets; a comma at the end is allowed.
std::vector<std::string_view> Parts(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    i = EndOfQuoted(text, i);
    const char c = text[i];
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (c != ',' || depth > 0) continue;
    parts.push_back(Trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (const std::string_view last = Trim(text.substr(begin)); !last.empty()) parts.push_back(last);
  return parts;
}

// Returns the text between two brackets; nullopt: the text has other ones.
std::optional<std::string_view> Inside(std::string_view text, std::string_view open, char close) {
  if (!text.starts_with(open) || !text.ends_with(close) || text.size() <= open.size()) {
    return std::nullopt;
  }
  return text.substr(open.size(), text.size() - open.size() - 1);
}

std::optional<std::string> Unquoted(std::string_view text) {
  if (text.size() < 3 || (text.front() != '\'' && text.front() != '"')) return std::nullopt;
  if (text.back() != text.front()) return std::nullopt;
  return std::string(text.substr(1, text.size() - 2));
}

// One entry of a PartitionSpec.
std::optional<std::vector<std::string>> SpecEntry(std::string_view text) {
  if (text == "None") return std::vector<std::string>();
  std::vector<std::string> axes;
  const std::optional<std::string_view> several = Inside(text, "(", ')');
  for (const std::string_view part : several ? Parts(*several) : std::vector{text}) {
    const std::optional<std::string> axis = Unquoted(part);
    if (!axis) return std::nullopt;
    axes.push_back(*axis);
  }
  return axes;
}

// One dimension as tpusim prints it.
std::optional<std::vector<std::string>> PrintedEntry(std::string_view text) {
  const std::optional<std::string_view> inside = Inside(text, "{", '}');
  if (!inside) return std::nullopt;
  std::vector<std::string> axes;
  for (const std::string_view part : Parts(*inside)) {
    if (part.empty()) return std::nullopt;
    axes.emplace_back(part);
  }
  return axes;
}

// A sharding as it is written.
struct Written {
  std::vector<std::vector<std::string>> dims;
  bool is_spec = false;
};

std::optional<Written> ParseWritten(std::string_view text) {
  text = Trim(text);
  Written written;
  std::optional<std::string_view> inside = Inside(text, "[", ']');
  written.is_spec = !inside;
  if (!inside) inside = Inside(text, "PartitionSpec(", ')');
  if (!inside) inside = Inside(text, "P(", ')');
  if (!inside) return std::nullopt;
  for (const std::string_view part : Parts(*inside)) {
    auto dim = written.is_spec ? SpecEntry(part) : PrintedEntry(part);
    if (!dim) return std::nullopt;
    written.dims.push_back(*std::move(dim));
  }
  return written;
}

std::optional<int64_t> Number(std::string_view text) {
  const std::optional<int64_t> value = configs::NumberIn<int64_t>(text);
  return value && *value >= 1 ? value : std::nullopt;
}

// "x", or "x:(2)4": the part of x of size 4 behind one of size 2.
absl::StatusOr<AxisRef> AxisOf(const std::string& text, std::string_view option,
                               const StatedConstraint& stated, const Mesh& mesh) {
  std::vector<std::string> names;
  for (const MeshAxis& axis : mesh.axes) names.push_back(axis.name);
  if (const auto whole = std::ranges::find(names, text); whole != names.end()) {
    return FullAxis(mesh, static_cast<int32_t>(whole - names.begin()));
  }
  const size_t colon = text.rfind(":("), close = text.rfind(')');
  if (colon != std::string::npos && close != std::string::npos && close > colon) {
    const auto axis = std::ranges::find(names, text.substr(0, colon));
    const auto before = Number(std::string_view(text).substr(colon + 2, close - colon - 2));
    const auto size = Number(std::string_view(text).substr(close + 1));
    if (axis != names.end() && before && size) {
      const auto index = static_cast<int32_t>(axis - names.begin());
      if (mesh.axes[index].size % (*before * *size) == 0) return AxisRef{index, *before, *size};
    }
  }
  return UserError(fmt::format("{} {}: the mesh has no axis '{}'; its axes are {}", option,
                               stated.text, text, fmt::join(names, ", ")));
}

void Constrain(Instruction* value, const Sharding& sharding, NormalisedModule& module) {
  // What the program says there itself is said otherwise.
  if (const auto said = module.annotations.find(value);
      said != module.annotations.end() &&
      (said->second.is_result || module.constraints.contains(value))) {
    said->second.leaves.assign(1, sharding);
    said->second.reason = "constraint stated for " + value->name();
    return;
  }
  Computation* computation = value->parent();
  const std::vector<Instruction*> users = value->users();
  const bool is_root = value->IsRoot();
  Instruction* copy = computation->Add(hlo::Opcode::kCopy, value->shape(), {value},
                                       value->name() + ".constraint", value);
  for (Instruction* user : users) {
    for (size_t i = 0; i < user->operands().size(); ++i) {
      if (user->operand(i) == value) user->ReplaceOperand(i, copy);
    }
  }
  if (is_root) computation->set_root(copy);
  Annotation annotation;
  annotation.leaves.emplace_back(sharding);
  annotation.reason = "constraint stated for " + value->name();
  module.annotations[copy] = std::move(annotation);
  module.constraints.insert(copy);
}

}  // namespace

absl::StatusOr<Sharding> ShardingOf(std::string_view option, const StatedConstraint& stated,
                                    const Instruction& value, const Mesh& mesh) {
  const auto rank = static_cast<size_t>(value.shape().rank());
  if (stated.dims.size() > rank || (stated.dims.size() < rank && !stated.is_spec)) {
    return UserError(fmt::format("{} {}: {} dimension{} given for {} {}", option, stated.text,
                                 stated.dims.size(), stated.dims.size() == 1 ? "" : "s",
                                 value.Describe(), value.shape().ToString()));
  }
  Sharding sharding = Replicated(static_cast<int64_t>(rank));
  Axes used;
  for (size_t d = 0; d < stated.dims.size(); ++d) {
    for (const std::string& text : stated.dims[d]) {
      ASSIGN_OR_RETURN(const AxisRef axis, AxisOf(text, option, stated, mesh));
      if (Overlap(used, axis)) {
        return UserError(fmt::format("{} {}: axis '{}' is used twice", option, stated.text, text));
      }
      used.push_back(axis);
      sharding.dims[d].axes.push_back(axis);
    }
  }
  return sharding;
}

std::optional<configs::NameAndValue> ParseValueAndSharding(std::string_view text) {
  return configs::ParseNameAndValue(
      text, [](std::string_view value) { return ParseWritten(value).has_value(); });
}

absl::StatusOr<StatedConstraint> ParseStatedConstraint(std::string_view text) {
  const absl::Status malformed = UserError(
      fmt::format("\"{}\" is not VALUE=SHARDING, such as \"dot_general.3=P('x', None)\" or "
                  "\"dot_general.3,dot_general.9=[{{x}}, {{}}]\"",
                  text));
  const auto parts = ParseValueAndSharding(text);
  if (!parts) return malformed;
  Written written = *ParseWritten(parts->value);
  StatedConstraint stated;
  stated.dims = std::move(written.dims);
  stated.is_spec = written.is_spec;
  stated.text = text;
  for (const std::string_view value : Parts(parts->name)) {
    if (value.empty()) return malformed;
    stated.values.emplace_back(value);
  }
  if (stated.values.empty()) return malformed;
  return stated;
}

absl::Status StateConstraints(const std::vector<StatedConstraint>& constraints,
                              NormalisedModule& module) {
  if (constraints.empty()) return absl::OkStatus();
  // Those of the program, not the copies that constraints add.
  const NamedValues values(module);
  for (const StatedConstraint& stated : constraints) {
    for (const std::string& pattern : stated.values) {
      const std::vector<Instruction*> found = values.Find(pattern);
      if (found.empty()) return values.Missing("--constrain " + stated.text, pattern);
      for (Instruction* value : found) {
        ASSIGN_OR_RETURN(const Sharding sharding,
                         ShardingOf("--constrain", stated, *value, module.mesh.mesh));
        Constrain(value, sharding, module);
      }
    }
  }
  return absl::OkStatus();
}

std::string SpecText(const std::vector<std::vector<std::string>>& dims) {
  std::vector<std::string> entries;
  for (const std::vector<std::string>& axes : dims) {
    const std::string names = fmt::format("'{}'", fmt::join(axes, "', '"));
    entries.push_back(axes.empty()       ? "None"
                      : axes.size() == 1 ? names
                                         : fmt::format("({})", names));
  }
  return fmt::format("P({})", fmt::join(entries, ", "));
}

std::string SpecText(const Sharding& sharding, const Mesh& mesh) {
  std::vector<std::vector<std::string>> dims;
  for (const DimSharding& dim : sharding.dims) {
    std::vector<std::string>& axes = dims.emplace_back();
    for (const AxisRef& axis : dim.axes) {
      if (axis != FullAxis(mesh, axis.axis)) return ToString(sharding, mesh);
      axes.push_back(mesh.axes[axis.axis].name);
    }
  }
  return SpecText(dims);
}

}  // namespace tpusim::sharding
