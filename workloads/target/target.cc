#include "workloads/target/target.h"

#include <algorithm>
#include <utility>

#include "configs/memory.h"

namespace tpusim::target {
namespace {

// Returns the tile of arrays with two dimensions or more of elements of `bits` bits.
std::vector<int64_t> TileOfRows(const configs::ChipParams& chip, int64_t bits, int64_t second) {
  const int64_t lanes = chip.vpu.lanes, sublanes = chip.vpu.sublanes;
  const int64_t packing = bits > 0 && bits < 32 ? 32 / bits : 1;
  // Rows in eights, fewer if there are fewer. Whole registers of packed rows, 32 of 8 bits or 64
  // of 4, only where they leave nothing over.
  if (packing > 2 && second > 0 && second % (sublanes * packing) == 0) {
    return {sublanes * packing, lanes};
  }
  int64_t rows = packing;
  while (rows < second && rows < sublanes) rows *= 2;
  return {rows, lanes};
}

}  // namespace

const configs::Memory& Target::FastMemory() const {
  for (const configs::Memory& memory : configs::kMemories) {
    if (memory.on_chip && memory.planned && memory.capacity(chip()) > Bytes(0)) return memory;
  }
  return configs::MemoryOf(configs::MemorySpace::kVmem);
}

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
  return TileOfRows(chip(), bits, array.dims[static_cast<size_t>(hlo::MinorDimension(array, 1))]);
}

std::vector<int64_t> Target::DefaultOrder(const hlo::Shape& array) const {
  const int64_t rank = array.rank();
  std::vector<int64_t> best = hlo::RowMajor(rank);
  if (rank < 2) return best;
  // The two fastest dimensions are padded to tiles, all others only multiply. So what a pair of
  // them takes follows from their two extents.
  const int64_t bits = hlo::BitWidth(array.element_type);
  if (bits == 0 || array.ElementCount() == 0) return best;
  const auto padded = [&](int64_t minor, int64_t second) {
    const int64_t columns = array.dims[static_cast<size_t>(minor)];
    const int64_t rows = array.dims[static_cast<size_t>(second)];
    const std::vector<int64_t> tile = TileOfRows(chip(), bits, rows);
    return Bytes(array.ElementCount() / columns / rows) *
           (RoundUp(columns, tile[1]) * RoundUp(rows, tile[0]));
  };
  int64_t best_minor = rank - 1, best_second = rank - 2;
  Bytes least = padded(best_minor, best_second);
  for (int64_t minor = rank - 1; minor >= 0; --minor) {
    for (int64_t second = rank - 1; second >= 0; --second) {
      if (second == minor) continue;
      const Bytes size = padded(minor, second);
      if (size >= least) continue;
      least = size;
      best_minor = minor;
      best_second = second;
    }
  }
  best = {best_minor, best_second};
  for (int64_t d = rank - 1; d >= 0; --d) {
    if (d != best_minor && d != best_second) best.push_back(d);
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
    elements = SaturatedProduct(elements, RoundUp(std::max<int64_t>(extent, 0), unit));
  }
  if (shape.dims.empty()) elements = tile[0];
  const int64_t bits = SaturatedProduct(elements, hlo::BitWidth(shape.element_type));
  return Bytes(bits / 8 + (bits % 8 != 0 ? 1 : 0));
}

}  // namespace tpusim::target
