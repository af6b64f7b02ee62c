// Cycles of a block, from the machine's slots.
//
// Pure functions that the compiler's cost model and the simulated engines
// share, so that the two cannot drift apart.
#ifndef TPUSIM_MODELS_TIMING_KERNEL_TIMING_H_
#define TPUSIM_MODELS_TIMING_KERNEL_TIMING_H_

#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"
#include "models/timing/memory_bytes.h"

namespace tpusim::timing {

// Cycles of one block that each slot of the vector unit is busy for, on a device.
struct SlotCycles {
  double valu = 0, eup = 0, xlu = 0, load = 0, store = 0;
};
SlotCycles SlotsOf(const configs::ChipParams& chip, const isa::Block& block);

// Busy cycles of each slot in one block. `total` is what the block takes.
struct BlockCycles {
  Cycles mxu{0};       // longest array's steady state, without fill and drain
  Cycles mxu_fill{0};  // fill and drain that nothing hides
  Cycles vpu{0};       // fullest of VALU, EUP, XLU, load, store
  Cycles total{0};
};

// Formula and derivation in kernel_timing.cc.
BlockCycles TimeBlock(const configs::ChipParams& chip, const isa::Block& block);

// Returns how long `operations` whole-register operations keep the cross-lane units busy, dealt out
// evenly.
Picoseconds XluTime(const configs::ChipParams& chip, int64_t operations);

// Array passes of a product in this format, relative to one bf16 pass.
double FormatPasses(const configs::MxuParams& mxu, isa::NumberFormat format);

// Share of their peak that the arrays sustain in this format: clocks that give way to power, and
// whatever else keeps them from their rate all the time. Integers keep the rate.
double SustainedShare(const configs::MxuParams& mxu, isa::NumberFormat format);

// Time of one grid step's block including the step's scalar overhead.
Picoseconds StepTime(const configs::ChipParams& chip, const isa::Block& block);

// Returns the time from the start of a kernel to its first DMA: the launch, and for a kernel around
// a product the set-up of its windows, one after the other. A kernel whose arrays are all in VMEM has
// no DMA to set up: the TPU compiler calls it as a run of bundles in line, of which those for one
// register are 2 to 12 in all (libtpu 0.0.52, v7x: kernels of the state of a loop), and begins with
// its first step.
Picoseconds LaunchTime(const configs::ChipParams& chip, const isa::Kernel& kernel);

// Bytes that a kernel moves (inputs re-fetched as the grid revisits them).
struct KernelTraffic {
  Bytes read{0}, written{0};  // HBM
  MemoryBytes both_ways;      // each memory with a rate
};
KernelTraffic TrafficOf(const isa::Kernel& kernel);

// VMEM that the windows of a kernel take: each as often as it is buffered. A window of
// VMEM is a buffer that is there already.
Bytes WindowBytes(const isa::Kernel& kernel);

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_KERNEL_TIMING_H_
