#include "workloads/collectives/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "models/timing/collective_timing.h"
#include "workloads/collectives/steps.h"

namespace tpusim::collectives {
namespace {

bool Equal(const isa::Route& a, const isa::Route& b) {
  return a.name == b.name && std::equal(a.from.begin(), a.from.end(), b.from.begin(), b.from.end(),
                                        [](const isa::RouteEnd& p, const isa::RouteEnd& q) {
                                          return p.peer == q.peer && p.links == q.links &&
                                                 p.dcn == q.dcn;
                                        });
}

// No other route is called so.
std::string AxisRouteName(int axis, int64_t offset) {
  if (axis == kCoreAxis) return fmt::format("core{:+d}", offset);
  if (axis == kSliceAxis) return fmt::format("slice{:+d}", offset);
  const int64_t distance = offset > 0 ? offset : -offset;
  std::string name(configs::DirectionName(configs::MakeDirection(axis, offset > 0)));
  return distance > 1 ? name + fmt::format("{}", distance) : name;
}

size_t IndexOf(const configs::Link& link) {
  return static_cast<size_t>(link.chip) * configs::kDirections +
         static_cast<size_t>(link.direction);
}

}  // namespace

isa::RouteEnd RouteTo(const configs::Topology& topology, int64_t from, int64_t to,
                      configs::Topology::RouteTie tie) {
  const int64_t per_chip = topology.devices_per_chip();
  const int64_t here = from / per_chip, there = to / per_chip;
  const std::vector<configs::Link> links = topology.Route(here, there, tie);
  return {static_cast<int32_t>(to),
          {links.begin(), links.end()},
          topology.SliceOf(here) != topology.SliceOf(there)};
}

isa::RouteEnd AxisRouteEnd(const configs::Topology& topology, int axis, int64_t offset,
                           int64_t device) {
  const int64_t per_chip = topology.devices_per_chip();
  if (axis == kCoreAxis) {
    const int64_t core = device % per_chip + offset;
    if (core < 0 || core >= per_chip) return {};
    return {static_cast<int32_t>(device + offset), {}, false};
  }
  if (axis == kSliceAxis) {
    const int64_t in_slice = topology.devices() / topology.slices();
    const int64_t round = (device + offset * in_slice) % topology.devices();
    const int64_t peer = (round + topology.devices()) % topology.devices();
    return {static_cast<int32_t>(peer), {}, peer != device};
  }
  const int64_t distance = offset > 0 ? offset : -offset;
  const configs::Direction direction = configs::MakeDirection(axis, offset > 0);
  isa::RouteEnd end;
  end.links.reserve(static_cast<size_t>(distance));
  int64_t at = device / per_chip;
  for (int64_t hop = 0; hop < distance; ++hop) {
    if (!topology.HasLink(at, direction)) return {};
    end.links.push_back({at, direction});
    at = topology.Neighbour(at, direction);
  }
  end.peer = static_cast<int32_t>(at * per_chip + device % per_chip);
  return end;
}

isa::Route AxisRoute(const configs::Topology& topology, int axis, int64_t offset) {
  isa::Route route;
  route.name = AxisRouteName(axis, offset);
  for (int64_t device = 0; device < topology.devices(); ++device) {
    route.from.push_back(AxisRouteEnd(topology, axis, offset, device));
  }
  return route;
}

int32_t AddAxisRoute(const configs::Topology& topology, int axis, int64_t offset,
                     isa::PodProgram& program) {
  const std::string name = AxisRouteName(axis, offset);
  for (size_t i = 0; i < program.routes.size(); ++i) {
    if (program.routes[i].name == name) return static_cast<int32_t>(i);
  }
  program.routes.push_back(AxisRoute(topology, axis, offset));
  return static_cast<int32_t>(program.routes.size()) - 1;
}

isa::Route ListRoute(const configs::Topology& topology, std::string name,
                     const std::vector<std::vector<int64_t>>& lists, const Dimension& dimension,
                     int64_t offset, configs::Topology::RouteTie tie) {
  isa::Route route;
  route.name = std::move(name);
  route.from.resize(topology.devices());
  for (const std::vector<int64_t>& list : lists) {
    const int64_t n = static_cast<int64_t>(list.size());
    for (int64_t i = 0; i < n; ++i) {
      const int64_t peer = list[dimension.Shifted(i, offset)];
      route.from[list[i]] = RouteTo(topology, list[i], peer, tie);
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
    : config_(&config), hosts_(configs::HostsOf(config)) {
  const size_t own = Own(config.devices());
  amounts_.resize(hosts_.chips.empty() ? own : Ingress(static_cast<int64_t>(hosts_.chips.size())));
}

size_t LinkLoads::Own(int64_t device) const {
  return static_cast<size_t>(config_->topology.chips() * configs::kDirections + device);
}
size_t LinkLoads::ToHost(int64_t chip) const {
  return Own(config_->devices()) + static_cast<size_t>(chip);
}
size_t LinkLoads::FromHost(int64_t chip) const {
  return ToHost(config_->topology.chips()) + static_cast<size_t>(chip);
}
size_t LinkLoads::Egress(int64_t host) const {
  return FromHost(config_->topology.chips()) + static_cast<size_t>(host);
}
size_t LinkLoads::Ingress(int64_t host) const {
  return Egress(0) + hosts_.chips.size() + static_cast<size_t>(host);
}

LinkLoads::Crossed LinkLoads::CrossedBy(int64_t from, const isa::RouteEnd& end) const {
  Crossed crossed;
  const int64_t per_chip = config_->topology.devices_per_chip();
  if (end.dcn) {
    const int64_t chip = from / per_chip, peer = end.peer / per_chip;
    return {ToHost(chip), Egress(hosts_.of_chip[chip]), Ingress(hosts_.of_chip[peer]),
            FromHost(peer)};
  }
  for (const configs::Link& link : end.links) crossed.push_back(IndexOf(link));
  if (crossed.empty() && end.peer != from) {
    crossed.push_back(Own(from));
  }
  return crossed;
}

void LinkLoads::Add(int64_t from, const isa::RouteEnd& end, int64_t amount) {
  const Crossed crossed = CrossedBy(from, end);
  for (const size_t link : crossed) amounts_[link] += amount;
  if (end.dcn) {
    dcn_ = true;
  } else {
    longest_ = std::max(longest_, static_cast<int64_t>(crossed.size()));
  }
}

void LinkLoads::AddBetweenSlices(int64_t device, int64_t transfers) {
  const int64_t chip = device / config_->topology.devices_per_chip();
  const int64_t host = hosts_.of_chip[chip];
  for (const size_t link : {ToHost(chip), Egress(host), Ingress(host), FromHost(chip)}) {
    amounts_[link] += transfers;
  }
  dcn_ = dcn_ || transfers > 0;
}

double LinkLoads::SecondsOn(int64_t from, const isa::RouteEnd& end) const {
  double slowest = 0;
  for (const size_t link : CrossedBy(from, end)) {
    slowest = std::max(slowest, static_cast<double>(amounts_[link]) / RateOf(link).value());
  }
  return slowest;
}

double LinkLoads::SlowestOf(size_t first, size_t end, size_t stride) const {
  double slowest = 0;
  for (size_t i = first; i < end; i += stride) {
    if (amounts_[i] == 0) continue;
    slowest = std::max(slowest, static_cast<double>(amounts_[i]) / RateOf(i).value());
  }
  return slowest;
}

std::array<double, configs::kDirections> LinkLoads::SecondsByDirection() const {
  std::array<double, configs::kDirections> seconds;
  for (size_t d = 0; d < seconds.size(); ++d) {
    seconds[d] = SlowestOf(d, Own(0), configs::kDirections);
  }
  return seconds;
}

double LinkLoads::SecondsOnDies() const { return SlowestOf(Own(0), Own(config_->devices()), 1); }

double LinkLoads::SecondsBetweenSlices() const {
  return SlowestOf(Own(config_->devices()), amounts_.size(), 1);
}

BytesPerSecond LinkLoads::RateOf(size_t index) const {
  if (index >= Own(config_->devices())) {
    if (index < Egress(0)) return config_->chip.host.pcie_bytes_per_second;
    const size_t host = (index - Egress(0)) % hosts_.chips.size();
    return config_->chip.host.DcnRate(hosts_.chips[host]);
  }
  if (index >= Own(0)) return config_->chip.ici.die_to_die_bytes_per_second;
  const int axis = configs::AxisOf(static_cast<configs::Direction>(index % configs::kDirections));
  return timing::EffectiveLinkRate(config_->chip.ici, config_->topology.LinksAlong(axis));
}

size_t LinkLoads::BusiestLink() const {
  size_t busiest = 0;
  double longest_time = -1;
  for (size_t i = 0; i < amounts_.size(); ++i) {
    if (amounts_[i] == 0) continue;
    const double time = static_cast<double>(amounts_[i]) / RateOf(i).value();
    if (time > longest_time) {
      longest_time = time;
      busiest = i;
    }
  }
  TPUSIM_CHECK(longest_time > 0, "asked for the busiest of links that carry nothing");
  return busiest;
}

BytesPerSecond LinkLoads::Share() const {
  const size_t busiest = BusiestLink();
  return RateOf(busiest) / static_cast<double>(amounts_[busiest]);
}

int64_t LinkLoads::Busiest() const { return amounts_[BusiestLink()]; }

BytesPerSecond LinkLoads::BusiestRate() const { return RateOf(BusiestLink()); }

}  // namespace tpusim::collectives
