#include "sim/symmetry/color_refinement.h"

#include <algorithm>
#include <bit>

#include "models/isa/used_routes.h"
#include "sim/symmetry/hash.h"

namespace tpusim::sim {
namespace {

// Directions of a transfer to another slice, for a network card or host link.
constexpr Color kLeaves = 1, kArrives = 2;

}  // namespace

int64_t Colors::classes() const {
  return PartitionOf(devices).classes() + PartitionOf(chips).classes() +
         PartitionOf(hosts).classes();
}

Classes PartitionsOf(const Colors& colors) {
  Classes classes;
  classes.devices = PartitionOf(colors.devices);
  classes.chips = PartitionOf(colors.chips);
  classes.hosts = PartitionOf(colors.hosts);
  return classes;
}

Refinement::Refinement(const configs::Config& config, const isa::PodProgram& program,
                       const Impairments& impairments)
    : config_(config),
      program_(program),
      impairments_(impairments),
      per_chip_(config.topology.devices_per_chip()),
      used_(isa::UsedRoutes(program)),
      on_hosts_(configs::HostsOf(config)),
      devices_of_(program.programs.size()) {
  for (size_t d = 0; d < program.program_of_device.size(); ++d) {
    devices_of_[program.program_of_device[d]].push_back(static_cast<int32_t>(d));
  }
  link_rates_.assign(static_cast<size_t>(config.topology.chips() * configs::kDirections), kNoColor);
  for (const configs::Link& link : config.topology.AllLinks()) {
    link_rates_[LinkIndex(link)] =
        Hash(std::bit_cast<Color>(LinkRate(config, impairments, link).value()));
  }
}

Colors Refinement::First() const {
  Colors colors;
  colors.devices.resize(program_.program_of_device.size());
  for (size_t d = 0; d < colors.devices.size(); ++d) {
    const double clock = impairments_.ClockFactor(static_cast<int64_t>(d) / per_chip_);
    colors.devices[d] = Hash(Hash(2, static_cast<Color>(program_.program_of_device[d])),
                             std::bit_cast<Color>(clock));
  }
  colors.chips.assign(static_cast<size_t>(config_.topology.chips()), Hash(1));
  for (const int64_t chips : on_hosts_.chips) {
    colors.hosts.push_back(Hash(4, static_cast<Color>(chips)));
  }
  return colors;
}

Colors Refinement::Refined(Colors colors, const std::vector<RouteSet>& sets) const {
  for (int64_t classes = colors.classes();;) {
    Colors next = Next(colors, sets);
    const int64_t finer = next.classes();
    if (finer == classes) return colors;
    classes = finer;
    colors = std::move(next);
  }
}

// Sums are multisets.
Colors Refinement::Next(const Colors& now, const std::vector<RouteSet>& sets) const {
  Colors next = now;
  std::vector<Color> seen(now.devices.size(), 0);
  std::vector<Color> chips(now.chips.size(), 0), hosts(now.hosts.size(), 0);
  for (size_t d = 0; d < now.devices.size(); ++d) {
    const size_t chip = d / static_cast<size_t>(per_chip_);
    Color color = Hash(now.devices[d], now.chips[chip]);
    for (const int32_t route : used_[program_.program_of_device[d]]) {
      const isa::RouteEnd& end = program_.routes[route].from[d];
      if (end.peer < 0) continue;
      const Color hashed = Hash(static_cast<Color>(route));
      color = Hash(Add(Add(color, hashed), now.devices[end.peer]),
                   static_cast<Color>(isa::Crossings(static_cast<int64_t>(d), end)));
      const Color sends = Add(now.devices[d], hashed);
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
  for (const RouteSet& set : sets) AddSet(set, now.devices, next.devices);
  for (size_t c = 0; c < chips.size(); ++c) next.chips[c] = Hash(now.chips[c], chips[c]);
  for (size_t h = 0; h < hosts.size(); ++h) next.hosts[h] = Hash(now.hosts[h], hosts[h]);
  return next;
}

void Refinement::AddSet(const RouteSet& set, const std::vector<Color>& devices,
                        std::vector<Color>& next) const {
  const auto for_each = [&](const auto& use) {
    for (const auto& [program, route] : set) {
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

}  // namespace tpusim::sim
