#include "workloads/collectives/permute.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "configs/memory.h"
#include "models/timing/collective_timing.h"
#include "models/timing/kernel_timing.h"
#include "workloads/collectives/routes.h"

namespace tpusim::collectives {
namespace {

using RouteTie = configs::Topology::RouteTie;

// A message on its way: one route, or two that carry half each.
struct Message {
  int64_t source = 0, target = 0;
  std::vector<isa::RouteEnd> ways;
  Bytes per_way;
};

// Self pairs are left out.
std::vector<Message> MessagesOf(const configs::Config& config, const CollectiveRequest& request) {
  std::vector<Message> messages;
  for (const auto& [source, target] : request.pairs) {
    if (source == target) continue;
    Message message{
        source, target, {RouteTo(config.topology, source, target, RouteTie::kPlus)}, {}};
    isa::RouteEnd other = RouteTo(config.topology, source, target, RouteTie::kMinus);
    if (other.links != message.ways[0].links) message.ways.push_back(std::move(other));
    message.per_way =
        Bytes(CeilDiv(request.operand_bytes.value(), static_cast<int64_t>(message.ways.size())));
    messages.push_back(std::move(message));
  }
  return messages;
}

// A device that is its own target: a transfer that crosses no link.
Message ToItself(int64_t device, Bytes bytes) {
  isa::RouteEnd end;
  end.peer = static_cast<int32_t>(device);
  return {device, device, {std::move(end)}, bytes};
}

// Sends messages as two halves over their one way where others take two ways: then all devices do
// the same.
void UseAsManyWays(Bytes bytes, std::vector<Message>& messages) {
  size_t most = 1;
  for (const Message& message : messages) most = std::max(most, message.ways.size());
  for (Message& message : messages) {
    message.ways.resize(most, message.ways.front());
    message.per_way = Bytes(CeilDiv(bytes.value(), static_cast<int64_t>(most)));
  }
}

// Sources and targets, by device.
struct Ends {
  std::vector<bool> receives, copies;
};

Ends EndsOf(const configs::Config& config, const CollectiveRequest& request) {
  Ends ends{std::vector<bool>(config.devices()), std::vector<bool>(config.devices())};
  for (const auto& [source, target] : request.pairs) {
    (source == target ? ends.copies : ends.receives)[target] = true;
  }
  return ends;
}

// Returns the time of the devices that receive nothing: a copy, or zeros.
Picoseconds SlowestCopy(const configs::Config& config, const CollectiveRequest& request) {
  const Ends ends = EndsOf(config, request);
  Picoseconds slowest(0);
  for (int64_t device = 0; device < config.devices(); ++device) {
    if (ends.receives[device]) continue;
    slowest = std::max(slowest, timing::LocalCopy(config.chip, request.space, request.operand_bytes,
                                                  ends.copies[device] ? 2 : 1));
  }
  return slowest;
}

LinkLoads LoadsOf(const configs::Config& config, const std::vector<Message>& messages) {
  LinkLoads loads(config);
  for (const Message& message : messages) {
    for (const isa::RouteEnd& way : message.ways) {
      loads.Add(message.source, way, message.per_way.value());
    }
  }
  return loads;
}

// Route table for the messages' `way`. Messages that all make the same way along
// an axis share the route of that axis with other collectives.
isa::Route RouteOf(const configs::Topology& topology, const std::vector<Message>& messages,
                   size_t way) {
  isa::Route route;
  route.name = way == 0 ? "permutation" : "permutation, other way";
  route.from.resize(topology.devices());
  bool straight = topology.devices_per_chip() == 1;
  const absl::InlinedVector<configs::Link, 1>* first = nullptr;
  for (const Message& message : messages) {
    if (message.ways.size() <= way) continue;
    const auto& links = message.ways[way].links;
    if (first == nullptr) first = &links;
    straight = straight && !links.empty() && links.size() == first->size() &&
               std::ranges::all_of(links, [&](const configs::Link& link) {
                 return link.direction == first->front().direction;
               });
    route.from[message.source] = message.ways[way];
  }
  if (first == nullptr || !straight) return route;
  const configs::Direction direction = first->front().direction;
  const int64_t distance = static_cast<int64_t>(first->size());
  return AxisRoute(topology, configs::AxisOf(direction),
                   configs::IsPlus(direction) ? distance : -distance);
}

// Returns the number of devices in the largest ring, chain or tree of messages.
int64_t LargestGroup(const configs::Config& config, const CollectiveRequest& request) {
  std::vector<int64_t> parent(config.devices());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&parent](int64_t device) {
    while (parent[device] != device) device = parent[device] = parent[parent[device]];
    return device;
  };
  for (const auto& [source, target] : request.pairs) parent[root(source)] = root(target);
  std::vector<int64_t> size(config.devices());
  for (int64_t device = 0; device < config.devices(); ++device) ++size[root(device)];
  return *std::ranges::max_element(size);
}

}  // namespace

