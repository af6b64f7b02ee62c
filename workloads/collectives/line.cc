// Lines: both directions at once, each on its own links. What reaches an end
// stops there, so the ends do less than the middle.
#include "workloads/collectives/dimension.h"

namespace tpusim::collectives {
namespace {

bool OnLine(int64_t position, int64_t n) { return position >= 0 && position < n; }

}  // namespace

DeviceSteps LineAllGatherSteps(int64_t n, int index, const Chunks& base) {
  const int64_t at = base.origin[index].first;
  const auto shard_of = [&](int64_t origin) {
    Chunks chunks = base;
    chunks.origin[index] = {origin, 1};
    return std::vector<Chunks>{chunks};
  };
  DeviceSteps steps(n - 1);
  for (int64_t t = 1; t <= n - 1; ++t) {
    DeviceStep& step = steps[t - 1];
    for (const int64_t way : {+1, -1}) {
      const int64_t sent = at - way * (t - 1);
      const int64_t received = at - way * t;
      if (OnLine(sent, n) && OnLine(at + way, n)) {
        step.sends.push_back({.dimension = index, .delta = way, .chunks = shard_of(sent)});
      }
      if (OnLine(received, n)) {
        step.receives.push_back({.dimension = index, .delta = -way, .chunks = shard_of(received)});
      }
    }
  }
  return steps;
}

// Straight to each destination over several links: passing on block by block
// would keep the link in the middle waiting for what the far end has not sent
// yet, and take twice as long.
DeviceSteps LineAllToAllSteps(int64_t n, int index, const Chunks& base) {
  const int64_t at = base.origin[index].first;
  DeviceStep step;
  for (int64_t other = 0; other < n; ++other) {
    if (other == at) continue;
    Chunks out = base;
    out.destination[index] = {other, 1};
    step.sends.push_back({.dimension = index, .delta = other - at, .chunks = {out}});
    Chunks in = base;
    in.origin[index] = {other, 1};
    in.destination[index] = {at, 1};
    step.receives.push_back({.dimension = index, .delta = other - at, .chunks = {in}});
  }
  return {step};
}

}  // namespace tpusim::collectives
