// Tells the tiles and the steps of the library kernel that a ragged product becomes.
//
// The TPU compiler does not tile a product of rows in groups, each with a matrix of its own, itself:
// it calls a Mosaic kernel (`ragged-dot-none`, with `ragged_dot_tiling` beside it) whose grid is the
// columns, a step for each tile of rows and group that has rows in it, and the depth. A tile that two
// groups share has a step for each of them, and a mask chooses the rows that are written.
#ifndef TPUSIM_WORKLOADS_KERNELS_VIEW_RAGGED_TILING_H_
#define TPUSIM_WORKLOADS_KERNELS_VIEW_RAGGED_TILING_H_

#include <cstdint>
#include <optional>

#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

struct RaggedTiling {
  int64_t rows = 0, depth = 0, columns = 0;  // of a tile
  int64_t all_rows = 0;                      // of all groups
  int64_t tiles = 0;                         // of these
  int64_t groups = 0;                        // that have rows
  int64_t steps = 0;                         // tiles, each once for each of its groups
};

// Returns the tiles of a ragged product of rows; nothing for one that sums over its groups or has a
// batch, which become other kernels. Sizes that are not stated, and those that are equal, end no
// group with a tile: sizes that are data do so by chance only.
std::optional<RaggedTiling> RaggedTilingOf(const hlo::Instruction& product,
                                           const target::Target& target);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_VIEW_RAGGED_TILING_H_
