// Custom calls whose values the host computes: jax.pure_callback and
// jax.experimental.io_callback, as tpusim.export writes them and as JAX itself does
// for the CPU, and computations that the TPU compiler leaves to the host.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_HOST_CALLBACK_H_
#define TPUSIM_WORKLOADS_HLO_RULES_HOST_CALLBACK_H_

#include <string_view>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The target of a call of the TPU compiler, which runs a computation on the host.
inline constexpr std::string_view kHostExecute = "HostExecute";

bool IsHostCallback(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_HOST_CALLBACK_H_
