#include "sim/symmetry/symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "configs/status_macros.h"
#include "models/isa/used_routes.h"
#include "sim/symmetry/automorphisms.h"
#include "sim/symmetry/hash.h"

namespace tpusim::sim {
namespace {

// What a transfer to another slice is to a network card or host link.
constexpr Color kLeaves = 1, kArrives = 2;
constexpr Color kClass = 5;
// Routes that are named for a split.
constexpr size_t kNamed = 4;
// Below, looking for automorphisms costs more than they could save.
constexpr int64_t kFewClasses = 4;

int64_t Count(const std::vector<Color>& colors) { return PartitionOf(colors).classes(); }

}  // namespace

Symmetry::Symmetry(const configs::Config& config, const isa::PodProgram& program,
                   const Impairments& impairments, Folding folding,
                   const std::vector<int32_t>& recorded, int64_t most_classes)
    : config_(config),
      program_(program),
      impairments_(impairments),
      folding_(folding),
      recorded_(recorded),
      most_classes_(most_classes),
      per_chip_(config.topology.devices_per_chip()),
      used_(isa::UsedRoutes(program)),
      on_hosts_(configs::HostsOf(config)),
      devices_of_(program.programs.size()) {
  if (folding == Folding::kOff) {
    classes_ = Unfolded(config, program, impairments);
    steps_.push_back({"folding is off", classes_.devices.classes()});
    return;
  }
  for (size_t d = 0; d < program.program_of_device.size(); ++d) {
    devices_of_[program.program_of_device[d]].push_back(static_cast<int32_t>(d));
  }
  link_rates_.assign(static_cast<size_t>(config.topology.chips() * configs::kDirections), kNoColor);
  for (const configs::Link& link : config.topology.AllLinks()) {
    link_rates_[LinkIndex(link)] =
        Hash(std::bit_cast<Color>(LinkRate(config, impairments, link).value()));
  }
  all_ = NotOverlooked();
  Colorize();
  steps_.push_back({fmt::format("{} distinct programs{}", program_.programs.size(),
                                impairments_.chips.empty() ? "" : ", slow chips"),
                    Count(colors_.devices)});
  Refine();
  steps_.push_back({"partners and hops of routes", classes_.devices.classes()});
  TryOrbits();
  if (folding == Folding::kApproximate) {
    may_overlook_ = true;
    OverlookSome(all_);
  }
}

RouteSet Symmetry::NotOverlooked() const {
  RouteSet routes;
  for (size_t p = 0; p < used_.size(); ++p) {
    for (const int32_t route : used_[p]) {
      if (!IsOverlooked(static_cast<int32_t>(p), route)) routes.emplace_back(p, route);
    }
  }
  return routes;
}

void Symmetry::TryOrbits() {
  if (classes_.devices.classes() <= kFewClasses) return;
  if (!orbits_tried_) orbits_ = OrbitsOf(config_, program_, impairments_);
  orbits_tried_ = true;
  if (!orbits_ || orbits_->devices.classes() >= classes_.devices.classes()) return;
  for (const int32_t device : recorded_) {
    if (orbits_->ViewOf(device) != 0) return;
  }
  classes_ = *std::move(orbits_);
  are_orbits_ = true;
  steps_.push_back({"images of each other in the slice", classes_.devices.classes()});
}

bool Symmetry::Retreat() {
  if (!approximates()) return false;
  may_overlook_ = false;
  overlooked_.clear();
  all_ = NotOverlooked();
  Colorize();
  Refine();
  steps_.push_back(
      {"routes that were overlooked close a circle of waits", classes_.devices.classes()});
  return true;
}

void Symmetry::Take(Overlooked overlooked_as) {
  overlooked_as_ = overlooked_as;
  AddLinks(config_, program_, impairments_, overlooked_, overlooked_as_, classes_);
}

void Symmetry::OverlookSome(RouteSet routes) {
  if (classes_.devices.classes() <= most_classes_) return;
  // Another slice is more than a longer way.
  std::erase_if(routes, [&](const std::pair<int32_t, int32_t>& use) {
    const std::vector<isa::RouteEnd>& from = program_.routes[use.second].from;
    return std::any_of(devices_of_[use.first].begin(), devices_of_[use.first].end(),
                       [&](int32_t device) { return from[device].dcn; });
  });
  if (routes.empty()) return;
  // Those that carry least first.
  const std::vector<std::vector<double>> bytes = isa::BytesOverRoutes(program_);
  std::map<int32_t, double> most;  // by route, that any device sends over it
  for (const auto& [program, route] : routes) {
    most[route] = std::max(most[route], bytes[program][route]);
  }
  std::stable_sort(routes.begin(), routes.end(), [&](const auto& a, const auto& b) {
    return std::pair(most[a.second], a.second) < std::pair(most[b.second], b.second);
  });
  OverlookedRoutes before = std::move(overlooked_);
  if (before.empty()) {
    before.assign(used_.size(), std::vector<bool>(program_.routes.size(), false));
  }
  const auto classes_without = [&](size_t count) {
    overlooked_ = before;
    for (size_t i = 0; i < count; ++i) overlooked_[routes[i].first][routes[i].second] = true;
    Colorize();
    RefineColors();
    return Count(colors_.devices);
  };
  // More that is overlooked never makes more classes.
  size_t too_few = 0, enough = routes.size();
  while (too_few + 1 < enough) {
    const size_t middle = too_few + (enough - too_few) / 2;
    (classes_without(middle) <= most_classes_ ? enough : too_few) = middle;
  }
  classes_without(enough);
  are_orbits_ = false;
  classes_ = {};
  all_ = NotOverlooked();
  Refine();
  steps_.push_back(
      {fmt::format("{} of {} routes overlooked, those that carry least", enough, routes.size()),
       classes_.devices.classes()});
}

void Symmetry::Colorize() {
  colors_.devices.resize(program_.program_of_device.size());
  for (size_t d = 0; d < colors_.devices.size(); ++d) {
    const double clock = impairments_.ClockFactor(static_cast<int64_t>(d) / per_chip_);
    colors_.devices[d] = Hash(Hash(2, static_cast<Color>(program_.program_of_device[d])),
                              std::bit_cast<Color>(clock));
  }
  colors_.chips.assign(static_cast<size_t>(config_.topology.chips()), Hash(1));
  colors_.hosts.clear();
  for (const int64_t chips : on_hosts_.chips) {
    colors_.hosts.push_back(Hash(4, static_cast<Color>(chips)));
  }
}

void Symmetry::RefineColors() {
  const auto count = [](const Colors& c) {
    return Count(c.devices) + Count(c.chips) + Count(c.hosts);
  };
  for (int64_t classes = count(colors_);;) {
    // A new color contains the old one, so classes only ever split.
    Colors next = NextColors(colors_);
    const int64_t finer = count(next);
    if (finer == classes) break;
    classes = finer;
    colors_ = std::move(next);
  }
}

void Symmetry::Refine() {
  RefineColors();
  classes_.devices = PartitionOf(colors_.devices);
  classes_.chips = PartitionOf(colors_.chips);
  classes_.hosts = PartitionOf(colors_.hosts);
  AddLinks(config_, program_, impairments_, overlooked_, overlooked_as_, classes_);
}

// The next color of each: its own, and the multiset of what it sees. Sums are multisets.
Symmetry::Colors Symmetry::NextColors(const Colors& now) const {
  Colors next = now;
  std::vector<Color> seen(now.devices.size(), 0);
  std::vector<Color> chips(now.chips.size(), 0), hosts(now.hosts.size(), 0);
  for (size_t d = 0; d < now.devices.size(); ++d) {
    const size_t chip = d / static_cast<size_t>(per_chip_);
    const int32_t program = program_.program_of_device[d];
    Color color = Hash(now.devices[d], now.chips[chip]);
    for (const int32_t route : used_[program]) {
      const isa::RouteEnd& end = program_.routes[route].from[d];
      if (end.peer < 0) continue;
      const Color hashed = Hash(static_cast<Color>(route));
      color = Add(color, hashed);
      // Otherwise it counts how many arrive, not from where or how far.
      const bool exact = !IsOverlooked(program, route);
      const Color sends = exact ? Add(now.devices[d], hashed) : hashed;
      if (exact) {
        color = Hash(Add(color, now.devices[end.peer]),
                     static_cast<Color>(isa::Crossings(static_cast<int64_t>(d), end)));
      }
      if (end.dcn) {
        const auto peer_chip = static_cast<size_t>(end.peer / per_chip_);
        const int64_t here = on_hosts_.of_chip[chip], there = on_hosts_.of_chip[peer_chip];
        color = Hash(Hash(Hash(color, now.hosts[here]), now.hosts[there]), now.chips[peer_chip]);
        hosts[here] += Hash(sends, kLeaves);
        hosts[there] += Hash(sends, kArrives);
        chips[peer_chip] += Hash(sends, kArrives);
      }
      seen[end.peer] += sends;
    }
    next.devices[d] = color;
    chips[chip] += Hash(now.devices[d]);
  }
  for (size_t d = 0; d < seen.size(); ++d) next.devices[d] = Hash(next.devices[d], seen[d]);
  for (const RouteSet& set : sets_) AddSet(set, now.devices, next.devices);
  for (size_t c = 0; c < chips.size(); ++c) next.chips[c] = Hash(now.chips[c], chips[c]);
  for (size_t h = 0; h < hosts.size(); ++h) next.hosts[h] = Hash(now.hosts[h], hosts[h]);
  return next;
}

void Symmetry::AddSet(const RouteSet& set, const std::vector<Color>& devices,
                      std::vector<Color>& next) const {
  const auto for_each = [&](const auto& use) {
    for (const auto& [program, route] : set) {
      if (IsOverlooked(program, route)) continue;
      const Color hashed = Hash(static_cast<Color>(route));
      for (const int32_t d : devices_of_[program]) {
        const isa::RouteEnd& end = program_.routes[route].from[d];
        if (end.peer >= 0) use(d, hashed, end);
      }
    }
  };
  std::vector<Color> loads(link_rates_.size(), 0);
  for_each([&](int32_t device, Color route, const isa::RouteEnd& end) {
    const Color flow = Add(devices[device], route);
    for (const configs::Link& link : end.links) loads[LinkIndex(link)] += flow;
  });
  std::vector<Color> crossed;
  for_each([&](int32_t device, Color route, const isa::RouteEnd& end) {
    crossed.clear();
    for (const configs::Link& link : end.links) {
      crossed.push_back(Hash(link_rates_[LinkIndex(link)], loads[LinkIndex(link)]));
    }
    std::sort(crossed.begin(), crossed.end());
    crossed.erase(std::unique(crossed.begin(), crossed.end()), crossed.end());
    Color color = route;
    for (const Color load : crossed) color = Hash(color, load);
    next[device] = Add(next[device], color);
  });
}

bool Symmetry::Allows(const RouteSet& set) const {
  if (folding_ == Folding::kOff || are_orbits_) return true;
  // The loads that the devices of a class see under this set alone. Classes by number: two
  // of them have no color in common.
  std::vector<Color> own(classes_.devices.class_of.size()), seen;
  for (size_t d = 0; d < own.size(); ++d) {
    own[d] = Hash(kClass, static_cast<Color>(classes_.devices.class_of[d]));
  }
  seen = own;
  AddSet(set, own, seen);
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
  TryOrbits();
  if (may_overlook_) OverlookSome(set);
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
