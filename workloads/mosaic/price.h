// Prices a kernel from its body, as Mosaic gets it.
//
// A kernel runs its body once per point of its grid.
//
//     flops, transcendentals   of the body's operations on vectors, at every point (body.h)
//     bytes                    of the blocks, each time that a window shows another than at the
//                              point before; of the copies that the body starts itself (copies.cc)
//     grid, blocks, products   how it is pipelined: which axes of the grid move which block, and
//                              the matrix products of the body by size and number format
//     stages                   what of the body can run side by side, and what waits for it
//                              (order.h)
//
// What depends on the point only is known at all of them. What depends on data is not: then the
// branches count that are dearest together (branches.h), copies are as large as they can be, and
// what a loop does in one pass is kept apart, under the name "KERNEL/loop.N" ("KERNEL/grid.N" for
// an axis of the grid), until its trip count is stated.
//
// The room answers what a call of a Pallas kernel costs, from the bytecode that it carries; it does
// not know HLO, and `PriceOf` is its entry point. Pricing in the exporter, in Python, was tried and
// rejected: only exports of tpusim had prices then, and the bytecode says all that is needed.
#ifndef TPUSIM_WORKLOADS_MOSAIC_PRICE_H_
#define TPUSIM_WORKLOADS_MOSAIC_PRICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/chip.h"
#include "workloads/kernel_cost.pb.h"
#include "workloads/mosaic/amounts.h"
#include "workloads/mosaic/module.h"
#include "workloads/mosaic/scope.h"

namespace tpusim::mosaic {

// A call, as far as the body does not say it.
struct Call {
  struct Array {
    std::vector<int64_t> shape;
    int64_t element_bytes = 0;
    std::shared_ptr<const Table> table = nullptr;  // its values, if they are known integers
  };
  std::vector<Array> operands, results;
  std::string place;           // "file:line"
  const configs::ChipParams* chip = nullptr;
  Weights weights;
};

// Prices one call, on one device.
// Error (no rule): an operation that nothing is known of.
absl::StatusOr<tpusim::KernelCost> PriceOf(const Module& module, const Call& call);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_PRICE_H_
