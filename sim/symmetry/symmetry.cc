#include "sim/symmetry/symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "sim/symmetry/automorphisms.h"
#include "sim/symmetry/hash.h"

namespace tpusim::sim {
namespace {

constexpr Color kClass = 5;
// Routes that are named for a split.
constexpr size_t kNamed = 4;
// Below, looking for automorphisms costs more than they could save.
constexpr int64_t kFewClasses = 4;

}  // namespace

Symmetry::Symmetry(const configs::Config& config, const isa::PodProgram& program,
                   const Impairments& impairments, bool folds, const std::vector<int32_t>& recorded)
    : config_(config),
      program_(program),
      impairments_(impairments),
      folds_(folds),
      recorded_(recorded),
      refinement_(config, program, impairments) {
  if (!folds) {
    classes_ = Unfolded(config, program, impairments);
    steps_.push_back({"folding is off", classes_.devices.classes()});
    return;
  }
  for (size_t p = 0; p < refinement_.used().size(); ++p) {
    for (const int32_t route : refinement_.used()[p]) all_.emplace_back(p, route);
  }
  colors_ = refinement_.First();
  steps_.push_back({fmt::format("{} distinct programs{}", program_.programs.size(),
                                impairments_.chips.empty() ? "" : ", slow chips"),
                    PartitionOf(colors_.devices).classes()});
  Refine();
  steps_.push_back({"partners and hops of routes", classes_.devices.classes()});
}

void Symmetry::Refine() {
  colors_ = refinement_.Refined(std::move(colors_), sets_);
  classes_ = PartitionsOf(colors_);
  AddLinks(config_, program_, impairments_, {}, classes_);
}

void Symmetry::TryOrbits() {
  if (!folds_ || classes_.devices.classes() <= kFewClasses) return;
  if (!orbits_tried_) orbits_ = OrbitsOf(config_, program_, impairments_);
  orbits_tried_ = true;
  if (!orbits_ || orbits_->devices.classes() >= classes_.devices.classes()) return;
  for (const int32_t device : recorded_) {
    if (orbits_->ViewOf(device) != 0) return;
  }
  classes_ = *orbits_;
  are_orbits_ = true;
  steps_.push_back({"images of each other in the slice", classes_.devices.classes()});
}

bool Symmetry::Allows(const RouteSet& set) const {
  if (!folds_ || are_orbits_) return true;
  // The loads that the devices of a class see under this set alone. Classes by number: two
  // of them have no color in common.
  std::vector<Color> own(classes_.devices.class_of.size()), seen;
  for (size_t d = 0; d < own.size(); ++d) {
    own[d] = Hash(kClass, static_cast<Color>(classes_.devices.class_of[d]));
  }
  seen = own;
  refinement_.AddSet(set, own, seen);
  for (size_t d = 0; d < own.size(); ++d) {
    if (seen[d] != seen[classes_.devices.Representative(static_cast<int64_t>(d))]) return false;
  }
  return true;
}

void Symmetry::Split(const RouteSet& set) {
  sets_.push_back(set);
  const int64_t before = classes_.devices.classes();
  Refine();
  TPUSIM_CHECK(classes_.devices.classes() > before && Allows(set),
               "a refinement by routes in flight together has split nothing");
  steps_.push_back({NamesOf(set) + " in flight together", classes_.devices.classes()});
}

std::string Symmetry::NamesOf(const RouteSet& set) const {
  std::vector<std::string> names;
  for (const auto& [program, route] : set) {
    const std::string& name = program_.routes[route].name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  const size_t named = std::min(kNamed, names.size());
  std::string text;
  for (size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() == named ? text : fmt::format("{} and {} more", text, names.size() - named);
}

}  // namespace tpusim::sim
