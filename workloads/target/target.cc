#include "workloads/target/target.h"

#include <algorithm>
#include <utility>

namespace tpusim::target {

std::vector<int64_t> Target::TileOf(const hlo::Shape& array) const {
  const int64_t lanes = chip().vpu.lanes, sublanes = chip().vpu.sublanes;
  // Elements that share the 32 bits of one lane: rows of narrow types come
  // together, T(8,128)(2,1) and T(32,128)(4,1).
  const int64_t bits = hlo::BitWidth(array.element_type);
  const int64_t packing = bits > 0 && bits < 32 ? 32 / bits : 1;
  if (array.dims.empty()) return {lanes * packing};
  if (array.rank() == 1) {
    // T(128), T(256), T(512), T(1024): one row of lanes up to a whole register.
    int64_t tile = lanes * packing;
    while (tile < array.dims[0] && tile < lanes * sublanes) tile *= 2;
    return {tile};
  }
  const int64_t second = array.dims[static_cast<size_t>(hlo::MinorDimension(array, 1))];
  // Rows in eights, fewer if there are fewer. Whole registers of packed rows, 32 of 8 bits or 64
  // of 4, only where they leave nothing over.
  if (packing > 2 && second > 0 && second % (sublanes * packing) == 0) {
    return {sublanes * packing, lanes};
  }
  int64_t rows = packing;
  while (rows < second && rows < sublanes) rows *= 2;
  return {rows, lanes};
}

std::vector<int64_t> Target::DefaultOrder(const hlo::Shape& array) const {
  const int64_t rank = array.rank();
  std::vector<int64_t> best = hlo::RowMajor(rank);
  if (rank < 2) return best;
  Bytes least = PaddedSize(hlo::WithOrder(array, best));
  for (int64_t minor = rank - 1; minor >= 0; --minor) {
    for (int64_t second = rank - 1; second >= 0; --second) {
      if (second == minor) continue;
      std::vector<int64_t> order = {minor, second};
      for (int64_t d = rank - 1; d >= 0; --d) {
        if (d != minor && d != second) order.push_back(d);
      }
      const Bytes size = PaddedSize(hlo::WithOrder(array, order));
      if (size >= least) continue;
      least = size;
      best = std::move(order);
    }
  }
  return best;
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
  for (int64_t place = 0; place < shape.rank(); ++place) {
    const int64_t extent = shape.dims[static_cast<size_t>(hlo::MinorDimension(shape, place))];
    const size_t from_minor = static_cast<size_t>(place);
    const int64_t unit = from_minor < tile.size() ? tile[tile.size() - 1 - from_minor] : 1;
    elements *= RoundUp(std::max<int64_t>(extent, 0), unit);
  }
  if (shape.dims.empty()) elements = tile[0];
  return Bytes(CeilDiv(elements * hlo::BitWidth(shape.element_type), 8));
}

}  // namespace tpusim::target
