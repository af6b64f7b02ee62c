#include "workloads/target/memory_space.h"

#include <algorithm>

#include "models/timing/device_memory.h"
#include "workloads/hlo/ir/shape.h"

namespace tpusim::target {
namespace {

using configs::ChipParams;

constexpr MemorySpace kSpaces[] = {
    {hlo::kHbmSpace, "HBM", isa::MemorySpace::kHbm, true,
     [](const ChipParams& chip) {
       return timing::DeviceMemoryOf(isa::MemorySpace::kHbm).capacity(chip);
     }},
    // What is not taken by the windows of kernels.
    {hlo::kVmemSpace, "VMEM", isa::MemorySpace::kVmem, false,
     [](const ChipParams& chip) { return chip.vmem.bytes - chip.vmem.scoped_bytes; }},
    {hlo::kCmemSpace, "CMEM", isa::MemorySpace::kCmem, true,
     [](const ChipParams& chip) {
       return timing::DeviceMemoryOf(isa::MemorySpace::kCmem).capacity(chip);
     }},
    // As large as needed.
    {hlo::kHostSpace, "host memory", isa::MemorySpace::kHost, false,
     [](const ChipParams&) { return Bytes(0); }},
};

}  // namespace

std::span<const MemorySpace> MemorySpaces() { return kSpaces; }

const MemorySpace& MemorySpaceOf(int64_t number) {
  const auto* found =
      std::ranges::find_if(kSpaces, [&](const MemorySpace& s) { return s.number == number; });
  return found == std::end(kSpaces) ? kSpaces[0] : *found;
}

}  // namespace tpusim::target
