#include "workloads/collectives/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "configs/names.h"
#include "configs/status_macros.h"
#include "workloads/collectives/compiler_choice.h"
#include "workloads/collectives/sum_kernel.h"

namespace tpusim::collectives {
namespace {

// Whether a family is of the name: "single-phase" names any single-phase:F.
bool IsOf(std::string_view family, std::string_view name) {
  return family == name ||
         (family.starts_with(name) && family.substr(name.size()).starts_with(':'));
}

const Algorithm& FastestOf(const std::vector<Algorithm>& candidates) {
  return *std::ranges::min_element(
      candidates, [](const Algorithm& a, const Algorithm& b) { return a.expected < b.expected; });
}

std::vector<Algorithm> Everything(const configs::Config& config, const CollectiveRequest& request,
                                  const GroupForm& form, const Wanted& wanted) {
  std::vector<Algorithm> all = CandidatesFor(config, request, form, wanted);
  for (std::vector<Algorithm>& more : std::vector{AllReducesFor(config, request, form, wanted),
                                                  GroupRingsFor(config, request, form, wanted)}) {
    all.insert(all.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  }
  return all;
}

absl::StatusOr<Choice> ByName(const configs::Config& config, const CollectiveRequest& request,
                              const GroupForm& form, const std::string& name,
                              const std::string& where) {
  const auto candidates = Everything(config, request, form, [&](std::string_view family) {
    return IsOf(family, name) || IsOf(name, family);
  });
  std::vector<Algorithm> fitting;
  for (const Algorithm& candidate : candidates) {
    if (IsOf(candidate.family, name)) fitting.push_back(candidate);
  }
  if (!fitting.empty()) return Choice{FastestOf(fitting), ""};
  std::set<std::string> applicable;
  for (const Algorithm& c : Everything(config, request, form, Anything)) {
    applicable.insert(c.family);
  }
  return UserError(fmt::format(
      "{}: the algorithm {} does not apply to its groups of {} ({}) on {}; these do: {}", where,
      name, request.groups[0].size(), form.box ? form.box->Extents() : "no box", config.name,
      configs::Join({applicable.begin(), applicable.end()}, ", ")));
}

// Chooses the first family that applies of those that the compiler printed.
Choice ByCompiler(const configs::Config& config, const CollectiveRequest& request,
                  const GroupForm& form) {
  const CompilerChoice printed = ChoiceOfCompiler(QueryOf(config, request, form));
  const std::vector<std::string>& families = printed.families;
  const auto candidates = Everything(config, request, form, [&](std::string_view family) {
    return std::ranges::find(families, family) != families.end();
  });
  for (const std::string& family : families) {
    std::vector<Algorithm> fitting;
    for (const Algorithm& candidate : candidates) {
      if (candidate.family == family) fitting.push_back(candidate);
    }
    if (fitting.empty()) continue;
    Choice choice = {FastestOf(fitting), printed.assumption};
    if (printed.kernel) UseKernel(config, request, *printed.kernel, choice.candidate);
    return choice;
  }
  return {Fastest(config, request, form), printed.assumption};
}

}  // namespace

absl::StatusOr<Choice> Choose(const configs::Config& config, const CollectiveRequest& request,
                              const GroupForm& form, const std::string& algorithm,
                              const std::string& where) {
  if (algorithm == kCompilersAlgorithm) return ByCompiler(config, request, form);
  if (algorithm == kBestAlgorithm) return Choice{Fastest(config, request, form), ""};
  return ByName(config, request, form, algorithm, where);
}

Algorithm Fastest(const configs::Config& config, const CollectiveRequest& request,
                  const GroupForm& form) {
  return FastestOf(CandidatesFor(config, request, form));
}

}  // namespace tpusim::collectives
