// How much of a transfer each memory of a device serves.
//
// HBM and CMEM move what they are asked for side by side: a transfer of `bytes`
// that touches `hbm` in one and `cmem` in the other goes at the rate of whichever
// would take longer, and takes from both in proportion. VMEM limits nothing here
// (loads and stores are slots of a block).
#ifndef TPUSIM_MODELS_TIMING_MEMORY_BYTES_H_
#define TPUSIM_MODELS_TIMING_MEMORY_BYTES_H_

#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"

namespace tpusim::timing {

struct MemoryBytes {
  Bytes hbm{0}, cmem{0};

  Bytes Total() const { return hbm + cmem; }
  bool empty() const { return hbm == Bytes(0) && cmem == Bytes(0); }
  // `space` is one of the two.
  Bytes& In(isa::MemorySpace space) { return space == isa::MemorySpace::kCmem ? cmem : hbm; }

  friend MemoryBytes operator+(const MemoryBytes& a, const MemoryBytes& b) {
    return {a.hbm + b.hbm, a.cmem + b.cmem};
  }
  friend MemoryBytes operator*(const MemoryBytes& a, int64_t n) { return {a.hbm * n, a.cmem * n}; }
  MemoryBytes& operator+=(const MemoryBytes& other) { return *this = *this + other; }
};

// A copy reads one memory and writes the other, or the same one twice over.
MemoryBytes TouchedBy(const isa::Dma& dma);
// Whether what is written decides the start latency: everything else reads HBM or
// CMEM first.
bool IsWrite(const isa::Dma& dma);

// Bytes that a memory moves per byte of the transfer; 0 for nothing of nothing.
double ShareOf(Bytes touched, Bytes bytes);
// Rate of a transfer that is alone. It must touch HBM or CMEM.
BytesPerSecond MoveRate(const configs::ChipParams& chip, const MemoryBytes& touched, Bytes bytes);

// Rate at which CMEM serves transfers, per device; 0: there is none.
BytesPerSecond CmemRate(const configs::ChipParams& chip);
Bytes CmemCapacity(const configs::ChipParams& chip);  // per device

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_MEMORY_BYTES_H_
