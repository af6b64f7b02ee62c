// Between slices: one step, in which every member sends to all others.
#include "workloads/collectives/dimension.h"

namespace tpusim::collectives {
namespace {

// Where the others are, seen from here. On closed dimensions counted round from here,
// so that all positions see the same.
std::vector<int64_t> Others(const Dimension& dimension, int64_t at) {
  std::vector<int64_t> deltas;
  for (int64_t i = 0; i < dimension.n; ++i) {
    const int64_t delta = dimension.closed ? i : i - at;
    if (delta != 0) deltas.push_back(delta);
  }
  return deltas;
}

// The way back from the position that sends here in the same turn: round a closed dimension it is
// the one as far behind as the receiver is ahead, else the two swap.
int64_t SenderAt(const Dimension& dimension, int64_t delta) {
  return dimension.closed ? -delta : delta;
}

int64_t PositionAt(const Dimension& dimension, int64_t at, int64_t delta) {
  return (at + delta + dimension.n) % dimension.n;
}

}  // namespace

DeviceSteps SwitchedAllGatherSteps(const Dimension& dimension, int index, const Chunks& base) {
  const int64_t at = base.origin[index].first;
  DeviceStep step;
  for (const int64_t delta : Others(dimension, at)) {
    step.sends.push_back({.dimension = index, .delta = delta, .chunks = {base}});
    Chunks in = base;
    in.origin[index] = {PositionAt(dimension, at, SenderAt(dimension, delta)), 1};
    step.receives.push_back(
        {.dimension = index, .delta = SenderAt(dimension, delta), .chunks = {in}});
  }
  return {step};
}

DeviceSteps SwitchedAllToAllSteps(const Dimension& dimension, int index, const Chunks& base) {
  const int64_t at = base.origin[index].first;
  DeviceStep step;
  for (const int64_t delta : Others(dimension, at)) {
    Chunks out = base;
    out.destination[index] = {PositionAt(dimension, at, delta), 1};
    step.sends.push_back({.dimension = index, .delta = delta, .chunks = {out}});
    Chunks in = base;
    in.origin[index] = {PositionAt(dimension, at, SenderAt(dimension, delta)), 1};
    in.destination[index] = {at, 1};
    step.receives.push_back(
        {.dimension = index, .delta = SenderAt(dimension, delta), .chunks = {in}});
  }
  return {step};
}

}  // namespace tpusim::collectives
