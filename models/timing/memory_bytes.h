// How much of a transfer each memory of a device serves.
//
// HBM and CMEM move what they are asked for side by side: a transfer of `bytes`
// that accesses `hbm` in one and `cmem` in the other goes at the rate of the one that
// would take longer, and takes from both in proportion. VMEM limits nothing here
// (loads and stores are slots of a block).
#ifndef TPUSIM_MODELS_TIMING_MEMORY_BYTES_H_
#define TPUSIM_MODELS_TIMING_MEMORY_BYTES_H_

#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"
#include "models/timing/device_memory.h"

namespace tpusim::timing {

struct MemoryBytes {
  Bytes hbm{0}, cmem{0};

  Bytes Total() const { return hbm + cmem; }
  bool empty() const { return hbm == Bytes(0) && cmem == Bytes(0); }
  // `space` is one of kRatedSpaces.
  Bytes& In(isa::MemorySpace space) { return space == isa::MemorySpace::kCmem ? cmem : hbm; }
  Bytes In(isa::MemorySpace space) const { return space == isa::MemorySpace::kCmem ? cmem : hbm; }

  friend MemoryBytes operator+(const MemoryBytes& a, const MemoryBytes& b) {
    return {a.hbm + b.hbm, a.cmem + b.cmem};
  }
  friend MemoryBytes operator*(const MemoryBytes& a, int64_t n) { return {a.hbm * n, a.cmem * n}; }
  MemoryBytes& operator+=(const MemoryBytes& other) { return *this = *this + other; }
};

// The same of a transfer that is under way.
struct MemoryShares {
  double hbm = 0, cmem = 0;

  double In(isa::MemorySpace space) const { return space == isa::MemorySpace::kCmem ? cmem : hbm; }
};

// A copy reads one memory and writes the other, or the same one twice over.
MemoryBytes AccessedBy(const isa::Dma& dma);
// Whether what is written decides the start latency: everything else reads HBM or
// CMEM first.
bool IsWrite(const isa::Dma& dma);

// Bytes that a memory moves per byte of the transfer; 0 for nothing of nothing.
double ShareOf(Bytes accessed, Bytes bytes);
// Rate of a transfer that is alone. It must access HBM or CMEM.
BytesPerSecond MoveRate(const configs::ChipParams& chip, const MemoryBytes& accessed, Bytes bytes);

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_MEMORY_BYTES_H_
