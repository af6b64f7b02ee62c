#include "models/timing/device_memory.h"

#include "configs/status_macros.h"

namespace tpusim::timing {
namespace {

using configs::ChipParams;

constexpr DeviceMemory kMemories[] = {
    {isa::MemorySpace::kHbm, "hbm", "HBM",
     [](const ChipParams& chip) { return chip.hbm.bytes - chip.hbm.reserved_bytes; }, HbmRate},
    // On-chip memory beside VMEM that some chips have; devices of a chip have a part each.
    {isa::MemorySpace::kCmem, "cmem", "CMEM",
     [](const ChipParams& chip) { return Bytes(chip.cmem.bytes.value() / chip.devices); },
     [](const ChipParams& chip) {
       return chip.cmem.bytes_per_second * (1.0 / static_cast<double>(chip.devices));
     }},
    // Of all cores of the device.
    {isa::MemorySpace::kVmem, "vmem", "VMEM",
     [](const ChipParams& chip) { return chip.vmem.bytes * chip.CoresPerDevice(); }, nullptr},
};

}  // namespace

std::span<const DeviceMemory> DeviceMemories() { return kMemories; }

size_t IndexOf(isa::MemorySpace space) {
  for (size_t i = 0; i < std::size(kMemories); ++i) {
    if (kMemories[i].space == space) return i;
  }
  TPUSIM_CHECK(false, "a device has no such memory");
}

const DeviceMemory& DeviceMemoryOf(isa::MemorySpace space) { return kMemories[IndexOf(space)]; }

BytesPerSecond HbmRate(const ChipParams& chip) {
  return chip.hbm.bytes_per_second * chip.hbm.efficiency;
}

}  // namespace tpusim::timing
