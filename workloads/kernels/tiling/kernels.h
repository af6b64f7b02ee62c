// From a fusion (or a lone instruction) to a tiled kernel.
//
// A kernel is a grid of blocks over windows in VMEM. Which grid is chosen is a
// search: every candidate that fits the scoped VMEM is timed by
// models/timing's KernelTime, and the fastest wins (ties: fewest steps). So tile
// choice follows from the machine's parameters, not from a table of shapes.
//
// The room answers how an operation becomes a grid of blocks, and what a block costs; `BuildKernel`
// is its entry point, kernel_library.h that of passes, which build each structure once.
#ifndef TPUSIM_WORKLOADS_KERNELS_TILING_KERNELS_H_
#define TPUSIM_WORKLOADS_KERNELS_TILING_KERNELS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/kernels/view/kernel_view.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// Error (no rule): an instruction or dtype without a kernel, named with its
// source line; a kernel whose smallest windows exceed VMEM.
absl::StatusOr<isa::Kernel> BuildKernel(const hlo::Instruction& instruction,
                                        const target::Target& target);

// ---- One per family, each in a file of its own --------------------------------

// Around one product: dots, ragged dots, convolutions, with what is fused to them.
absl::StatusOr<isa::Kernel> BuildDotKernel(const KernelView& view, const target::Target& target);
// Sorting and the k largest.
absl::StatusOr<isa::Kernel> BuildSortKernel(const KernelView& view, const target::Target& target);
// Factorisations, triangular systems and Fourier transforms.
absl::StatusOr<isa::Kernel> BuildAlgebraKernel(const KernelView& view,
                                               const target::Target& target);
// Opaque kernels with a stated cost.
absl::StatusOr<isa::Kernel> BuildCustomKernel(const KernelView& view, const target::Target& target);
// Builds all other kernels: elementwise, reductions, slices, copies, gathers, random numbers.
absl::StatusOr<isa::Kernel> BuildLoopKernel(const KernelView& view, const target::Target& target);

// The search over grids that both kernel builders share.
//
// Step counts worth trying for an extent of `units` indivisible units: 1, 2, 3,
// 4, 6, 8, 12, ... and the extent itself.
std::vector<int64_t> CandidateCounts(int64_t units, int64_t limit);

// Returns how many steps a batch is tried in: whole, halves, quarters ... and one by one.
std::vector<int64_t> BatchCounts(int64_t batch);

// Gives a window one buffer if the grid dimensions that it moves with all have one step, else two.
void FitBuffers(isa::Kernel& kernel);

// A dimension of `extent` in blocks of whole units: block size and grid entry.
struct Split {
  int64_t block = 0;  // elements of a full block
  isa::GridDim dim;
};
Split SplitExtent(int64_t extent, int64_t unit, int64_t count);

// Keeps the fastest kernel that fits.
class FastestKernel {
 public:
  explicit FastestKernel(const target::Target& target) : target_(target) {}
  // Whether the kernel fits.
  bool Offer(const isa::Kernel& kernel, Bytes scratch);
  int64_t improvements() const { return improvements_; }  // how often it became faster
  const std::optional<isa::Kernel>& best() const { return best_; }
  // Error: none fits; it names the instruction.
  absl::StatusOr<isa::Kernel> Best(const hlo::Instruction& of) const;

 private:
  const target::Target& target_;
  int64_t improvements_ = 0;
  std::optional<isa::Kernel> best_;
  Picoseconds best_time_{0};
};

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_TILING_KERNELS_H_
