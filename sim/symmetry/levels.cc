#include "sim/symmetry/levels.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "sim/symmetry/hash.h"

namespace tpusim::sim {
namespace {

constexpr Color kGroup = 6;

// The groups of a route, by device the first member.
class Groups {
 public:
  explicit Groups(size_t devices) : first_(devices) {
    std::iota(first_.begin(), first_.end(), 0);
  }
  void Connect(int32_t a, int32_t b) {
    a = FirstOf(a);
    b = FirstOf(b);
    first_[std::max(a, b)] = std::min(a, b);
  }
  std::vector<int32_t> Take() {
    for (size_t d = 0; d < first_.size(); ++d) first_[d] = FirstOf(static_cast<int32_t>(d));
    return std::move(first_);
  }

 private:
  int32_t FirstOf(int32_t device) {
    while (first_[device] != device) device = first_[device] = first_[first_[device]];
    return device;
  }
  std::vector<int32_t> first_;
};

// The colors that there are in the group of each device, however often.
std::vector<Color> ColorsOfGroups(const std::vector<int32_t>& grouping,
                                  const std::vector<Color>& devices) {
  std::vector<std::pair<int32_t, Color>> members(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) members[d] = {grouping[d], devices[d]};
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  std::vector<Color> of(devices.size(), kGroup);  // by first member
  for (const auto& [group, color] : members) of[group] = Hash(of[group], color);
  std::vector<Color> colors(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) colors[d] = of[grouping[d]];
  return colors;
}

// Returns by route whether members of a class send to several classes over it, or receive from
// several.
std::vector<bool> UnevenRoutes(const isa::PodProgram& program,
                               const std::vector<std::vector<int32_t>>& used,
                               const Partition& devices) {
  const size_t n = program.program_of_device.size();
  std::vector<std::vector<bool>> uses(program.programs.size(),
                                      std::vector<bool>(program.routes.size(), false));
  for (size_t p = 0; p < used.size(); ++p) {
    for (const int32_t route : used[p]) uses[p][route] = true;
  }
  std::vector<bool> uneven(program.routes.size(), false);
  for (size_t route = 0; route < program.routes.size(); ++route) {
    std::vector<int32_t> to(n, -1);
    std::vector<Color> from(n, 0);
    for (size_t d = 0; d < n; ++d) {
      const int32_t peer = program.routes[route].from[d].peer;
      if (peer < 0 || !uses[program.program_of_device[d]][route]) continue;
      to[d] = devices.class_of[peer];
      from[peer] += Hash(static_cast<Color>(devices.class_of[d]));
    }
    for (size_t d = 0; d < n && !uneven[route]; ++d) {
      const int32_t first = devices.Representative(static_cast<int64_t>(d));
      uneven[route] = to[d] != to[first] || from[d] != from[first];
    }
  }
  return uneven;
}

}  // namespace

Levels::Levels(const configs::Config& config, const isa::PodProgram& program,
               const Impairments& impairments)
    : config_(config),
      program_(program),
      impairments_(impairments),
      refinement_(config, program, impairments),
      on_hosts_(configs::HostsOf(config)) {
  std::set<std::vector<int32_t>> known;
  std::vector<Groups> of_routes(program.routes.size(),
                                Groups(program.program_of_device.size()));
  for (size_t d = 0; d < program.program_of_device.size(); ++d) {
    for (const int32_t route : refinement_.used()[program.program_of_device[d]]) {
      const isa::RouteEnd& end = program.routes[route].from[d];
      if (end.peer < 0) continue;
      crosses_dcn_ = crosses_dcn_ || end.dcn;
      of_routes[route].Connect(static_cast<int32_t>(d), end.peer);
    }
  }
  for (Groups& groups : of_routes) {
    std::vector<int32_t> grouping = groups.Take();
    if (known.insert(grouping).second) groupings_.push_back(std::move(grouping));
  }
}

const Colors& Levels::At(int level) {
  while (levels_.size() <= static_cast<size_t>(level)) {
    if (levels_.empty()) {
      levels_.push_back(OfDevices());
    } else if (levels_.size() == 1) {
      levels_.push_back(OfGroups(levels_.back()));
    } else {
      levels_.push_back(Settled(refinement_.Next(levels_.back(), {})));
    }
  }
  return levels_[level];
}

Colors Levels::OfDevices() const {
  Colors colors = refinement_.First();
  std::vector<Color> reached(colors.devices.size(), 0);
  for (size_t d = 0; d < colors.devices.size(); ++d) {
    Color& color = colors.devices[d];
    for (const int32_t route : refinement_.used()[program_.program_of_device[d]]) {
      const isa::RouteEnd& end = program_.routes[route].from[d];
      if (end.peer < 0) continue;
      const Color hashed = Hash(static_cast<Color>(route));
      color = Add(color, hashed);
      reached[end.peer] += hashed;
      for (const configs::Link& link : end.links) {
        if (impairments_.LinkFactor(link) == 1) continue;
        color = Add(color, refinement_.link_rates()[LinkIndex(link)]);
      }
    }
  }
  for (size_t d = 0; d < reached.size(); ++d) {
    colors.devices[d] = Hash(colors.devices[d], reached[d]);
  }
  return Settled(std::move(colors));
}

Colors Levels::OfGroups(Colors colors) const {
  for (int64_t classes = colors.classes();;) {
    Colors next = colors;
    for (const std::vector<int32_t>& grouping : groupings_) {
      const std::vector<Color> groups = ColorsOfGroups(grouping, colors.devices);
      for (size_t d = 0; d < groups.size(); ++d) {
        next.devices[d] = Hash(next.devices[d], groups[d]);
      }
    }
    next = Settled(std::move(next));
    const int64_t finer = next.classes();
    if (finer == classes) return colors;
    classes = finer;
    colors = std::move(next);
  }
}

Colors Levels::Settled(Colors colors) const {
  const auto per_chip = static_cast<size_t>(config_.topology.devices_per_chip());
  for (int64_t classes = colors.classes();;) {
    std::vector<Color> chips(colors.chips.size(), 0), hosts(colors.hosts.size(), 0);
    for (size_t d = 0; d < colors.devices.size(); ++d) {
      chips[d / per_chip] += Hash(colors.devices[d]);
    }
    for (size_t c = 0; c < chips.size(); ++c) {
      colors.chips[c] = Hash(colors.chips[c], chips[c]);
      if (!hosts.empty()) hosts[on_hosts_.of_chip[c]] += Hash(colors.chips[c]);
    }
    for (size_t h = 0; h < hosts.size(); ++h) colors.hosts[h] = Hash(colors.hosts[h], hosts[h]);
    for (size_t d = 0; d < colors.devices.size(); ++d) {
      const size_t chip = d / per_chip;
      colors.devices[d] = Hash(colors.devices[d], colors.chips[chip]);
      if (crosses_dcn_ && !hosts.empty()) {
        colors.devices[d] = Hash(colors.devices[d], colors.hosts[on_hosts_.of_chip[chip]]);
      }
    }
    const int64_t finer = colors.classes();
    if (finer == classes) return colors;
    classes = finer;
  }
}

Classes Levels::ClassesAt(int level) {
  Classes classes = PartitionsOf(At(level));
  AddLinks(config_, program_, impairments_,
           UnevenRoutes(program_, refinement_.used(), classes.devices), classes);
  return classes;
}

}  // namespace tpusim::sim
