#include "workloads/search/statements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tpusim::search {
namespace {

using Dims = std::vector<std::vector<std::string>>;

std::vector<std::string> NamesOf(const MeshAxes& mesh, AxisSet axes) {
  std::vector<std::string> names;
  for (size_t i = 0; i < mesh.size(); ++i) {
    if ((axes >> i & 1) != 0) names.push_back(mesh[i].name);
  }
  return names;
}

// Deals axes to the dimensions of an array, where every axis splits one: the first that has it,
// unless a conflict is resolved otherwise.
class Dealt {
 public:
  Dealt(const Space& space, const Candidate& candidate) : space_(space), candidate_(candidate) {
    for (size_t c = 0; c < candidate.conflicts.size(); ++c) {
      const OpenConflict& conflict = space.conflicts()[c];
      if (candidate.conflicts[c] == ConflictResolution::kFirst) {
        wins_.emplace(conflict.first, conflict.second);
      } else if (candidate.conflicts[c] == ConflictResolution::kSecond) {
        wins_.emplace(conflict.second, conflict.first);
      }
    }
  }

  std::vector<AxisSet> Of(const std::vector<int32_t>& decisions) const {
    std::vector<AxisSet> axes(decisions.size(), 0);
    for (size_t d = 0; d < decisions.size(); ++d) axes[d] = Wanted(decisions[d]);
    const std::vector<AxisSet> wanted = axes;
    for (size_t d = 0; d < axes.size(); ++d) {
      for (size_t other = 0; other < axes.size(); ++other) {
        if (other != d && Loses(decisions, d, other)) axes[d] &= ~wanted[other];
      }
    }
    return axes;
  }

 private:
  AxisSet Wanted(int32_t decision) const {
    const int32_t leader = space_.Leader(decision);
    return leader < 0 ? 0 : candidate_.axes[static_cast<size_t>(leader)];
  }
  bool Loses(const std::vector<int32_t>& decisions, size_t d, size_t other) const {
    const int32_t mine = space_.Leader(decisions[d]), theirs = space_.Leader(decisions[other]);
    if (mine < 0 || theirs < 0) return false;
    if (wins_.contains({mine, theirs})) return false;
    return wins_.contains({theirs, mine}) || other < d;
  }

  const Space& space_;
  const Candidate& candidate_;
  std::set<std::pair<int32_t, int32_t>> wins_;
};

Dims NamesOf(const MeshAxes& mesh, const std::vector<AxisSet>& axes) {
  Dims dims;
  for (const AxisSet set : axes) dims.push_back(NamesOf(mesh, set));
  return dims;
}

sharding::StatedConstraint Stated(const std::string& value, Dims dims) {
  sharding::StatedConstraint stated;
  stated.values = {value};
  stated.text = fmt::format("{}={}", value, SpecText(dims));
  stated.dims = std::move(dims);
  stated.is_spec = true;
  return stated;
}

// Returns those of the axes in front that divide `size` elements.
AxisSet Dividing(const MeshAxes& mesh, AxisSet axes, int64_t size) {
  AxisSet dividing = 0;
  for (size_t i = 0; i < mesh.size(); ++i) {
    if ((axes >> i & 1) == 0) continue;
    if (size % SizeOf(mesh, dividing | AxisSet{1} << i) != 0) break;
    dividing |= AxisSet{1} << i;
  }
  return dividing;
}

// Returns the choice for each dimension of a named value.
std::vector<AxisSet> ChosenFor(const Space& space, const Candidate& candidate, int32_t value) {
  std::vector<AxisSet> chosen;
  for (size_t d = 0; d < space.program().named[value].divisors.size(); ++d) {
    const int32_t number = space.InSpace(NamedDim{value, static_cast<int32_t>(d)});
    chosen.push_back(number < 0 ? kAsDecided : candidate.axes[number]);
  }
  return chosen;
}

// An axis that is chosen for a dimension splits no other one.
std::vector<AxisSet> With(const std::vector<AxisSet>& chosen, std::vector<AxisSet> decided) {
  AxisSet taken = 0;
  for (const AxisSet axes : chosen) taken |= axes == kAsDecided ? 0 : axes;
  for (size_t d = 0; d < decided.size(); ++d) {
    decided[d] = chosen[d] == kAsDecided ? decided[d] & ~taken : chosen[d];
  }
  return decided;
}

}  // namespace

std::string SpecText(const Dims& dims) {
  Dims split = dims;
  while (!split.empty() && split.back().empty()) split.pop_back();
  return sharding::SpecText(split);
}

