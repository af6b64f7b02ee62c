// The largest use of VMEM by a scheduled program, and the arrays and windows that make it up.
//
// Two things take VMEM: arrays that memory-space assignment (or, in a compiled module, the TPU
// compiler) places there, from when they are made or their copy begins to their last reader, and
// the windows of the kernel that runs. Holes between arrays are not counted: no places in VMEM are
// chosen here.
#ifndef TPUSIM_WORKLOADS_BUFFERS_VMEM_PEAK_H_
#define TPUSIM_WORKLOADS_BUFFERS_VMEM_PEAK_H_

#include "absl/functional/function_ref.h"
#include "configs/units.h"
#include "models/isa/program_info.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::buffers {

// `windows_of` says what the windows of an instruction take while it is executed; 0: it has none.
isa::VmemAtPeak MostOfVmem(const hlo::Module& module, const target::Target& target,
                           absl::FunctionRef<Bytes(const hlo::Instruction&)> windows_of);

}  // namespace tpusim::buffers

#endif  // TPUSIM_WORKLOADS_BUFFERS_VMEM_PEAK_H_
