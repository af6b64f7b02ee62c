// Numbers for the channels of collectives that a pass adds.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_CHANNELS_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_CHANNELS_H_

#include <cstdint>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

// The number of the first channel that no collective of the module has, nor a later one.
int64_t FirstFreeChannel(const hlo::Module& module);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_CHANNELS_H_