Statements StatementsOf(const Space& space, const Candidate& candidate) {
  Statements statements;
  statements.mesh = space.meshes()[static_cast<size_t>(candidate.mesh)];
  const Dealt dealt(space, candidate);
  // As far as axes divide the dimensions.
  const auto split = [&](const std::vector<int32_t>& decisions, const hlo::Shape& shape) {
    std::vector<AxisSet> axes = dealt.Of(decisions);
    for (size_t d = 0; d < axes.size(); ++d) {
      axes[d] = Dividing(statements.mesh, axes[d], shape.dims[d]);
    }
    return axes;
  };
  for (const sharding::DecidedArgument& argument : space.program().arguments) {
    if (argument.decisions.empty()) continue;
    statements.arguments.push_back(
        Stated(argument.name, NamesOf(statements.mesh, split(argument.decisions, argument.shape))));
  }
  // By value, how it is split.
  std::map<std::string, std::pair<const sharding::ConstraintPlace*, std::vector<AxisSet>>> places;
  const auto as_decided = [&](const sharding::ConstraintPlace& place) {
    places[place.value] = {&place, split(place.decisions, place.shape)};
  };
  if (!space.keeps_constraints()) {
    for (const sharding::ConstraintPlace& place : space.program().constraints) as_decided(place);
  }
  for (size_t c = 0; c < candidate.conflicts.size(); ++c) {
    if (candidate.conflicts[c] == ConflictResolution::kByPropagation) continue;
    const int32_t conflict = space.conflicts()[c].conflict;
    for (const sharding::ConstraintPlace& place : space.program().conflicts[conflict].places) {
      as_decided(place);
    }
  }
  for (size_t v = 0; v < space.program().named.size(); ++v) {
    const sharding::NamedValue& named = space.program().named[v];
    const std::vector<AxisSet> chosen = ChosenFor(space, candidate, static_cast<int32_t>(v));
    if (std::ranges::all_of(chosen, [](AxisSet axes) { return axes == kAsDecided; })) continue;
    for (const sharding::ConstraintPlace& place : named.places) {
      places[place.value] = {&place, With(chosen, split(place.decisions, place.shape))};
    }
  }
  for (const auto& [value, said] : places) {
    if (space.IsConstrained(value)) continue;
    const auto& [place, axes] = said;
    statements.constraints.push_back(Stated(value, NamesOf(statements.mesh, axes)));
    statements.places.push_back(*place);
  }
  return statements;
}

std::vector<Candidate> OwnCandidates(const Space& space, const Program& program) {
  // By decision, what the first argument says that has it.
  std::vector<std::optional<std::vector<std::string>>> said(space.decisions());
  for (size_t n = 0; n < program.own.size(); ++n) {
    for (size_t d = 0; d < program.own[n].size(); ++d) {
      const int32_t decision = space.InSpace(space.program().arguments[n].decisions[d]);
      if (decision >= 0 && !said[decision]) said[decision] = program.own[n][d];
    }
  }
  std::vector<Candidate> candidates;
  for (size_t mesh = 0; mesh < space.meshes().size(); ++mesh) {
    Candidate candidate{static_cast<int32_t>(mesh), {}, {}};
    for (size_t d = 0; d < said.size(); ++d) {
      const std::optional<std::vector<std::string>>& names = said[d];
      AxisSet& axes = candidate.axes.emplace_back(space.Named(d) != nullptr ? kAsDecided : 0);
      for (size_t i = 0; names && i < space.meshes()[mesh].size(); ++i) {
        const sharding::MeshAxis& axis = space.meshes()[mesh][i];
        if (axis.size > 1 && std::ranges::find(*names, axis.name) != names->end()) {
          axes |= AxisSet{1} << i;
        }
      }
    }
    candidates.push_back(std::move(candidate));
  }
  // Its own mesh first.
  std::ranges::stable_partition(candidates, [&](const Candidate& candidate) {
    return space.meshes()[static_cast<size_t>(candidate.mesh)] == program.mesh.axes;
  });
  return candidates;
}

std::string ToString(const Program& program, const Space& space, const Candidate& candidate) {
  const MeshAxes& mesh = space.meshes()[static_cast<size_t>(candidate.mesh)];
  const std::string variant = NameOf(program.variants[static_cast<size_t>(candidate.variant)]);
  std::vector<std::string> parts = {ToString(mesh)};
  if (!variant.empty()) parts.push_back(variant);
  for (size_t d = 0; d < space.decisions(); ++d) {
    const AxisSet axes = candidate.axes[d];
    if (axes == (space.Named(d) != nullptr ? kAsDecided : 0)) continue;
    const std::vector<std::string> names = NamesOf(mesh, axes);
    parts.push_back(
        fmt::format("{}: {}", space.NameOf(d),
                    names.empty() ? "whole" : fmt::format("{}", fmt::join(names, ","))));
  }
  for (size_t c = 0; c < candidate.conflicts.size(); ++c) {
    if (candidate.conflicts[c] == ConflictResolution::kByPropagation) continue;
    const OpenConflict& conflict = space.conflicts()[c];
    const bool first = candidate.conflicts[c] == ConflictResolution::kFirst;
    parts.push_back(fmt::format(
        "constraint: {} keeps its axes where it meets {}",
        space.Decision(static_cast<size_t>(first ? conflict.first : conflict.second)).name,
        space.Decision(static_cast<size_t>(first ? conflict.second : conflict.first)).name));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace tpusim::search