isa::CollectiveInfo PermuteInfo(const configs::Config& config, const CollectiveRequest& request) {
  const configs::IciParams& ici = config.chip.ici;
  const std::vector<Message> messages = MessagesOf(config, request);
  const LinkLoads loads = LoadsOf(config, messages);
  Picoseconds slowest(0);
  int64_t fewest_ways = 0, total_hops = 0;
  bool on_chip = false;  // some message stays on its chip
  Picoseconds between_slices(0);
  for (const Message& message : messages) {
    for (const isa::RouteEnd& way : message.ways) {
      const Picoseconds moving = FromSeconds(loads.SecondsOn(message.source, way));
      slowest = std::max(slowest, moving + timing::RouteLatency(config.chip, message.source, way));
      // Between slices nothing is slower than its nominal rate.
      if (way.dcn) between_slices = std::max(between_slices, moving);
    }
    if (message.ways[0].links.empty()) {
      on_chip = on_chip || !message.ways[0].dcn;
      continue;
    }
    const int64_t ways = static_cast<int64_t>(message.ways.size());
    fewest_ways = fewest_ways == 0 ? ways : std::min(fewest_ways, ways);
    total_hops += static_cast<int64_t>(message.ways[0].links.size());
  }
  slowest = std::max(slowest, SlowestCopy(config, request));
  isa::CollectiveInfo info;
  info.algorithm = !messages.empty()       ? "direct over minimum-hop routes"
                   : request.pairs.empty() ? "zeros for all"
                                           : "local copy";
  info.group_size = LargestGroup(config, request);
  info.expected = timing::LaunchTime(config.chip) + slowest;
  info.bound = timing::PermuteBound(request.operand_bytes, fewest_ways, total_hops,
                                    static_cast<int64_t>(config.topology.AllLinks().size()),
                                    ici.link_bytes_per_second);
  if (on_chip) {
    info.bound =
        std::max(info.bound, TransferTime(request.operand_bytes, ici.die_to_die_bytes_per_second));
  }
  if (between_slices > Picoseconds(0)) {
    info.dcn = true;
    info.bound = std::max(info.bound, between_slices);
  }
  return info;
}

namespace {

// Between sending and arriving. Where messages go round a ring, and on the same way
// again, what was late in one permute is early in the next: what counts is the mean
// over the ring. Elsewhere it is the slowest message.
Picoseconds LatencyOf(const configs::Config& config, const std::vector<Message>& messages) {
  constexpr size_t kNone = -1;
  std::vector<size_t> message_of(config.devices(), kNone);  // by source
  std::vector<Picoseconds> latencies;
  for (size_t m = 0; m < messages.size(); ++m) {
    message_of[messages[m].source] = m;
    latencies.emplace_back(0);
    for (const isa::RouteEnd& way : messages[m].ways) {
      latencies[m] =
          std::max(latencies[m], timing::RouteLatency(config.chip, messages[m].source, way));
    }
  }
  Picoseconds slowest(0);
  std::vector<bool> seen(messages.size());
  for (size_t first = 0; first < messages.size(); ++first) {
    Picoseconds sum(0), longest(0);
    int64_t count = 0;
    size_t m = first;
    for (; m != kNone && !seen[m]; m = message_of[messages[m].target]) {
      seen[m] = true;
      sum += latencies[m];
      longest = std::max(longest, latencies[m]);
      ++count;
    }
    if (count > 0) slowest = std::max(slowest, m == first ? sum / count : longest);
  }
  return slowest;
}

}  // namespace

