// Products whose result is an operand of the product that a kernel is around.
//
// Modules of the TPU compiler have them where few rows go through two matrices of weights (the MLP
// of a decode step): what the first product makes of a block is multiplied there and then. Its rows
// or columns are those of the operand that it makes, so its own operands move as that does, and it
// has the arrays before the kernel's product has them.
#ifndef TPUSIM_WORKLOADS_KERNELS_TILING_INNER_PRODUCTS_H_
#define TPUSIM_WORKLOADS_KERNELS_TILING_INNER_PRODUCTS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/kernels/view/kernel_view.h"
#include "workloads/kernels/view/product.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// A dimension of the kernel's product in its grid.
struct BlockOfDimension {
  int64_t extent = 1;
  int64_t block = 1;  // of it in a full step
  uint32_t bit = 0;   // of the grid, as windows move with it
};

struct BlockOfProduct {
  BlockOfDimension rows, depth, columns;
  int64_t batch = 1, batch_block = 1;  // in all, and of a step
  uint32_t batch_bit = 0;
};

class InnerProducts {
 public:
  // Finds those in front of `dot`, whose operand `weights` stays in the arrays.
  static absl::StatusOr<InnerProducts> Of(const KernelView& view, const hlo::Instruction& dot,
                                          int weights, const target::Target& target);

  // Whether the input of the kernel is an operand of such a product.
  bool Takes(int input) const { return dimension_.contains(input); }
  // Returns the window of such an input, of `bytes` in all: the part that a step has of the
  // dimension that it shares with an operand of the kernel's product.
  isa::Window WindowOf(int input, Bytes bytes, isa::MemorySpace space,
                       const BlockOfProduct& block) const;
  // Returns how long they have the arrays in one step.
  Cycles TimeOf(const BlockOfProduct& block, const configs::ChipParams& chip) const;

 private:
  enum class Dimension { kRows, kDepth, kColumns };
  struct Inner {
    Product product;
    bool rows = false;  // makes the rows of the kernel's product, not its weights
  };

  std::vector<Inner> inner_;
  std::map<int, Dimension> dimension_;  // by input
};

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_TILING_INNER_PRODUCTS_H_
