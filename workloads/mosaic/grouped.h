// Fills in the groups of a grouped product whose sizes are data.
//
// The grid of such a kernel (`megablox.gmm`, `tgmm`, the TPU compiler's own `ragged-dot`) has an
// axis with a step for each tile of rows and group that has rows in it. Two tables, read ahead, say
// of each step which tile and which group it is; their length is that of the dearest case, a tile
// more for each group but one. Where the program computes them of data, sizes of the groups (equal
// ones, or those of a routing) are a case of which all of this is known: steps, blocks that stay,
// branches at the ends of groups.
// A kernel that runs a pipeline of its own has the same tables and no such axis.
//
// Devices that hold a part of the groups each may have the tables of all (`group_offset` of
// megablox): the steps are then those of the groups that are here.
#ifndef TPUSIM_WORKLOADS_MOSAIC_GROUPED_H_
#define TPUSIM_WORKLOADS_MOSAIC_GROUPED_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/mosaic/module.h"
#include "workloads/mosaic/price.h"

namespace tpusim::mosaic {

// A grouped product, as far as its shapes say it.
struct GroupedProduct {
  std::optional<size_t> axis;  // of the grid, whose length is data; none: a pipeline of its own
  int64_t rows = 0, tile = 0;  // on a device, and of a step
  int64_t groups = 0;          // which have a matrix here
  int64_t all_groups = 0;      // of the tables
  bool visits_empty = false;   // a group without rows has a step, too, that clears its result
  // The numbers of the operands that are tables: how many steps there are, the first group that is
  // here, where groups begin; the group and the tile of each step.
  std::vector<size_t> counts, firsts, offsets;
  size_t group_of_step = 0, tile_of_step = 0;
};

// The steps of a grouped product, and where its groups start: each tile once for each group with
// rows in it.
struct GroupSteps {
  std::vector<int64_t> starts, groups, tiles;
};
// `sizes` are of the groups that are here; rows beyond those of the device are left out.
GroupSteps StepsOf(const GroupedProduct& product, const std::vector<int64_t>& sizes);

// Returns nothing if the kernel is no grouped product, or its groups are known.
std::optional<GroupedProduct> FindGroups(const Module& module, const Call& call);

// Returns the rows that the groups here have where all groups of the tables have about as many of
// `rows`, ends off tiles.
std::vector<int64_t> EqualSizes(const GroupedProduct& product, int64_t rows);

// Returns sizes whose groups do not end with a tile. Sizes that are data do so once in as many
// cases as a tile has rows; shares of rows would often, and save the step that two groups share.
std::vector<int64_t> OffTiles(const GroupedProduct& product, std::vector<int64_t> sizes);

// A call whose tables are known.
struct GroupedCall {
  Call call;
  int64_t steps = 0;
};
// `sizes` are of the groups that are here; rows beyond those of the device are left out.
GroupedCall WithSizes(const GroupedProduct& product, const Call& call,
                      const std::vector<int64_t>& sizes);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_GROUPED_H_
