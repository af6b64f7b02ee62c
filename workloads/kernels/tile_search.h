// What both kernel builders share of the search over grids.
#ifndef TPUSIM_WORKLOADS_KERNELS_TILE_SEARCH_H_
#define TPUSIM_WORKLOADS_KERNELS_TILE_SEARCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// Step counts worth trying for an extent of `units` indivisible units: 1, 2, 3,
// 4, 6, 8, 12, ... and the extent itself.
std::vector<int64_t> CandidateCounts(int64_t units, int64_t limit);

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
  const std::optional<isa::Kernel>& best() const { return best_; }
  // Error: none fits; it names the instruction.
  absl::StatusOr<isa::Kernel> Best(const hlo::Instruction& of) const;

 private:
  const target::Target& target_;
  std::optional<isa::Kernel> best_;
  Picoseconds best_time_{0};
};

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_TILE_SEARCH_H_
