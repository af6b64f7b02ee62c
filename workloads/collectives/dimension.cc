#include "workloads/collectives/dimension.h"

#include "configs/status_macros.h"

namespace tpusim::collectives {
namespace {

timing::DimensionTiming TimingOf(const Dimension& dimension, Picoseconds hop_latency) {
  return {dimension.n, dimension.rate,
          dimension.dcn_latency > Picoseconds(0) ? dimension.dcn_latency
                                                 : hop_latency * dimension.hops};
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
  if (dimension.shape == Dimension::Shape::kSwitched)
    return SwitchedAllGatherSteps(dimension, index, base);
  if (dimension.shape == Dimension::Shape::kLine)
    return LineAllGatherSteps(dimension.n, index, base);
  return way == Way::kBoth ? RingAllGatherSteps(dimension.n, index, base)
                           : OneWayRingAllGatherSteps(dimension.n, index, base, way);
}

DeviceSteps AllToAllSteps(const Dimension& dimension, int index, const Chunks& base) {
  switch (dimension.shape) {
    case Dimension::Shape::kRing:
      return RingAllToAllSteps(dimension.n, index, base);
    case Dimension::Shape::kLine:
      return LineAllToAllSteps(dimension.n, index, base);
    case Dimension::Shape::kSwitched:
      return SwitchedAllToAllSteps(dimension, index, base);
    case Dimension::Shape::kScattered:
      break;
  }
  return ScatteredAllToAllSteps(dimension, index, base);
}

}  // namespace tpusim::collectives
