// Moving elements between the shards of one dimension.
//
// Device i (its shard number along some axes) wants `width` elements from
// step * i + offset on, and holds a block of the array: slices, pads,
// convolutions and windows of all kinds come down to this. A device receives
// from its neighbours what it lacks, by collective-permutes: one for every
// distance at which any device finds something. Seen from the start of its own
// block, every device receives the same range, so that it is one program; if that
// is more than it needs, tables say which part of a block goes where.
#ifndef TPUSIM_WORKLOADS_SPMD_OPS_WINDOW_H_
#define TPUSIM_WORKLOADS_SPMD_OPS_WINDOW_H_

#include <cstdint>

#include "workloads/spmd/builder.h"

namespace tpusim::spmd::ops {

struct Window {
  int64_t dim = 0;
  sharding::Axes axes;  // that split the dimension
  int64_t size = 0;     // of the whole dimension
  int64_t block = 0;    // of one shard, padding included
  int64_t step = 0, offset = 0, width = 0;
  bool cyclic = false;  // behind the last element comes the first; even blocks only
};

// Elements along the dimension that a device receives.
int64_t ReceivedElements(const Window& window);
// What is outside of the array becomes the scalar `fill`; with null it is anything.
hlo::Instruction* Fetch(Builder& builder, hlo::Instruction* value, const Window& window,
                        hlo::Instruction* fill);

}  // namespace tpusim::spmd::ops

#endif  // TPUSIM_WORKLOADS_SPMD_OPS_WINDOW_H_
