// The memories of a device, a row each: how much fits, how fast transfers are served.
//
// The machine builds one module per row that the chip has (chip/memory.h); the compiler
// takes capacities and rates from here too, so that the two cannot drift apart. Another
// memory is another row.
#ifndef TPUSIM_MODELS_TIMING_DEVICE_MEMORY_H_
#define TPUSIM_MODELS_TIMING_DEVICE_MEMORY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"

namespace tpusim::timing {

struct DeviceMemory {
  isa::MemorySpace space;
  std::string_view name;   // of its module
  std::string_view title;  // for people
  // What the buffers of a program may take of it, per device; 0: the chip has none.
  Bytes (*capacity)(const configs::ChipParams& chip);
  // Rate at which it serves transfers, reads and writes together, per device; null: it
  // limits none (loads from VMEM and stores to it are slots of a block).
  BytesPerSecond (*rate)(const configs::ChipParams& chip);
};

// The index of a row is IndexOf its space.
std::span<const DeviceMemory> DeviceMemories();
const DeviceMemory& DeviceMemoryOf(isa::MemorySpace space);
size_t IndexOf(isa::MemorySpace space);

// The memories that have a rate.
inline constexpr std::array kRatedSpaces = {isa::MemorySpace::kHbm, isa::MemorySpace::kCmem};

// A figure of each of them.
template <typename T>
struct PerMemory {
  std::array<T, kRatedSpaces.size()> of{};

  // `space` is one of kRatedSpaces.
  T& In(isa::MemorySpace space) { return of[Place(space)]; }
  const T& In(isa::MemorySpace space) const { return of[Place(space)]; }

 private:
  static size_t Place(isa::MemorySpace space) {
    return static_cast<size_t>(std::ranges::find(kRatedSpaces, space) - kRatedSpaces.begin());
  }
};

inline bool IsRated(isa::MemorySpace space) {
  return std::ranges::find(kRatedSpaces, space) != kRatedSpaces.end();
}

// Rate at which HBM serves DMA windows, per device.
BytesPerSecond HbmRate(const configs::ChipParams& chip);

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_DEVICE_MEMORY_H_
