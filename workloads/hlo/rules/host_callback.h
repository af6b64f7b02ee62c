// Custom calls whose values the host computes: jax.pure_callback and
// jax.experimental.io_callback, as tpusim.export writes them and as JAX itself does
// for the CPU.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_HOST_CALLBACK_H_
#define TPUSIM_WORKLOADS_HLO_RULES_HOST_CALLBACK_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

bool IsHostCallback(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_HOST_CALLBACK_H_
