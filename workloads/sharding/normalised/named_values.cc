#include "workloads/sharding/normalised/named_values.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "configs/names.h"
#include "configs/status_macros.h"
#include "workloads/sharding/normalised/normalise.h"

namespace tpusim::sharding {
namespace {

using hlo::Instruction;

bool Fits(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// "a/model.py:42" ends with "model.py:42", "jit(f)/decoder/dot" with "decoder/dot".
bool EndFits(const std::string& pattern, const std::string& path) {
  return Fits(pattern, path) || Fits("*/" + pattern, path);
}

}  // namespace

NamedValues::NamedValues(const NormalisedModule& module) : module_(module) {
  for (const hlo::Computation* computation : module.partitioned) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->shape().IsArray()) continue;
      arrays_.push_back(instruction);
      by_name_.emplace(instruction->name(), instruction);
    }
  }
  for (const auto& [value, name] : module.names) names_[value].push_back(name);
}

std::vector<Instruction*> NamedValues::Find(const std::string& pattern) const {
  if (const auto it = by_name_.find(pattern); it != by_name_.end()) return {it->second};
  const auto has_name = [&](const Instruction* array, const auto& fits) {
    const auto names = names_.find(array);
    return names != names_.end() && std::ranges::any_of(names->second, fits);
  };
  std::vector<Instruction*> found;
  const auto all_that = [&](const auto& fits) {
    std::ranges::copy_if(arrays_, std::back_inserter(found), fits);
    return !found.empty();
  };
  const auto is = [&](const std::string& name) { return name == pattern; };
  if (all_that([&](const Instruction* array) { return has_name(array, is); })) return found;
  const auto fits = [&](const std::string& name) { return Fits(pattern, name); };
  if (all_that(
          [&](const Instruction* array) { return fits(array->name()) || has_name(array, fits); })) {
    return found;
  }
  if (pattern.find('/') != std::string::npos &&
      all_that([&](const Instruction* array) { return EndFits(pattern, array->op_name()); })) {
    return found;
  }
  if (pattern.find(':') == std::string::npos) return found;
  all_that([&](const Instruction* array) {
    return module_.constraints.contains(array) && EndFits(pattern, array->SourceLocation());
  });
  return found;
}

absl::Status NamedValues::Missing(const std::string& option, const std::string& pattern) const {
  std::vector<std::string> names;
  for (const Instruction* array : arrays_) names.push_back(array->name());
  for (const auto& [value, name] : module_.names) names.push_back(name);
  const std::string nearest = configs::Nearest(pattern, names);
  return UserError(fmt::format(
      "{}: no array of the program has the name '{}'{}; `tpusim compile --emit sharded` lists them",
      option, pattern, nearest.empty() ? "" : fmt::format(", the nearest is '{}'", nearest)));
}

}  // namespace tpusim::sharding
