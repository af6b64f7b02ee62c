#include "workloads/search/stated_dims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "configs/names.h"
#include "configs/status_macros.h"
#include "workloads/sharding/stated/stated_constraints.h"
#include "workloads/sharding/stated/stated_shardings.h"

namespace tpusim::search {
namespace {

// A bare ? between the entries of a PartitionSpec is quoted, as if it were an axis.
constexpr std::string_view kOpen = "?";

std::string WithQuotedOpen(std::string_view text) {
  std::string quoted;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool bare = text[i] == '?' && (i == 0 || text[i - 1] != '\'') && text.rfind('(', i) < i;
    quoted += bare ? "'?'" : std::string(1, text[i]);
  }
  return quoted;
}

bool Names(const std::string& pattern, const std::string& argument) {
  return sharding::NameFits(pattern, argument) || sharding::NameFits(pattern, PathOf(argument));
}

}  // namespace

std::string PathOf(std::string_view name) {
  std::string path;
  for (const char c : name) {
    if (c == '[' || c == '.') {
      if (!path.empty() && path.back() != '/') path += '/';
    } else if (c != ']' && c != '\'' && c != '"') {
      path += c;
    }
  }
  return path;
}

absl::StatusOr<StatedDims> ParseStatedDims(std::string_view text) {
  const absl::StatusOr<sharding::StatedConstraint> stated =
      sharding::ParseStatedConstraint(WithQuotedOpen(text));
  if (!stated.ok() || stated->values.size() != 1 || !stated->is_spec) {
    return UserError(
        fmt::format("\"{}\" is not ARGUMENT=SPEC, such as \"params/*/up=P(?, 'model')\", with ? "
                    "where a dimension is left open",
                    text));
  }
  StatedDims dims{stated->values[0], {}, std::string(text)};
  for (const std::vector<std::string>& entry : stated->dims) {
    if (entry.size() == 1 && entry[0] == kOpen) {
      dims.dims.emplace_back();
    } else {
      dims.dims.emplace_back(entry);
    }
  }
  return dims;
}

absl::StatusOr<std::vector<StatedDim>> DimsOf(std::string_view option,
                                              const std::vector<StatedDims>& stated,
                                              const sharding::Decisions& program) {
  std::vector<StatedDim> all;
  for (const StatedDims& one : stated) {
    bool any = false;
    for (const sharding::DecidedArgument& argument : program.arguments) {
      if (!Names(one.argument, argument.name)) continue;
      any = true;
      if (one.dims.size() > argument.decisions.size()) {
        return UserError(fmt::format("{} {}: {} dimensions given for {} {}", option, one.text,
                                     one.dims.size(), argument.name, argument.shape.ToString()));
      }
      std::set<std::string> used;
      for (size_t d = 0; d < argument.decisions.size(); ++d) {
        // What a fixed spec leaves out is whole; a forbidden one says nothing of it.
        if (d >= one.dims.size() && option != "--fix") continue;
        std::vector<std::string> axes;
        if (d < one.dims.size()) {
          if (!one.dims[d]) continue;
          axes = *one.dims[d];
        }
        for (const std::string& axis : axes) {
          if (used.insert(axis).second) continue;
          return UserError(fmt::format("{} {}: axis '{}' is used twice", option, one.text, axis));
        }
        if (argument.decisions[d] < 0) {
          if (axes.empty()) continue;
          return UserError(fmt::format("{} {}: dimension {} of {} {} cannot be split", option,
                                       one.text, d, argument.name, argument.shape.ToString()));
        }
        all.push_back({argument.decisions[d], std::move(axes), one.text});
      }
    }
    if (any) continue;
    std::vector<std::string> names;
    for (const sharding::DecidedArgument& argument : program.arguments) {
      names.push_back(argument.name);
    }
    const std::string nearest = configs::Nearest(one.argument, names);
    return UserError(
        fmt::format("{} {}: the program has no argument '{}'{}", option, one.text, one.argument,
                    nearest.empty() ? "" : fmt::format(", the nearest is '{}'", nearest)));
  }
  return all;
}

std::string NothingLeft(const std::vector<StatedDims>& fixed,
                        const std::vector<StatedDims>& forbidden,
                        const std::vector<std::vector<sharding::MeshAxis>>& meshes) {
  std::vector<std::string> said;
  for (const StatedDims& one : fixed) said.push_back("--fix " + one.text);
  for (const StatedDims& one : forbidden) said.push_back("--forbid " + one.text);
  return fmt::format(
      "no sharding is left on {} mesh{} with {}: the axes must divide what they split, and "
      "dimensions that are decided together (--explain lists them) are split alike",
      meshes.size(), meshes.size() == 1 ? "" : "es", fmt::join(said, " and "));
}

}  // namespace tpusim::search
