// Rings in both directions at once. Every member passes on what the last step
// brought; an even ring ends with the two halves of the antipode's shard. One way
// only, a ring takes twice as many steps.
#include "workloads/collectives/dimension.h"

namespace tpusim::collectives {
namespace {

int64_t Wrapped(int64_t position, int64_t n) { return (position % n + n) % n; }

}  // namespace

DeviceSteps RingAllGatherSteps(int64_t n, int index, const Chunks& base) {
  const int64_t at = base.origin[index].first;
  const auto shard_of = [&](int64_t origin, int half) {
    Chunks chunks = base;
    chunks.origin[index] = {Wrapped(origin, n), 1};
    chunks.half = half;
    return std::vector<Chunks>{chunks};
  };
  DeviceSteps steps;
  const int64_t full = (n - 1) / 2;
  for (int64_t t = 1; t <= n / 2; ++t) {
    const bool halved = t > full;
    DeviceStep step;
    for (const int64_t way : {+1, -1}) {
      const int half = !halved ? kBothHalves : way > 0 ? 0 : 1;
      // What travels `way` is t-1 positions from home here, and t at the next.
      step.sends.push_back(
          {.dimension = index, .delta = way, .chunks = shard_of(at - way * (t - 1), half)});
      step.receives.push_back(
          {.dimension = index, .delta = -way, .chunks = shard_of(at - way * t, half)});
    }
    steps.push_back(step);
  }
  return steps;
}

DeviceSteps OneWayRingAllGatherSteps(int64_t n, int index, const Chunks& base, Way way) {
  const int64_t at = base.origin[index].first;
  const int64_t sign = SignOf(way);
  DeviceSteps steps(n - 1);
  for (int64_t t = 1; t <= n - 1; ++t) {
    Chunks out = base, in = base;
    out.origin[index] = {Wrapped(at - sign * (t - 1), n), 1};
    in.origin[index] = {Wrapped(at - sign * t, n), 1};
    steps[t - 1].sends.push_back({.dimension = index, .delta = sign, .chunks = {out}});
    steps[t - 1].receives.push_back({.dimension = index, .delta = -sign, .chunks = {in}});
  }
  return steps;
}

DeviceSteps RingAllToAllSteps(int64_t n, int index, const Chunks& base) {
  const int64_t at = base.origin[index].first;
  const int64_t full = (n - 1) / 2;
  // What travels `way`, left `origin`, and has made `made` hops before arriving
  // at the next position: everything for `made` positions away and farther.
  const auto cargo = [&](int64_t origin, int64_t way, int64_t made) {
    std::vector<Chunks> all;
    Chunks chunks = base;
    chunks.origin[index] = {Wrapped(origin, n), 1};
    if (made <= full) {
      const int64_t count = full - made + 1;
      chunks.destination[index] = {Wrapped(way > 0 ? origin + made : origin - full, n), count};
      all.push_back(chunks);
    }
    if (n % 2 == 0) {
      chunks.destination[index] = {Wrapped(origin + n / 2, n), 1};
      chunks.half = way > 0 ? 0 : 1;
      all.push_back(chunks);
    }
    return all;
  };
  DeviceSteps steps;
  for (int64_t t = 1; t <= n / 2; ++t) {
    DeviceStep step;
    for (const int64_t way : {+1, -1}) {
      step.sends.push_back(
          {.dimension = index, .delta = way, .chunks = cargo(at - way * (t - 1), way, t)});
      step.receives.push_back(
          {.dimension = index, .delta = -way, .chunks = cargo(at - way * t, way, t)});
    }
    steps.push_back(step);
  }
  return steps;
}

}  // namespace tpusim::collectives
