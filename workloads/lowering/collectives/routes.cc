#include "workloads/lowering/collectives/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "models/timing/collective_timing.h"

namespace tpusim::lowering {
namespace {

bool Equal(const isa::Route& a, const isa::Route& b) {
  return a.name == b.name && std::equal(a.from.begin(), a.from.end(), b.from.begin(), b.from.end(),
                                        [](const isa::RouteEnd& p, const isa::RouteEnd& q) {
                                          return p.peer == q.peer && p.links == q.links;
                                        });
}

size_t IndexOf(const configs::Link& link) {
  return static_cast<size_t>(link.chip) * configs::kDirections +
         static_cast<size_t>(link.direction);
}

}  // namespace

isa::Route AxisRoute(const configs::Topology& topology, int axis, int64_t offset) {
  const configs::Direction direction = configs::MakeDirection(axis, offset > 0);
  const int64_t distance = offset > 0 ? offset : -offset;
  isa::Route route;
  route.name = std::string(configs::DirectionName(direction));
  if (distance > 1) route.name += fmt::format("{}", distance);
  route.from.resize(topology.chips());
  for (int64_t chip = 0; chip < topology.chips(); ++chip) {
    isa::RouteEnd end;
    int64_t at = chip;
    while (static_cast<int64_t>(end.links.size()) < distance && topology.HasLink(at, direction)) {
      end.links.push_back({at, direction});
      at = topology.Neighbour(at, direction);
    }
    if (static_cast<int64_t>(end.links.size()) < distance) continue;
    end.peer = static_cast<int32_t>(at);
    route.from[chip] = std::move(end);
  }
  return route;
}

isa::Route ListRoute(const configs::Topology& topology, std::string name,
                     const std::vector<std::vector<int64_t>>& lists, int64_t offset,
                     configs::Topology::RouteTie tie) {
  isa::Route route;
  route.name = std::move(name);
  route.from.resize(topology.chips());
  for (const std::vector<int64_t>& list : lists) {
    const int64_t n = static_cast<int64_t>(list.size());
    for (int64_t i = 0; i < n; ++i) {
      const int64_t peer = list[((i + offset) % n + n) % n];
      route.from[list[i]] = {static_cast<int32_t>(peer), topology.Route(list[i], peer, tie)};
    }
  }
  return route;
}

int32_t AddRoute(isa::Route route, isa::PodProgram& program) {
  for (size_t i = 0; i < program.routes.size(); ++i) {
    if (Equal(program.routes[i], route)) return static_cast<int32_t>(i);
  }
  program.routes.push_back(std::move(route));
  return static_cast<int32_t>(program.routes.size()) - 1;
}

LinkLoads::LinkLoads(const configs::Config& config)
    : config_(&config), amounts_(config.topology.chips() * configs::kDirections, 0) {}

void LinkLoads::Add(const std::vector<configs::Link>& links, int64_t amount) {
  for (const configs::Link& link : links) amounts_[IndexOf(link)] += amount;
  longest_ = std::max(longest_, static_cast<int64_t>(links.size()));
}

int64_t LinkLoads::On(const configs::Link& link) const { return amounts_[IndexOf(link)]; }

BytesPerSecond LinkLoads::RateOf(size_t index) const {
  const int axis = configs::AxisOf(static_cast<configs::Direction>(index % configs::kDirections));
  return timing::EffectiveLinkRate(config_->chip.ici, config_->topology.wraps(axis));
}

size_t LinkLoads::BusiestLink() const {
  size_t busiest = 0;
  double longest_time = -1;
  for (size_t i = 0; i < amounts_.size(); ++i) {
    const double time = static_cast<double>(amounts_[i]) / RateOf(i).value();
    if (time > longest_time) {
      longest_time = time;
      busiest = i;
    }
  }
  TPUSIM_CHECK(longest_time > 0, "asked for the busiest of links that carry nothing");
  return busiest;
}

BytesPerSecond LinkLoads::Share() const { return BusiestRate() / static_cast<double>(Busiest()); }

int64_t LinkLoads::Busiest() const { return amounts_[BusiestLink()]; }

BytesPerSecond LinkLoads::BusiestRate() const { return RateOf(BusiestLink()); }

}  // namespace tpusim::lowering
