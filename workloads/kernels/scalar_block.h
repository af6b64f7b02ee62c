// Index arithmetic on the scalar core.
#ifndef TPUSIM_WORKLOADS_KERNELS_SCALAR_BLOCK_H_
#define TPUSIM_WORKLOADS_KERNELS_SCALAR_BLOCK_H_

#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::kernels {

// Work of the scalar core for one scalar instruction.
isa::Block ScalarBlock(const hlo::Instruction& instruction);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_SCALAR_BLOCK_H_
