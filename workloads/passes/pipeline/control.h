// Computations that a device runs as control flow: hlo/analysis/control.h.
#ifndef TPUSIM_WORKLOADS_PASSES_PIPELINE_CONTROL_H_
#define TPUSIM_WORKLOADS_PASSES_PIPELINE_CONTROL_H_

#include "workloads/hlo/analysis/control.h"

namespace tpusim::passes {

using hlo::ControlComputations;

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_PIPELINE_CONTROL_H_
