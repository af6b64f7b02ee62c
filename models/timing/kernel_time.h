// The time of a kernel that is alone on its chip.
//
// The pipeline of kernel_pipeline.h and the DMA channel of dma_channel.h, which the
// machine runs too, with every transfer at the full rate of its memory: what
// chip::TensorCore takes when nothing else moves, to the picosecond. The tile search and
// the scheduler ask it thousands of times, so steps that repeat are not replayed one by
// one: at the start of every iteration of a grid dimension the state of pipeline and
// channel is compared with that of the last iterations (steady/state.h). If it recurs,
// all iterations up to the boundary of the dimension take equally long.
//
// The room answers how long something takes on the hardware, as pure functions without events;
// `KernelTime` is its entry point for kernels, collective_timing.h has the forms of collectives.
// Closed forms with rules of their own were replaced: the machine and the closed form of a kernel
// share one state machine of its pipeline and one of a DMA channel, so that they cannot drift
// apart.
#ifndef TPUSIM_MODELS_TIMING_KERNEL_TIME_H_
#define TPUSIM_MODELS_TIMING_KERNEL_TIME_H_

#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"

namespace tpusim::timing {

Picoseconds KernelTime(const configs::ChipParams& chip, const isa::Kernel& kernel);

// Returns a bound that is never more than KernelTime and much cheaper: launch and the longer of all
// compute and all data.
Picoseconds KernelTimeBound(const configs::ChipParams& chip, const isa::Kernel& kernel);

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_KERNEL_TIME_H_
