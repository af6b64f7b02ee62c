#include "workloads/kernels/view/ragged_tiling.h"

#include <algorithm>
#include <climits>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>

#include "configs/units.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/hlo/ir/shape.h"
#include "workloads/mosaic/grouped.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Shape;

// Sizes that libtpu 0.0.42 wrote into `ragged_dot_tiling` of 37 products on v5e, v5p, v6e and v7x
// (256 to 14336 deep, 512 to 7168 columns) are those of this rule, all of them: as many rows as an
// array has; the depth whole, or as much of it as fits beside one array's columns; then as many
// columns as fit. What is to fit are two buffers of each block, 32 bits of result and of mask for
// each place of a tile, in the part of VMEM that is kept for windows less 8 MiB.
class Tiles {
 public:
  Tiles(const Instruction& product, const target::Target& target)
      : room_((target.chip().vmem.reserved_bytes.value() - kKept) * CHAR_BIT),
        in_(hlo::BitWidth(product.operand(0)->shape().element_type)),
        out_(hlo::BitWidth(product.shape().element_type)) {}

  bool Fit(int64_t rows, int64_t depth, int64_t columns) const {
    constexpr int64_t kBuffers = 2;
    constexpr int64_t kWords = 2 * 32;  // number: bits of a result and a mask in registers
    const int64_t in = kBuffers * in_ * (rows * depth + depth * columns);
    return in + (kBuffers * out_ + kWords) * rows * columns < room_;
  }

  // Returns the largest multiple of `unit`, at most `most` rounded up, that `fits`; at least a unit.
  template <typename Fits>
  static int64_t Most(int64_t most, int64_t unit, const Fits& fits) {
    int64_t units = CeilDiv(most, unit);
    while (units > 1 && !fits(units * unit)) --units;
    return std::min(most, units * unit);
  }

 private:
  static constexpr int64_t kKept = int64_t{8} << 20;  // number: see above
  const int64_t room_, in_, out_;  // bits
};

}  // namespace

std::optional<RaggedTiling> RaggedTilingOf(const Instruction& product,
                                           const target::Target& target) {
  if (product.opcode() != hlo::Opcode::kRaggedDot) return std::nullopt;
  const Shape &left = product.operand(0)->shape(), &right = product.operand(1)->shape();
  const hlo::DotDims dims = hlo::GetDotDims(product);
  const int64_t rank = product.shape().rank();
  // number: dimensions of a matrix
  const bool matrices = rank == 2 && left.rank() == rank && right.rank() == rank + 1 &&
                        dims.lhs_batch.empty() && dims.lhs_contracting.size() == 1;
  if (!matrices || dims.lhs_contracting[0] == hlo::RaggedDimension(product)) return std::nullopt;
  const int64_t depth = left.dims[1], columns = product.shape().dims[1], all = left.dims[0];
  const configs::ChipParams& chip = target.chip();
  const Tiles tiles(product, target);
  RaggedTiling tiling;
  tiling.rows = std::min(chip.mxu.rows, RoundUp(all, chip.vpu.sublanes));
  tiling.depth = Tiles::Most(depth, chip.mxu.rows, [&](int64_t d) {
    return tiles.Fit(tiling.rows, d, std::min(columns, chip.mxu.columns));
  });
  tiling.columns = Tiles::Most(columns, chip.mxu.columns, [&](int64_t c) {
    return tiles.Fit(tiling.rows, tiling.depth, c);
  });
  tiling.all_rows = all;
  tiling.groups = std::max<int64_t>(1, product.operand(2)->shape().ElementCount());
  const auto sizes = hlo::RaggedSizes(product);
  if (sizes) {
    tiling.all_rows =
        std::max<int64_t>(1, std::accumulate(sizes->begin(), sizes->end(), int64_t{0}));
    tiling.groups = std::max<int64_t>(
        1, std::ranges::count_if(*sizes, [](int64_t size) { return size > 0; }));
  }
  tiling.tiles = CeilDiv(tiling.all_rows, tiling.rows);
  const bool differ =
      sizes && std::ranges::adjacent_find(*sizes, std::not_equal_to<>()) != sizes->end();
  tiling.steps = tiling.tiles + tiling.groups - 1;
  if (differ) {
    mosaic::GroupedProduct grouped;
    grouped.rows = tiling.all_rows;
    grouped.tile = tiling.rows;
    grouped.groups = grouped.all_groups = std::ssize(*sizes);
    tiling.steps = std::ssize(mosaic::StepsOf(grouped, *sizes).tiles);
  }
  return tiling;
}

}  // namespace tpusim::kernels
