#include "workloads/collectives/steps.h"

#include <algorithm>
#include <utility>

namespace tpusim::collectives {

int64_t AtomsOf(const Pieces& pieces, int halves) {
  int64_t atoms = pieces.half == kBothHalves ? halves : 1;
  for (int lane = 0; lane < kMaxLanes; ++lane) {
    if (!pieces.summed) atoms *= pieces.origin[lane].count;
    atoms *= pieces.destination[lane].count;
  }
  return atoms;
}

DeviceSteps Mirrored(const DeviceSteps& steps) {
  DeviceSteps mirrored(steps.rbegin(), steps.rend());
  for (DeviceStep& step : mirrored) {
    std::swap(step.sends, step.receives);
    for (Move& move : step.sends) move.reduce = true;
    for (Move& move : step.receives) move.reduce = true;
  }
  return mirrored;
}

}  // namespace tpusim::collectives
