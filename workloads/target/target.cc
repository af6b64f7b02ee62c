#include "workloads/target/target.h"

#include <algorithm>

namespace tpusim::target {

std::vector<int64_t> Target::TileOf(const hlo::Shape& array) const {
  const int64_t lanes = chip().vpu.lanes, sublanes = chip().vpu.sublanes;
  // Elements that share the 32 bits of one lane: rows of narrow types come
  // together, T(8,128)(2,1) and T(32,128)(4,1).
  const int64_t bits = hlo::BitWidth(array.element_type);
  const int64_t packing = bits > 0 && bits < 32 ? 32 / bits : 1;
  if (array.dims.empty()) return {lanes * std::min<int64_t>(packing, 2)};
  if (array.rank() == 1) {
    // T(128), T(256), T(512), T(1024): one row of lanes up to a whole register.
    int64_t tile = lanes * packing;
    while (tile < array.dims[0] && tile < lanes * sublanes) tile *= 2;
    return {tile};
  }
  const int64_t second = array.dims[array.dims.size() - 2];
  // 16-bit rows in eights, 8-bit rows in up to 32, 4-bit rows in up to 64.
  const int64_t most = packing > 2 ? sublanes * packing : sublanes;
  int64_t rows = packing;
  while (rows < second && rows < most) rows *= 2;
  return {rows, lanes};
}

Bytes Target::PaddedSize(const hlo::Shape& shape) const {
  if (shape.IsTuple()) {
    Bytes sum(0);
    for (const hlo::Shape& leaf : shape.tuple) sum += PaddedSize(leaf);
    return sum;
  }
  if (!shape.IsArray()) return Bytes(0);
  const std::vector<int64_t> tile = TileOf(shape);
  int64_t elements = 1;
  for (size_t d = 0; d < shape.dims.size(); ++d) {
    const size_t from_minor = shape.dims.size() - 1 - d;
    const int64_t unit = from_minor < tile.size() ? tile[tile.size() - 1 - from_minor] : 1;
    elements *= RoundUp(std::max<int64_t>(shape.dims[d], 0), unit);
  }
  if (shape.dims.empty()) elements = tile[0];
  return Bytes(CeilDiv(elements * hlo::BitWidth(shape.element_type), 8));
}

}  // namespace tpusim::target
