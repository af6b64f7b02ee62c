#include "workloads/collectives/lane.h"

#include "configs/status_macros.h"

namespace tpusim::collectives {
namespace {

timing::LaneTiming TimingOf(const Lane& lane, Picoseconds hop_latency) {
  return {lane.n, lane.rate,
          lane.dcn_latency > Picoseconds(0) ? lane.dcn_latency : hop_latency * lane.hops};
}

}  // namespace

int64_t Lane::Shifted(int64_t position, int64_t delta) const {
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

Picoseconds AllGatherTime(const Lane& lane, Bytes shard, Picoseconds hop_latency, Way way) {
  TPUSIM_CHECK(lane.shape != Lane::Shape::kScattered, "scattered lanes do not gather");
  const timing::LaneTiming timing = TimingOf(lane, hop_latency);
  if (lane.shape == Lane::Shape::kSwitched) return timing::SwitchedExchange(shard, timing);
  if (lane.shape == Lane::Shape::kLine) return timing::LineAllGather(shard, timing);
  return way == Way::kBoth ? timing::RingAllGather(shard, timing)
                           : timing::OneWayRingAllGather(shard, timing);
}

Picoseconds AllToAllTime(const Lane& lane, Bytes block, Picoseconds hop_latency) {
  switch (lane.shape) {
    case Lane::Shape::kRing:
      return timing::RingAllToAll(block, TimingOf(lane, hop_latency));
    case Lane::Shape::kLine:
      return timing::LineAllToAll(block, TimingOf(lane, hop_latency));
    case Lane::Shape::kSwitched:
      return timing::SwitchedExchange(block, TimingOf(lane, hop_latency));
    case Lane::Shape::kScattered:
      break;
  }
  const timing::LaneTiming timing = TimingOf(lane, hop_latency);
  return timing::DirectTransfers(Bytes(CeilDiv(block.value() * lane.busiest, 2)), lane.rate,
                                 timing.step_latency);
}

std::vector<Picoseconds> AllGatherStepTimes(const Lane& lane, Bytes shard, Picoseconds hop_latency,
                                            Way way) {
  if (lane.shape == Lane::Shape::kSwitched) return {AllGatherTime(lane, shard, hop_latency)};
  const Picoseconds hop = TimingOf(lane, hop_latency).step_latency;
  const Picoseconds whole = TransferTime(shard, lane.rate) + hop;
  const bool both = lane.shape == Lane::Shape::kRing && way == Way::kBoth;
  std::vector<Picoseconds> times(both ? (lane.n - 1) / 2 : lane.n - 1, whole);
  if (both && lane.n % 2 == 0) times.push_back(TransferTime(shard / 2, lane.rate) + hop);
  return times;
}

std::vector<Picoseconds> AllToAllStepTimes(const Lane& lane, Bytes block, Picoseconds hop_latency) {
  if (lane.shape != Lane::Shape::kRing) return {AllToAllTime(lane, block, hop_latency)};
  std::vector<Picoseconds> times;
  for (int64_t t = 1; t <= lane.n / 2; ++t) {
    // In halves: what has t or more positions to go, and half of the antipode's.
    const int64_t halves = 2 * ((lane.n - 1) / 2 - t + 1) + (lane.n % 2 == 0 ? 1 : 0);
    times.push_back(TransferTime(block * halves / 2, lane.rate) +
                    TimingOf(lane, hop_latency).step_latency);
  }
  return times;
}

DeviceSteps AllGatherSteps(const Lane& lane, int index, const Pieces& base, Way way) {
  TPUSIM_CHECK(lane.shape != Lane::Shape::kScattered, "scattered lanes do not gather");
  if (lane.shape == Lane::Shape::kSwitched) return SwitchedAllGatherSteps(lane, index, base);
  if (lane.shape == Lane::Shape::kLine) return LineAllGatherSteps(lane.n, index, base);
  return way == Way::kBoth ? RingAllGatherSteps(lane.n, index, base)
                           : OneWayRingAllGatherSteps(lane.n, index, base, way);
}

DeviceSteps AllToAllSteps(const Lane& lane, int index, const Pieces& base) {
  switch (lane.shape) {
    case Lane::Shape::kRing:
      return RingAllToAllSteps(lane.n, index, base);
    case Lane::Shape::kLine:
      return LineAllToAllSteps(lane.n, index, base);
    case Lane::Shape::kSwitched:
      return SwitchedAllToAllSteps(lane, index, base);
    case Lane::Shape::kScattered:
      break;
  }
  return ScatteredAllToAllSteps(lane, index, base);
}

}  // namespace tpusim::collectives
