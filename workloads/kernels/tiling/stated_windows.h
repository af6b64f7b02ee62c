// The windows that the TPU compiler has given a kernel.
//
// In a module that it wrote, every kernel has its windows and its grid in the backend config
// (`window_config`), and how many cycles the compiler thinks that it takes. Then nothing is
// searched for: the kernel has that grid, and only its time is the machine's affair.
#ifndef TPUSIM_WORKLOADS_KERNELS_TILING_STATED_WINDOWS_H_
#define TPUSIM_WORKLOADS_KERNELS_TILING_STATED_WINDOWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/units.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

struct StatedWindows {
  // The grid, a dimension of the result after the other as the compiler orders them.
  std::vector<int64_t> iterations;
  std::optional<Cycles> estimate;  // of the compiler; none where it made none
  // The window of a product's result, major to minor as it lies: sublanes and lanes of registers
  // along the two minor dimensions, elements along the others. Empty: not stated.
  std::vector<int64_t> result;

  int64_t Steps() const;
};

// Nothing: the instruction states none, or the text makes no sense.
std::optional<StatedWindows> StatedWindowsOf(const hlo::Instruction& kernel);

// VMEM that the compiler has given the kernel beside the arrays that are there: for its windows and
// what its code keeps (`used_scoped_memory_configs`). Nothing: the instruction does not say.
std::optional<Bytes> StatedVmemOf(const hlo::Instruction& kernel);

// Whether windows as the model counts them fit into the VMEM: how much of it a kernel may take is
// the compiler's affair.
bool FitsStated(const isa::Kernel& kernel, const target::Target& target);

// The grid of a product, by what its blocks are a part of. Positions are those of a convolution,
// which is how the compiler writes products, by the side of the product that they belong to.
struct StatedGrid {
  int64_t columns = 1, rows = 1, depth = 1;
  int64_t column_positions = 1, row_positions = 1, batch_positions = 1;
  bool rows_outside = false;  // of the two, rows step less often
};
// Returns the grid of a convolution in the compiler's order: output features, batch and positions,
// window positions, input features. Where batch and positions stand among each other differs by
// its emitters, and where the output features do in batched products: the window of the result says
// how many blocks each has; a result without a fitting window has the batch first. Nothing: it has another number of dimensions.
std::optional<StatedGrid> GridOfProduct(const hlo::Instruction& product,
                                        const StatedWindows& windows, const target::Target& target);

// The grid of a product with its left operand in the arrays, if the compiler has put it there;
// rows of the instruction's result are columns then. Results leave the arrays with their columns
// along the lanes: that is where rows of the result lie along the lanes (all 115 products of such
// results in 33 modules of the corpus, EmitOutputBatchInLanes..., EmitInputBatchInLanes and
// EmitReduceWindowSublane, and none of 329 others), if the window of the result fits the grid.
// Elsewhere the compiler does not say so, but the window of the result fits the grid that way only.
std::optional<StatedGrid> GridOfExchanged(const hlo::Instruction& convolution,
                                          const StatedWindows& windows, const StatedGrid& grid,
                                          const target::Target& target);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_TILING_STATED_WINDOWS_H_
