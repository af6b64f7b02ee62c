#include "workloads/kernels/placeable_kernel.h"

#include <algorithm>
#include <utility>

#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_time.h"

namespace tpusim::kernels {

KernelCost CostOf(const configs::ChipParams& chip, const isa::Kernel& kernel) {
  return {timing::LaunchTime(chip, kernel), timing::KernelTime(chip, kernel),
          timing::TrafficOf(kernel), timing::WindowBytes(kernel)};
}

PlaceableKernel::PlaceableKernel(size_t operands, size_t results, const Cost& of_this_grid,
                                 Cost built)
    : operands_(operands),
      results_(results),
      built_(std::move(built)),
      saved_(arrays()),
      moved_(arrays()) {
  const KernelCost here = of_this_grid(std::vector<bool>(arrays(), false));
  const KernelCost there = of_this_grid(std::vector<bool>(arrays(), true));
  const Bytes bytes = here.moved();
  for (size_t array = 0; array < arrays(); ++array) {
    std::vector<bool> alone(arrays(), false);
    alone[array] = true;
    const KernelCost one = of_this_grid(alone);
    moved_[array] = bytes - one.moved();
    const double share = bytes > Bytes(0) ? Ratio(moved_[array], bytes) : 0;
    saved_[array] = std::max(
        {Picoseconds(0), here.time - one.time, timing::Scaled(here.time - there.time, share)});
  }
}

const KernelCost& PlaceableKernel::With(const std::vector<bool>& there) {
  const auto known = costs_.find(there);
  return known != costs_.end() ? known->second : costs_.emplace(there, built_(there)).first->second;
}

}  // namespace tpusim::kernels
