// The memories that arrays may live in: an index each, and a row with all that the compiler, the
// machine and reports need to know of it.
//
// Peaks, traffic and usage are arrays by that index (PerMemory). How large and how fast a memory
// is says the chip, in the row's functions. Another memory is another index and row, with its
// parameters in chip.h and chip_schema.cc.
#ifndef TPUSIM_CONFIGS_MEMORY_H_
#define TPUSIM_CONFIGS_MEMORY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "configs/chip.h"
#include "configs/units.h"

namespace tpusim::configs {

enum class MemorySpace { kHbm, kCmem, kVmem, kHost };

struct Memory {
  MemorySpace space;
  std::string_view name;   // of its module, its parameters and its fields in reports
  std::string_view title;  // for people
  int64_t number;          // in layouts: S(1) for VMEM
  bool on_chip;            // faster than HBM: arrays are moved there if that saves time
  // Arrays are planned to fit: each has a buffer from the instruction that makes it to its last
  // reader.
  bool planned;
  bool remote;  // whether transfers between devices read and write it
  // Returns the bytes that the buffers of a program may take, per device; 0: the chip has no such
  // memory; null: no device has it.
  Bytes (*capacity)(const ChipParams& chip);
  // Returns the part of the capacity that arrays may take. Windows of kernels take the rest.
  Bytes (*usable)(const ChipParams& chip);
  // The memory limits transfers; loads from VMEM and stores to it are slots of a block.
  bool rated;
  // Rate at which it serves transfers, reads and writes together, per device; null: not rated.
  BytesPerSecond (*rate)(const ChipParams& chip);
};

// Rate at which HBM serves DMA windows, per device.
inline BytesPerSecond HbmRate(const ChipParams& chip) {
  return chip.hbm.bytes_per_second * chip.hbm.efficiency;
}
inline Bytes HbmCapacity(const ChipParams& chip) {
  return chip.hbm.bytes - chip.hbm.reserved_bytes;
}
// On-chip memory beside VMEM that some chips have; devices of a chip have a part each.
inline Bytes CmemCapacity(const ChipParams& chip) {
  return Bytes(chip.cmem.bytes.value() / chip.devices);
}
inline BytesPerSecond CmemRate(const ChipParams& chip) {
  return chip.cmem.bytes_per_second * (1.0 / static_cast<double>(chip.devices));
}
// Returns the VMEM of all cores of the device.
inline Bytes VmemCapacity(const ChipParams& chip) {
  return chip.vmem.bytes * chip.CoresPerDevice();
}
inline Bytes VmemForArrays(const ChipParams& chip) {
  return chip.vmem.bytes - chip.vmem.reserved_bytes;
}
// The capacity of a memory that is as large as needed.
inline Bytes NoBytes(const ChipParams&) { return Bytes(0); }

// clang-format off
inline constexpr Memory kMemories[] = {
    // space              name    title        number on_chip planned remote capacity      for arrays     rated  rate
    {MemorySpace::kHbm,  "hbm",  "HBM",         0,    false,  true,   true,  HbmCapacity,  HbmCapacity,   true,  HbmRate},
    {MemorySpace::kCmem, "cmem", "CMEM",        3,    true,   true,   false, CmemCapacity, CmemCapacity,  true,  CmemRate},
    {MemorySpace::kVmem, "vmem", "VMEM",        1,    true,   false,  true,  VmemCapacity, VmemForArrays, false, nullptr},
    {MemorySpace::kHost, "host", "host memory", 5,    false,  false,  false, nullptr,      NoBytes,       false, nullptr},
};
// clang-format on
inline constexpr size_t kMemoryCount = std::size(kMemories);

constexpr size_t IndexOf(MemorySpace space) { return static_cast<size_t>(space); }
constexpr const Memory& MemoryOf(MemorySpace space) { return kMemories[IndexOf(space)]; }
static_assert([] {
  for (size_t i = 0; i < kMemoryCount; ++i) {
    if (IndexOf(kMemories[i].space) != i) return false;
  }
  return true;
}());
// HBM for numbers that are not in the table: what they are is another compiler's matter.
constexpr const Memory& MemoryOfNumber(int64_t number) {
  for (const Memory& memory : kMemories) {
    if (memory.number == number) return memory;
  }
  return kMemories[0];
}
// "cmem" of "chip.cmem.bytes"; null if it is no parameter of a memory.
const Memory* MemoryOfParameter(std::string_view path);
// "chip.cmem.bytes_per_second" of a memory that has a rate.
std::string RateParameter(const Memory& memory);
// The shipped chips that have it, "v4 and v4i".
std::string ChipsWith(const Memory& memory);

constexpr bool IsRated(MemorySpace space) { return MemoryOf(space).rated; }
// The memories that have a rate.
inline constexpr auto kRatedSpaces = [] {
  constexpr size_t kCount = std::ranges::count_if(kMemories, &Memory::rated);
  std::array<MemorySpace, kCount> spaces{};
  size_t count = 0;
  for (const Memory& memory : kMemories) {
    if (memory.rated) spaces[count++] = memory.space;
  }
  return spaces;
}();

// A figure of each memory.
template <typename T>
struct PerMemory {
  std::array<T, kMemoryCount> of{};

  T& In(MemorySpace space) { return of[IndexOf(space)]; }
  const T& In(MemorySpace space) const { return of[IndexOf(space)]; }
  T& hbm() { return In(MemorySpace::kHbm); }
  const T& hbm() const { return In(MemorySpace::kHbm); }
};

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_MEMORY_H_
