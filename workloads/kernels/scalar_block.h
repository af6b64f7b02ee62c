// Arithmetic on single elements: index arithmetic, learning rates, norms.
//
// Scalars are in registers or in SMEM, not in HBM, and the core computes with them where
// it controls its kernels: they need neither a launch nor a transfer.
#ifndef TPUSIM_WORKLOADS_KERNELS_SCALAR_BLOCK_H_
#define TPUSIM_WORKLOADS_KERNELS_SCALAR_BLOCK_H_

#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// Work of the scalar core for one scalar instruction.
isa::Block ScalarBlock(const hlo::Instruction& instruction, const target::Target& target);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_SCALAR_BLOCK_H_
