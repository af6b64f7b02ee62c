// A kernel whose arrays could be in another memory: what it would cost.
//
// What one array would save is asked of the grid as it is; what the kernel costs with some of
// them there, of a kernel that is built for that.
#ifndef TPUSIM_WORKLOADS_KERNELS_PLACEABLE_KERNEL_H_
#define TPUSIM_WORKLOADS_KERNELS_PLACEABLE_KERNEL_H_

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"
#include "models/timing/kernel_timing.h"

namespace tpusim::kernels {

// Alone on its chip.
struct KernelCost {
  Picoseconds launch{0};  // what its first DMA waits for
  Picoseconds time{0};    // with that
  timing::KernelTraffic traffic;
  Bytes windows{0};  // VMEM that they take

  Bytes moved() const { return traffic.read + traffic.written; }  // in HBM
};
KernelCost CostOf(const configs::ChipParams& chip, const isa::Kernel& kernel);

class PlaceableKernel {
 public:
  // By array, whether it is in the other memory: operands first, then the leaves of the result.
  using Cost = std::function<KernelCost(const std::vector<bool>& there)>;

  // `of_this_grid` is asked here, `built` by With.
  PlaceableKernel(size_t operands, size_t results, const Cost& of_this_grid, Cost built);

  // Remembered.
  const KernelCost& With(const std::vector<bool>& there);

  size_t operands() const { return operands_; }
  size_t arrays() const { return operands_ + results_; }
  // Of what all arrays together would save each has the share of its bytes, or what it
  // saves alone if that is more.
  Picoseconds SavedBy(size_t array) const { return saved_[array]; }
  // What is read or written of it in HBM.
  Bytes MovedOf(size_t array) const { return moved_[array]; }

 private:
  const size_t operands_, results_;
  const Cost built_;
  std::map<std::vector<bool>, KernelCost> costs_;
  std::vector<Picoseconds> saved_;
  std::vector<Bytes> moved_;
};

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_PLACEABLE_KERNEL_H_
