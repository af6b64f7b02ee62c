#include "workloads/kernels/placeable_kernel.h"

#include <algorithm>
#include <utility>

#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_time.h"

namespace tpusim::kernels {
namespace {

Bytes HbmBytes(const timing::KernelTraffic& traffic) { return traffic.read + traffic.written; }

}  // namespace

KernelCost CostOf(const configs::ChipParams& chip, const isa::Kernel& kernel) {
  return {timing::LaunchTime(chip, kernel), timing::KernelTime(chip, kernel),
          timing::TrafficOf(kernel), timing::WindowBytes(kernel)};
}

PlaceableKernel::PlaceableKernel(const configs::ChipParams& chip, isa::Kernel kernel,
                                 std::vector<int64_t> array_of_window, size_t operands,
                                 size_t results, isa::MemorySpace space, Builder builder)
    : chip_(chip),
      kernel_(std::move(kernel)),
      array_of_window_(std::move(array_of_window)),
      operands_(operands),
      results_(results),
      space_(space),
      builder_(std::move(builder)),
      saved_(arrays()),
      moved_(arrays()) {
  const KernelCost here = OfThisGrid(std::vector<bool>(arrays(), false));
  const KernelCost there = OfThisGrid(std::vector<bool>(arrays(), true));
  const Bytes bytes = HbmBytes(here.traffic);
  for (size_t array = 0; array < arrays(); ++array) {
    const auto number = static_cast<int64_t>(array);
    if (std::find(array_of_window_.begin(), array_of_window_.end(), number) ==
        array_of_window_.end()) {
      continue;
    }
    std::vector<bool> alone(arrays(), false);
    alone[array] = true;
    const KernelCost one = OfThisGrid(alone);
    moved_[array] = bytes - HbmBytes(one.traffic);
    const double share = bytes > Bytes(0) ? Ratio(moved_[array], bytes) : 0;
    saved_[array] = std::max(
        {Picoseconds(0), here.time - one.time, timing::Scaled(here.time - there.time, share)});
  }
}

const KernelCost& PlaceableKernel::With(const std::vector<bool>& there) {
  const auto known = costs_.find(there);
  if (known != costs_.end()) return known->second;
  const std::optional<KernelCost> built = builder_ ? builder_(there) : std::nullopt;
  return costs_.emplace(there, built ? *built : OfThisGrid(there)).first->second;
}

KernelCost PlaceableKernel::OfThisGrid(const std::vector<bool>& there) const {
  isa::Kernel kernel = kernel_;
  for (size_t w = 0; w < kernel.windows.size(); ++w) {
    const int64_t array = array_of_window_[w];
    if (array < 0 || !there[static_cast<size_t>(array)]) continue;
    if (kernel.windows[w].space == isa::MemorySpace::kHbm) kernel.windows[w].space = space_;
  }
  return CostOf(chip_, kernel);
}

}  // namespace tpusim::kernels
