#include "workloads/lowering/collectives/lane.h"

#include "configs/status_macros.h"

namespace tpusim::lowering {
namespace {

timing::LaneTiming TimingOf(const Lane& lane, Picoseconds hop_latency) {
  return {lane.n, lane.rate,
          lane.dcn_latency > Picoseconds(0) ? lane.dcn_latency : hop_latency * lane.hops};
}

}  // namespace

Picoseconds AllGatherTime(const Lane& lane, Bytes shard, Picoseconds hop_latency) {
  TPUSIM_CHECK(lane.shape != Lane::Shape::kScattered, "scattered lanes do not gather");
  if (lane.shape == Lane::Shape::kSwitched) {
    return timing::SwitchedExchange(shard, TimingOf(lane, hop_latency));
  }
  return lane.shape == Lane::Shape::kRing
             ? timing::RingAllGather(shard, TimingOf(lane, hop_latency))
             : timing::LineAllGather(shard, TimingOf(lane, hop_latency));
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

DeviceSteps AllGatherSteps(const Lane& lane, int index, const Pieces& base) {
  TPUSIM_CHECK(lane.shape != Lane::Shape::kScattered, "scattered lanes do not gather");
  if (lane.shape == Lane::Shape::kSwitched) return SwitchedAllGatherSteps(lane, index, base);
  return lane.shape == Lane::Shape::kRing ? RingAllGatherSteps(lane.n, index, base)
                                          : LineAllGatherSteps(lane.n, index, base);
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
  return ScatteredAllToAllSteps(lane.n, index, base);
}

}  // namespace tpusim::lowering
