// A kernel whose arrays could be in another memory: what it would cost.
//
// An array moves with all windows on it. What one array would save is asked of the grid as
// it is; what the kernel costs with some of them there, of a kernel that is built for that.
#ifndef TPUSIM_WORKLOADS_KERNELS_PLACEABLE_KERNEL_H_
#define TPUSIM_WORKLOADS_KERNELS_PLACEABLE_KERNEL_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
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
};
KernelCost CostOf(const configs::ChipParams& chip, const isa::Kernel& kernel);

class PlaceableKernel {
 public:
  // Builds the kernel with arrays there; nothing if there is none, and the grid stays.
  using Builder = std::function<std::optional<KernelCost>(const std::vector<bool>& there)>;

  // By window, the number of its array: operands first, then the leaves of the result;
  // -1: of none that could move. The chip must live as long.
  PlaceableKernel(const configs::ChipParams& chip, isa::Kernel kernel,
                  std::vector<int64_t> array_of_window, size_t operands, size_t results,
                  isa::MemorySpace space, Builder builder);

  // By array, whether it is in the other memory. Remembered.
  const KernelCost& With(const std::vector<bool>& there);

  size_t operands() const { return operands_; }
  size_t arrays() const { return operands_ + results_; }
  // Of what all arrays together would save each has the share of its bytes, or what it
  // saves alone if that is more.
  Picoseconds SavedBy(size_t array) const { return saved_[array]; }
  // What is read or written of it in HBM.
  Bytes MovedOf(size_t array) const { return moved_[array]; }

 private:
  KernelCost OfThisGrid(const std::vector<bool>& there) const;

  const configs::ChipParams& chip_;
  const isa::Kernel kernel_;
  const std::vector<int64_t> array_of_window_;
  const size_t operands_, results_;
  const isa::MemorySpace space_;
  const Builder builder_;
  std::map<std::vector<bool>, KernelCost> costs_;
  std::vector<Picoseconds> saved_;
  std::vector<Bytes> moved_;
};

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_PLACEABLE_KERNEL_H_