CollectiveUse PermuteUse(const configs::Config& config, const CollectiveRequest& request) {
  CollectiveUse use;
  const std::vector<Message> messages = MessagesOf(config, request);
  const LinkLoads loads = LoadsOf(config, messages);
  use.latency = timing::LaunchTime(config.chip) + LatencyOf(config, messages);
  const std::array<double, configs::kDirections> links = loads.SecondsByDirection();
  for (size_t d = 0; d < links.size(); ++d) use.links[d] = FromSeconds(links[d]);
  use.die = FromSeconds(loads.SecondsOnDies());
  use.host = FromSeconds(loads.SecondsBetweenSlices());
  const double busiest = std::max(
      {*std::ranges::max_element(links), loads.SecondsOnDies(), loads.SecondsBetweenSlices()});
  use.rate = busiest > 0
                 ? BytesPerSecond(static_cast<double>(messages[0].per_way.value()) / busiest)
                 : configs::HbmRate(config.chip);
  use.time = FromSeconds(busiest);
  use.time = std::max(use.time, SlowestCopy(config, request));
  // A device reads what it sends and writes what it receives.
  if (request.space == isa::MemorySpace::kHbm) {
    use.hbm = TransferTime(request.operand_bytes * 2, configs::HbmRate(config.chip));
  }
  return use;
}

void AddPermuteBodies(const configs::Config& config, const CollectiveRequest& request,
                      isa::PodProgram& program, Roles& roles) {
  std::vector<Message> messages = MessagesOf(config, request);
  const Ends ends = EndsOf(config, request);
  std::vector<bool> copies(static_cast<size_t>(config.devices()), false);
  for (int64_t device = 0; device < config.devices(); ++device) {
    if (!ends.copies[device]) continue;
    if (request.space == isa::MemorySpace::kHbm && !messages.empty()) {
      messages.push_back(ToItself(device, request.operand_bytes));
    } else {
      copies[device] = true;
    }
  }
  UseAsManyWays(request.operand_bytes, messages);
  FlagTable flags(program);
  const int32_t arrived = flags.For(0, 0);
  std::vector<BodyStage> stages(config.devices());
  std::vector<int32_t> route_of_way;
  for (size_t way = 0; !messages.empty() && way < messages[0].ways.size(); ++way) {
    route_of_way.push_back(AddRoute(RouteOf(config.topology, messages, way), program));
  }
  for (const Message& message : messages) {
    const bool only_sends = !ends.receives[message.source] && message.source != message.target;
    const int32_t left = only_sends ? flags.ForSent() : -1;
    for (const int32_t route : route_of_way) {
      stages[message.source].sends.push_back({.route = route,
                                              .bytes = message.per_way,
                                              .arrival_flag = arrived,
                                              .sent_flag = left,
                                              .from = request.space,
                                              .to = request.space,
                                              .reduce = std::nullopt});
    }
    const auto ways = static_cast<int64_t>(message.ways.size());
    if (only_sends) stages[message.source].waits.push_back({left, ways});
    stages[message.target].waits.push_back({arrived, ways});
  }
  for (int64_t device = 0; device < config.devices(); ++device) {
    const bool gets_zeros = !ends.receives[device] && !ends.copies[device];
    if (gets_zeros || copies[device]) {
      // Zeros come out of VMEM.
      const isa::MemorySpace from = gets_zeros ? isa::MemorySpace::kVmem : request.space;
      stages[device].copies.push_back(
          {.from = from, .to = request.space, .bytes = request.operand_bytes});
    }
    roles.Assign(device, roles.Add({stages[device]}));
  }
}

}  // namespace tpusim::collectives
