#include "workloads/collectives/dimension.h"

#include <iterator>

#include "configs/status_macros.h"

namespace tpusim::collectives {
namespace {

timing::DimensionTiming TimingOf(const Dimension& dimension, Picoseconds hop_latency) {
  return {dimension.n, dimension.rate,
          dimension.dcn_latency > Picoseconds(0) ? dimension.dcn_latency
                                                 : hop_latency * dimension.hops};
}

// Neighbours pass on what the last step brought: round a ring both ways at once, where an even one
// ends with the two halves of the antipode's shard, or one way only, which takes twice as many
// steps; along a line both ways, each on its own links. What reaches an end stops there, so the
// ends do less than the middle.
DeviceSteps PassedOn(const Dimension& dimension, int index, const Chunks& base, Way way) {
  const int64_t n = dimension.n, at = base.origin[index].first;
  const bool line = dimension.shape == Dimension::Shape::kLine;
  if (line) way = Way::kBoth;
  const auto exists = [&](int64_t position) { return !line || (position >= 0 && position < n); };
  const auto shard_of = [&](int64_t origin, int half) {
    Chunks chunks = base;
    chunks.origin[index] = {dimension.Shifted(origin, 0), 1};
    chunks.half = half;
    return std::vector<Chunks>{chunks};
  };
  DeviceSteps steps(line || way != Way::kBoth ? n - 1 : n / 2);
  for (int64_t t = 1; t <= std::ssize(steps); ++t) {
    DeviceStep& step = steps[t - 1];
    const bool halved = !line && way == Way::kBoth && 2 * t == n;
    for (const int64_t sign : {+1, -1}) {
      if (way != Way::kBoth && sign != SignOf(way)) continue;
      const int half = !halved ? kBothHalves : sign > 0 ? 0 : 1;
      // What travels this way is t-1 positions from home here, and t at the next.
      const int64_t sent = at - sign * (t - 1), received = at - sign * t;
      if (exists(sent) && exists(at + sign)) {
        step.sends.push_back({.dimension = index, .delta = sign, .chunks = shard_of(sent, half)});
      }
      if (exists(received)) {
        step.receives.push_back(
            {.dimension = index, .delta = -sign, .chunks = shard_of(received, half)});
      }
    }
  }
  return steps;
}

// Steps that pass on blocks: every member of a ring passes on all that has to go farther.
DeviceSteps BlocksPassedOn(const Dimension& dimension, int index, const Chunks& base) {
  const int64_t n = dimension.n, at = base.origin[index].first;
  const int64_t full = (n - 1) / 2;
  // What travels `way`, left `origin`, and has made `made` hops before arriving
  // at the next position: everything for `made` positions away and farther.
  const auto cargo = [&](int64_t origin, int64_t way, int64_t made) {
    std::vector<Chunks> all;
    Chunks chunks = base;
    const auto wrapped = [&](int64_t position) { return dimension.Shifted(position, 0); };
    chunks.origin[index] = {wrapped(origin), 1};
    if (made <= full) {
      chunks.destination[index] = {wrapped(way > 0 ? origin + made : origin - full),
                                   full - made + 1};
      all.push_back(chunks);
    }
    if (n % 2 == 0) {
      chunks.destination[index] = {wrapped(origin + n / 2), 1};
      chunks.half = way > 0 ? 0 : 1;
      all.push_back(chunks);
    }
    return all;
  };
  DeviceSteps steps(n / 2);
  for (int64_t t = 1; t <= n / 2; ++t) {
    for (const int64_t way : {+1, -1}) {
      steps[t - 1].sends.push_back(
          {.dimension = index, .delta = way, .chunks = cargo(at - way * (t - 1), way, t)});
      steps[t - 1].receives.push_back(
          {.dimension = index, .delta = -way, .chunks = cargo(at - way * t, way, t)});
    }
  }
  return steps;
}

// One step, in which everything goes straight to its destination. Along a line over several links:
// passing on block by block would keep the link in the middle waiting for what the far end has not
// sent yet, and take twice as long. Between scattered positions over minimum-hop routes, in two
// halves, so that two equally short ways round a ring share the load. Where all positions do the
// same, the others are counted round from here, and the sender is as far behind as the receiver is
// ahead; else the two swap.
DeviceSteps DirectSteps(const Dimension& dimension, int index, const Chunks& base, bool gathers) {
  const int64_t at = base.origin[index].first;
  const bool round = dimension.Symmetric();
  std::vector<int> halves = {kBothHalves};
  if (dimension.shape == Dimension::Shape::kScattered) halves = {0, 1};
  DeviceStep step;
  for (int64_t i = 0; i < dimension.n; ++i) {
    const int64_t receiver = round ? i : i - at, sender = round ? -i : receiver;
    if (receiver == 0) continue;
    for (const int half : halves) {
      Chunks out = base, in = base;
      out.half = in.half = half;
      in.origin[index] = {dimension.Shifted(at, sender), 1};
      if (!gathers) {
        out.destination[index] = {dimension.Shifted(at, receiver), 1};
        in.destination[index] = {at, 1};
      }
      const bool other_way = half == 1;
      step.sends.push_back(
          {.dimension = index, .delta = receiver, .other_way = other_way, .chunks = {out}});
      step.receives.push_back(
          {.dimension = index, .delta = sender, .other_way = other_way, .chunks = {in}});
    }
  }
  return {step};
}

}  // namespace

int64_t Dimension::Shifted(int64_t position, int64_t delta) const {
  if (extents.empty()) return ((position + delta) % n + n) % n;
  // Coordinate by coordinate, each modulo its extent; backwards is the inverse.
  const int64_t sign = delta < 0 ? -1 : 1;
  int64_t left = delta * sign, result = 0, weight = 1;
  for (const int64_t extent : extents) {
    const int64_t moved = position % extent + sign * (left % extent) + extent;
    result += moved % extent * weight;
    weight *= extent;
    position /= extent;
    left /= extent;
  }
  return result;
}

Picoseconds AllGatherTime(const Dimension& dimension, Bytes shard, Picoseconds hop_latency,
                          Way way) {
  TPUSIM_CHECK(dimension.shape != Dimension::Shape::kScattered,
               "scattered dimensions do not gather");
  const timing::DimensionTiming timing = TimingOf(dimension, hop_latency);
  if (dimension.shape == Dimension::Shape::kSwitched)
    return timing::SwitchedExchange(shard, timing);
  if (dimension.shape == Dimension::Shape::kLine) return timing::LineAllGather(shard, timing);
  return way == Way::kBoth ? timing::RingAllGather(shard, timing)
                           : timing::OneWayRingAllGather(shard, timing);
}

Picoseconds AllToAllTime(const Dimension& dimension, Bytes block, Picoseconds hop_latency) {
  switch (dimension.shape) {
    case Dimension::Shape::kRing:
      return timing::RingAllToAll(block, TimingOf(dimension, hop_latency));
    case Dimension::Shape::kLine:
      return timing::LineAllToAll(block, TimingOf(dimension, hop_latency));
    case Dimension::Shape::kSwitched:
      return timing::SwitchedExchange(block, TimingOf(dimension, hop_latency));
    case Dimension::Shape::kScattered:
      break;
  }
  const timing::DimensionTiming timing = TimingOf(dimension, hop_latency);
  return timing::DirectTransfers(Bytes(CeilDiv(block.value() * dimension.busiest, 2)),
                                 dimension.rate, timing.step_latency);
}

std::vector<Picoseconds> AllGatherStepTimes(const Dimension& dimension, Bytes shard,
                                            Picoseconds hop_latency, Way way) {
  if (dimension.shape == Dimension::Shape::kSwitched)
    return {AllGatherTime(dimension, shard, hop_latency)};
  const Picoseconds hop = TimingOf(dimension, hop_latency).step_latency;
  const Picoseconds whole = TransferTime(shard, dimension.rate) + hop;
  const bool both = dimension.shape == Dimension::Shape::kRing && way == Way::kBoth;
  std::vector<Picoseconds> times(both ? (dimension.n - 1) / 2 : dimension.n - 1, whole);
  if (both && dimension.n % 2 == 0) times.push_back(TransferTime(shard / 2, dimension.rate) + hop);
  return times;
}

std::vector<Picoseconds> AllToAllStepTimes(const Dimension& dimension, Bytes block,
                                           Picoseconds hop_latency) {
  if (dimension.shape != Dimension::Shape::kRing)
    return {AllToAllTime(dimension, block, hop_latency)};
  std::vector<Picoseconds> times;
  for (int64_t t = 1; t <= dimension.n / 2; ++t) {
    // In halves: what has t or more positions to go, and half of the antipode's.
    const int64_t halves = 2 * ((dimension.n - 1) / 2 - t + 1) + (dimension.n % 2 == 0 ? 1 : 0);
    times.push_back(TransferTime(block * halves / 2, dimension.rate) +
                    TimingOf(dimension, hop_latency).step_latency);
  }
  return times;
}

DeviceSteps AllGatherSteps(const Dimension& dimension, int index, const Chunks& base, Way way) {
  TPUSIM_CHECK(dimension.shape != Dimension::Shape::kScattered,
               "scattered dimensions do not gather");
  return dimension.shape == Dimension::Shape::kSwitched
             ? DirectSteps(dimension, index, base, /*gathers=*/true)
             : PassedOn(dimension, index, base, way);
}

DeviceSteps AllToAllSteps(const Dimension& dimension, int index, const Chunks& base) {
  return dimension.shape == Dimension::Shape::kRing
             ? BlocksPassedOn(dimension, index, base)
             : DirectSteps(dimension, index, base, /*gathers=*/false);
}

}  // namespace tpusim::collectives
