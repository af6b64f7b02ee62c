// Bytes of a transfer by the memory that serves them.
//
// Memories move what they are asked for side by side: a transfer that accesses two of them
// goes at the rate of the one that would take longer, and takes from both in proportion.
// VMEM limits nothing here (loads and stores are slots of a block).
#ifndef TPUSIM_MODELS_TIMING_MEMORY_BYTES_H_
#define TPUSIM_MODELS_TIMING_MEMORY_BYTES_H_

#include <cstdint>
#include <numeric>

#include "configs/chip.h"
#include "configs/memory.h"
#include "configs/units.h"
#include "models/isa/program.h"

namespace tpusim::timing {

struct MemoryBytes : configs::PerMemory<Bytes> {
  Bytes Total() const { return std::accumulate(of.begin(), of.end(), Bytes(0)); }
  bool empty() const { return Total() == Bytes(0); }

  MemoryBytes& operator+=(const MemoryBytes& other) {
    for (size_t i = 0; i < of.size(); ++i) of[i] += other.of[i];
    return *this;
  }
  friend MemoryBytes operator+(MemoryBytes a, const MemoryBytes& b) { return a += b; }
  friend MemoryBytes operator*(MemoryBytes a, int64_t n) {
    for (Bytes& bytes : a.of) bytes = bytes * n;
    return a;
  }
};

// Bytes of a transfer that is under way, as real numbers.
using MemoryShares = configs::PerMemory<double>;

// A copy reads one memory and writes the other, or the same one twice over.
MemoryBytes AccessedBy(const isa::Dma& dma);
// Returns whether the written side decides the start latency: everything else reads a memory with a
// rate first.
bool IsWrite(const isa::Dma& dma);

// Bytes that a memory moves per byte of the transfer; 0 for nothing of nothing.
double ShareOf(Bytes accessed, Bytes bytes);
// Rate of a transfer that is alone. It must access a memory with a rate.
BytesPerSecond MoveRate(const configs::ChipParams& chip, const MemoryBytes& accessed, Bytes bytes);

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_MEMORY_BYTES_H_
