#include "models/timing/memory_bytes.h"

#include <algorithm>
#include <limits>

#include "configs/memory.h"

namespace tpusim::timing {

MemoryBytes AccessedBy(const isa::Dma& dma) {
  MemoryBytes accessed;
  for (const isa::MemorySpace space : {dma.from, dma.to}) {
    if (IsRated(space)) accessed.In(space) += dma.bytes;
  }
  return accessed;
}

bool IsWrite(const isa::Dma& dma) {
  return dma.to == isa::MemorySpace::kHbm || (IsRated(dma.to) && !IsRated(dma.from));
}

double ShareOf(Bytes accessed, Bytes bytes) {
  if (accessed == bytes) return accessed > Bytes(0) ? 1 : 0;
  return static_cast<double>(accessed.value()) / static_cast<double>(bytes.value());
}

BytesPerSecond MoveRate(const configs::ChipParams& chip, const MemoryBytes& accessed, Bytes bytes) {
  double rate = std::numeric_limits<double>::infinity();
  for (const isa::MemorySpace space : configs::kRatedSpaces) {
    if (accessed.In(space) == Bytes(0)) continue;
    rate = std::min(
        rate, configs::MemoryOf(space).rate(chip).value() / ShareOf(accessed.In(space), bytes));
  }
  return BytesPerSecond(rate);
}

}  // namespace tpusim::timing
