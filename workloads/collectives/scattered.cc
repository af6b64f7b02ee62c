// All-to-all without stops: every block goes straight to its destination over a
// minimum-hop route, in two halves, so that two equally short ways round a ring
// share the load.
#include "workloads/collectives/dimension.h"

namespace tpusim::collectives {

DeviceSteps ScatteredAllToAllSteps(const Dimension& dimension, int index, const Chunks& base) {
  const int64_t at = base.origin[index].first;
  DeviceStep step;
  for (int64_t k = 1; k < dimension.n; ++k) {
    for (const int half : {0, 1}) {
      Chunks out = base;
      out.destination[index] = {dimension.Shifted(at, k), 1};
      out.half = half;
      step.sends.push_back(
          {.dimension = index, .delta = k, .other_way = half == 1, .chunks = {out}});
      Chunks in = base;
      in.origin[index] = {dimension.Shifted(at, -k), 1};
      in.destination[index] = {at, 1};
      in.half = half;
      step.receives.push_back(
          {.dimension = index, .delta = -k, .other_way = half == 1, .chunks = {in}});
    }
  }
  return {step};
}

}  // namespace tpusim::collectives
