#include "models/timing/memory_bytes.h"

#include <algorithm>
#include <limits>

#include "models/timing/kernel_timing.h"

namespace tpusim::timing {

MemoryBytes TouchedBy(const isa::Dma& dma) {
  MemoryBytes touched;
  for (const isa::MemorySpace space : {dma.from, dma.to}) {
    if (space != isa::MemorySpace::kVmem) touched.In(space) += dma.bytes;
  }
  return touched;
}

bool IsWrite(const isa::Dma& dma) {
  return dma.to == isa::MemorySpace::kHbm ||
         (dma.to == isa::MemorySpace::kCmem && dma.from == isa::MemorySpace::kVmem);
}

double ShareOf(Bytes touched, Bytes bytes) {
  if (touched == bytes) return touched > Bytes(0) ? 1 : 0;
  return static_cast<double>(touched.value()) / static_cast<double>(bytes.value());
}

BytesPerSecond MoveRate(const configs::ChipParams& chip, const MemoryBytes& touched, Bytes bytes) {
  double rate = std::numeric_limits<double>::infinity();
  if (touched.hbm > Bytes(0)) {
    rate = std::min(rate, HbmRate(chip).value() / ShareOf(touched.hbm, bytes));
  }
  if (touched.cmem > Bytes(0)) {
    rate = std::min(rate, CmemRate(chip).value() / ShareOf(touched.cmem, bytes));
  }
  return BytesPerSecond(rate);
}

BytesPerSecond CmemRate(const configs::ChipParams& chip) {
  return chip.cmem.bytes_per_second * (1.0 / static_cast<double>(chip.devices));
}

Bytes CmemCapacity(const configs::ChipParams& chip) {
  return Bytes(chip.cmem.bytes.value() / chip.devices);
}

}  // namespace tpusim::timing
