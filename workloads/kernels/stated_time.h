// Opaque kernels whose time is stated: as it was measured on a chip.
//
// Alone on its chip such a kernel takes as long as is stated, from its launch to its last byte.
// What it reads and writes moves evenly meanwhile, so that transfers beside it find the HBM as busy
// as they would; one slot is busy all the time. What it is known to compute and to move says
// nothing of how long it takes then, and counts as far as the chip can do so much in the time. The
// rest is left out, and the report says so.
#ifndef TPUSIM_WORKLOADS_KERNELS_STATED_TIME_H_
#define TPUSIM_WORKLOADS_KERNELS_STATED_TIME_H_

#include <string>

#include "configs/units.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/kernels/custom_cost.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// A kernel that takes the time of `cost`, or the least that a kernel of its bytes takes, if that is
// longer; `results` of its bytes are written.
isa::Kernel BuildTimedKernel(const CustomCost& cost, Bytes results, const std::string& name,
                             const target::Target& target);

// Cuts what calls of stated time compute and move to what the chip can do in the time.
void HoldToStatedTimes(hlo::Module& module, const target::Target& target);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_STATED_TIME_H_
