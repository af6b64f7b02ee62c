// The steps of a kernel over rows in groups.
#ifndef TPUSIM_WORKLOADS_KERNELS_TILING_RAGGED_STEPS_H_
#define TPUSIM_WORKLOADS_KERNELS_TILING_RAGGED_STEPS_H_

#include <cstddef>

#include "configs/chip.h"
#include "models/isa/program.h"
#include "workloads/kernels/view/ragged_tiling.h"

namespace tpusim::kernels {

// Makes the steps along the rows of a kernel around a product, which has one for each tile, those of
// its groups. `rows` and `depth` are dimensions of its grid. Where the depth is whole, a block that
// the next step needs again is not copied again: a matrix is read once for all steps of its group, a
// tile of rows once for all of its groups. So are results, however deep. Adds the mask that chooses
// the rows of the group.
void StepThroughGroups(const RaggedTiling& tiling, const configs::ChipParams& chip, size_t rows,
                       size_t depth, isa::Kernel* kernel);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_TILING_RAGGED_STEPS_H_
