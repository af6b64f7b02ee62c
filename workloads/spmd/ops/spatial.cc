#include "workloads/spmd/ops/spatial.h"

#include "configs/units.h"

namespace tpusim::spmd::ops {

// Element e is at e * base_dilation + padding_low; position p covers what lies
// from p * stride on.
std::optional<SpatialWindow> SpatialWindowOf(const hlo::WindowDim& window, int64_t dim,
                                             int64_t size, int64_t positions,
                                             const sharding::Axes& axes) {
  const int64_t shards = Product(axes), part = CeilDiv(positions, shards);
  const int64_t span = (part - 1) * window.stride + (window.size - 1) * window.window_dilation + 1;
  const int64_t step = part * window.stride, holes = window.base_dilation;
  SpatialWindow result{{dim, axes, size, CeilDiv(size, shards), step, -window.padding_low, span},
                       window};
  result.local.padding_low = result.local.padding_high = 0;
  if (holes == 1) return result;
  if (step % holes != 0) return std::nullopt;
  const int64_t low = window.padding_low;
  const int64_t first = low <= 0 ? CeilDiv(-low, holes) : -(low / holes);
  const int64_t at = low + first * holes;  // of that element, in [0, holes)
  if (at >= span) return std::nullopt;
  result.fetched.step = step / holes;
  result.fetched.offset = first;
  result.fetched.width = (span - 1 - at) / holes + 1;
  result.local.padding_low = at;
  result.local.padding_high = span - at - ((result.fetched.width - 1) * holes + 1);
  return result;
}

}  // namespace tpusim::spmd::ops
