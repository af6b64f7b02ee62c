// Between slices: one step, in which everybody sends to everybody else.
#include "workloads/collectives/lane.h"

namespace tpusim::collectives {
namespace {

// Where the others are, seen from here. On closed lanes counted round from here,
// so that all positions see the same.
std::vector<int64_t> Others(const Lane& lane, int64_t at) {
  std::vector<int64_t> deltas;
  for (int64_t i = 0; i < lane.n; ++i) {
    const int64_t delta = lane.closed ? i : i - at;
    if (delta != 0) deltas.push_back(delta);
  }
  return deltas;
}

// The way back from whoever sends here in the same turn: round a closed lane it is
// the one as far behind as the receiver is ahead, else the two swap.
int64_t SenderAt(const Lane& lane, int64_t delta) { return lane.closed ? -delta : delta; }

int64_t PositionAt(const Lane& lane, int64_t at, int64_t delta) {
  return (at + delta + lane.n) % lane.n;
}

}  // namespace

DeviceSteps SwitchedAllGatherSteps(const Lane& lane, int index, const Pieces& base) {
  const int64_t at = base.origin[index].first;
  DeviceStep step;
  for (const int64_t delta : Others(lane, at)) {
    step.sends.push_back({.lane = index, .delta = delta, .pieces = {base}});
    Pieces in = base;
    in.origin[index] = {PositionAt(lane, at, SenderAt(lane, delta)), 1};
    step.receives.push_back({.lane = index, .delta = SenderAt(lane, delta), .pieces = {in}});
  }
  return {step};
}

DeviceSteps SwitchedAllToAllSteps(const Lane& lane, int index, const Pieces& base) {
  const int64_t at = base.origin[index].first;
  DeviceStep step;
  for (const int64_t delta : Others(lane, at)) {
    Pieces out = base;
    out.destination[index] = {PositionAt(lane, at, delta), 1};
    step.sends.push_back({.lane = index, .delta = delta, .pieces = {out}});
    Pieces in = base;
    in.origin[index] = {PositionAt(lane, at, SenderAt(lane, delta)), 1};
    in.destination[index] = {at, 1};
    step.receives.push_back({.lane = index, .delta = SenderAt(lane, delta), .pieces = {in}});
  }
  return {step};
}

}  // namespace tpusim::collectives
