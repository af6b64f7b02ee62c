#include "workloads/collectives/steps.h"

#include <algorithm>
#include <utility>

namespace tpusim::collectives {

int64_t CountOf(const Chunks& chunks, int halves) {
  int64_t chunk_bytes = chunks.half == kBothHalves ? halves : 1;
  for (int dimension = 0; dimension < kMaxDimensions; ++dimension) {
    if (!chunks.summed) chunk_bytes *= chunks.origin[dimension].count;
    chunk_bytes *= chunks.destination[dimension].count;
  }
  return chunk_bytes;
}

DeviceSteps Mirrored(const DeviceSteps& steps) {
  DeviceSteps mirrored(steps.rbegin(), steps.rend());
  for (DeviceStep& step : mirrored) {
    std::swap(step.sends, step.receives);
    for (ChunkTransfer& transfer : step.sends) transfer.reduce = true;
    for (ChunkTransfer& transfer : step.receives) transfer.reduce = true;
  }
  return mirrored;
}

}  // namespace tpusim::collectives
