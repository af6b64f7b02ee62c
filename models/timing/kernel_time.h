// How long a kernel takes when it is alone on its chip.
//
// The recurrence of kernel_steps.h, replayed over integers with every transfer
// at the full HBM rate: what chip::TensorCore takes when nothing else moves, to
// the picosecond. The tile search and the scheduler ask it thousands of times, so
// steps that repeat are not replayed one by one: at the start of every iteration
// of a grid dimension the times that the future depends on are compared, relative
// to the end of the last step, with those of the iteration before. Equal ones
// mean that all iterations up to the boundary of the dimension take equally long.
#ifndef TPUSIM_MODELS_TIMING_KERNEL_TIME_H_
#define TPUSIM_MODELS_TIMING_KERNEL_TIME_H_

#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"

namespace tpusim::timing {

Picoseconds KernelTime(const configs::ChipParams& chip, const isa::Kernel& kernel);

// Never more than KernelTime and much cheaper: launch and the longer of all
// compute and all data.
Picoseconds KernelTimeBound(const configs::ChipParams& chip, const isa::Kernel& kernel);

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_KERNEL_TIME_H_
