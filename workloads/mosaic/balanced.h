// Fills in the groups of a grouped product whose sizes are data.
//
// The grid of such a kernel (`megablox.gmm`, `tgmm`, the TPU compiler's own `ragged-dot`) has an
// axis with a step for each tile of rows and group that has rows in it. Two tables, read ahead, say
// of each step which tile and which group it is; their length is that of the dearest case, a tile
// more for each group but one. Where the program computes them of data, groups of about equal size
// are a case of which all of this is known: steps, blocks that stay, branches at the ends of groups.
// A kernel that runs a pipeline of its own has the same tables and no such axis.
#ifndef TPUSIM_WORKLOADS_MOSAIC_BALANCED_H_
#define TPUSIM_WORKLOADS_MOSAIC_BALANCED_H_

#include <cstdint>
#include <optional>

#include "workloads/mosaic/module.h"
#include "workloads/mosaic/price.h"

namespace tpusim::mosaic {

// A call with groups of about equal size, and what they make of its grid.
struct BalancedCall {
  Call call;
  std::optional<size_t> axis;  // of the grid, whose length was data; none: a pipeline of its own
  int64_t groups = 0, steps = 0;
};

// Returns nothing if the kernel is no grouped product, or its groups are known.
std::optional<BalancedCall> Balanced(const Module& module, const Call& call);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_BALANCED_H_
