// Windows that slide over a split dimension.
#ifndef TPUSIM_WORKLOADS_SPMD_OPS_SPATIAL_H_
#define TPUSIM_WORKLOADS_SPMD_OPS_SPATIAL_H_

#include <cstdint>
#include <optional>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/ops/window.h"

namespace tpusim::spmd::ops {

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

}  // namespace tpusim::spmd::ops

#endif  // TPUSIM_WORKLOADS_SPMD_OPS_SPATIAL_H_
