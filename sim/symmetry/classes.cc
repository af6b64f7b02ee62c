#include "sim/symmetry/classes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "configs/hosts.h"
#include "configs/status_macros.h"
#include "models/isa/used_routes.h"
#include "sim/symmetry/hash.h"

namespace tpusim::sim {
namespace {

constexpr Color kRoute = 5;

Partition Alone(int64_t n) {
  Partition partition;
  partition.class_of.resize(static_cast<size_t>(n));
  std::iota(partition.class_of.begin(), partition.class_of.end(), 0);
  partition.first = partition.class_of;
  partition.size.assign(static_cast<size_t>(n), 1);
  return partition;
}

// The routes that the devices of a program use, by device.
class Users {
 public:
  explicit Users(const isa::PodProgram& program)
      : program_(program), used_(isa::UsedRoutes(program)) {}

  // `use(device, route, end)` for everything that may be sent.
  template <typename Use>
  void ForEach(const Use& use) const {
    for (size_t d = 0; d < program_.program_of_device.size(); ++d) {
      for (const int32_t route : used_[program_.program_of_device[d]]) {
        const isa::RouteEnd& end = program_.routes[route].from[d];
        if (end.peer >= 0) use(static_cast<int32_t>(d), route, end);
      }
    }
  }

 private:
  const isa::PodProgram& program_;
  const std::vector<std::vector<int32_t>> used_;
};

void AddReceiver(int32_t receiver, RouteLoad& load) {
  for (RouteLoad::Receiver& known : load.receivers) {
    if (known.receiver != receiver) continue;
    known.share += 1;
    return;
  }
  load.receivers.push_back({receiver, 1});
}

}  // namespace

Partition PartitionOf(const std::vector<Color>& colors) {
  Partition partition;
  partition.class_of.assign(colors.size(), -1);
  std::unordered_map<Color, int32_t> known;
  // A small cache: most members share a few colors.
  std::array<std::pair<Color, int32_t>, 64> recent = {};
  for (size_t i = 0; i < colors.size(); ++i) {
    if (colors[i] == kNoColor) continue;
    auto& [color, its_class] = recent[colors[i] % recent.size()];
    if (color != colors[i]) {
      const auto [it, fresh] =
          known.try_emplace(colors[i], static_cast<int32_t>(partition.first.size()));
      if (fresh) {
        partition.first.push_back(static_cast<int32_t>(i));
        partition.size.push_back(0);
      }
      color = colors[i];
      its_class = it->second;
    }
    partition.class_of[i] = its_class;
    ++partition.size[its_class];
  }
  return partition;
}

namespace {

int64_t Length(const isa::PodProgram& program, int32_t route, int32_t device) {
  return isa::Crossings(device, program.routes[route].from[device]);
}

// Over an uneven route all classes that send to a class reach its representative.
void JoinArrivals(const Classes& classes, std::vector<RouteLoad>& of_route) {
  struct Reached {
    int32_t senders = 0;
    double arrivals = 0;
  };
  std::map<int32_t, Reached> reached;
  for (RouteLoad& load : of_route) {
    load.arrivals.clear();
    for (const RouteLoad::Receiver& to : load.receivers) {
      Reached& one = reached[to.receiver];
      load.arrivals.push_back({.receiver = to.receiver, .sender = one.senders++});
      one.arrivals += to.share / static_cast<double>(classes.devices.Multiplicity(to.receiver));
    }
  }
  for (RouteLoad& load : of_route) {
    for (RouteLoad::Arrival& arrival : load.arrivals) {
      const Reached& one = reached.at(arrival.receiver);
      arrival.senders = one.senders;
      arrival.count = std::max<int64_t>(1, std::llround(one.arrivals));
    }
  }
}

// Links by rate and by what the program sends over them.
void ClassifyLinks(const configs::Config& config, const Impairments& impairments,
                   const Users& users, Classes& classes) {
  std::vector<Color> links(static_cast<size_t>(config.topology.chips() * configs::kDirections),
                           kNoColor);
  for (const configs::Link& link : config.topology.AllLinks()) {
    links[LinkIndex(link)] =
        Hash(std::bit_cast<Color>(LinkRate(config, impairments, link).value()));
  }
  std::vector<Color> over(links.size(), 0);
  users.ForEach([&](int32_t device, int32_t route, const isa::RouteEnd& end) {
    // Not symmetric in the two numbers.
    const Color flow =
        Hash(Hash(kRoute, static_cast<Color>(classes.RouteAtRepresentative(device, route))),
             static_cast<Color>(classes.devices.class_of[device]));
    for (const configs::Link& link : end.links) over[LinkIndex(link)] += flow;
  });
  for (size_t l = 0; l < links.size(); ++l) {
    if (links[l] != kNoColor) links[l] = Hash(links[l], over[l]);
  }
  classes.links = PartitionOf(links);
}

void AddArrival(int32_t receiver, int32_t view, RouteLoad& load) {
  const auto same = std::find_if(load.arrivals.begin(), load.arrivals.end(),
                                 [&](const RouteLoad::Arrival& arrival) {
                                   return arrival.receiver == receiver && arrival.view == view;
                                 });
  if (same != load.arrivals.end()) {
    ++same->count;
  } else {
    load.arrivals.push_back({.receiver = receiver, .view = view, .count = 1});
  }
}

void AddFlow(int32_t link_class, RouteLoad& load) {
  TPUSIM_CHECK(link_class >= 0, "a route crosses a link that does not exist");
  const auto known =
      std::find_if(load.links.begin(), load.links.end(),
                   [&](const RouteLoad::OnLinks& on) { return on.link_class == link_class; });
  if (known != load.links.end()) {
    ++known->flows;
  } else {
    load.links.push_back({link_class, 1});
  }
}

// Over all links, and to all devices, of a class together.
void AddLoads(const isa::PodProgram& program, const Users& users, Classes& classes) {
  classes.loads.assign(program.routes.size(), {});
  users.ForEach([&](int32_t device, int32_t route, const isa::RouteEnd& end) {
    std::vector<RouteLoad>& of_route = classes.loads[classes.RouteAtRepresentative(device, route)];
    if (of_route.empty()) of_route.resize(static_cast<size_t>(classes.devices.classes()));
    RouteLoad& load = of_route[classes.devices.class_of[device]];
    // The representative comes first. In other views the ways are as long as its own.
    if (load.timed_by < 0 ||
        (classes.ViewOf(device) == 0 &&
         Length(program, route, device) > Length(program, route, load.timed_by))) {
      load.timed_by = device;
    }
    AddReceiver(classes.devices.Representative(end.peer), load);
    if (classes.devices.IsRepresentative(end.peer)) {
      AddArrival(end.peer, classes.ViewOf(device), load);
    }
    for (const configs::Link& link : end.links) {
      AddFlow(classes.links.class_of[LinkIndex(link)], load);
    }
  });
}

// Sets the share of loads on each link of a class and on each device of a class.
void ShareLoads(Classes& classes) {
  for (std::vector<RouteLoad>& of_route : classes.loads) {
    for (RouteLoad& load : of_route) {
      for (RouteLoad::Receiver& to : load.receivers) {
        to.share /= static_cast<double>(classes.devices.Multiplicity(to.receiver));
      }
      for (RouteLoad::OnLinks& on : load.links) {
        TPUSIM_CHECK(on.flows % classes.links.size[on.link_class] == 0,
                     "links of one class carry different loads");
        on.flows /= classes.links.size[on.link_class];
      }
    }
  }
}

}  // namespace

void AddLinks(const configs::Config& config, const isa::PodProgram& program,
              const Impairments& impairments, const std::vector<bool>& uneven, Classes& classes) {
  const Users users(program);
  ClassifyLinks(config, impairments, users, classes);
  AddLoads(program, users, classes);
  for (size_t route = 0; route < uneven.size(); ++route) {
    if (uneven[route]) JoinArrivals(classes, classes.loads[route]);
  }
  ShareLoads(classes);
}

Classes Unfolded(const configs::Config& config, const isa::PodProgram& program,
                 const Impairments& impairments) {
  const auto hosts = static_cast<int64_t>(configs::HostsOf(config).chips.size());
  Classes classes;
  classes.devices = Alone(config.devices());
  classes.chips = Alone(config.topology.chips());
  classes.hosts = Alone(hosts);
  AddLinks(config, program, impairments, {}, classes);
  return classes;
}

}  // namespace tpusim::sim
