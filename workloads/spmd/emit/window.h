// Moving elements between the shards of one dimension.
//
// Device i (its shard number along some axes) wants `width` elements from
// step * i + offset on, and holds a block of the array: slices, pads,
// convolutions and windows of all kinds come down to this. A device receives
// from its neighbours what it lacks, by collective-permutes: one for every
// distance at which any device finds something. Seen from the start of its own
// block, every device receives the same range, so that it is one program; if that
// is more than it needs, tables say which part of a block goes where.
#ifndef TPUSIM_WORKLOADS_SPMD_EMIT_WINDOW_H_
#define TPUSIM_WORKLOADS_SPMD_EMIT_WINDOW_H_

#include <cstdint>
#include <optional>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/emit/builder.h"

namespace tpusim::spmd {

struct Window {
  int64_t dim = 0;
  sharding::Axes axes;  // that split the dimension
  int64_t size = 0;     // of the whole dimension
  int64_t block = 0;    // of one shard, padding included
  int64_t step = 0, offset = 0, width = 0;
  bool cyclic = false;  // behind the last element comes the first; even blocks only
};

// Every device wants its part of `positions` elements, `stride` apart, from `offset` on.
Window WindowOfParts(int64_t dim, const sharding::Axes& axes, int64_t size, int64_t positions,
                     int64_t offset, int64_t stride = 1);

// A window that slides over a split dimension.
struct SpatialWindow {
  Window fetched;
  hlo::WindowDim local;  // over what is fetched
};

// `positions` window positions over `size` elements, both split over `axes`.
// nullopt: holes between the elements (base dilation) that the shards do not
// have at the same places.
std::optional<SpatialWindow> SpatialWindowOf(const hlo::WindowDim& window, int64_t dim,
                                             int64_t size, int64_t positions,
                                             const sharding::Axes& axes);

// Elements along the dimension that a device receives.
int64_t ReceivedElements(const Window& window);
// Fetches the window; elements outside of the array become the scalar `fill`, with null they are
// arbitrary.
hlo::Instruction* Fetch(Builder& builder, hlo::Instruction* value, const Window& window,
                        hlo::Instruction* fill);

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_EMIT_WINDOW_H_
