// All-to-all without stops: every block goes straight to its destination over a
// minimum-hop route, in two halves, so that two equally short ways round a ring
// share the load.
#include "workloads/collectives/lane.h"

namespace tpusim::collectives {

DeviceSteps ScatteredAllToAllSteps(const Lane& lane, int index, const Pieces& base) {
  const int64_t at = base.origin[index].first;
  DeviceStep step;
  for (int64_t k = 1; k < lane.n; ++k) {
    for (const int half : {0, 1}) {
      Pieces out = base;
      out.destination[index] = {lane.Shifted(at, k), 1};
      out.half = half;
      step.sends.push_back({.lane = index, .delta = k, .other_way = half == 1, .pieces = {out}});
      Pieces in = base;
      in.origin[index] = {lane.Shifted(at, -k), 1};
      in.destination[index] = {at, 1};
      in.half = half;
      step.receives.push_back({.lane = index, .delta = -k, .other_way = half == 1, .pieces = {in}});
    }
  }
  return {step};
}

}  // namespace tpusim::collectives
