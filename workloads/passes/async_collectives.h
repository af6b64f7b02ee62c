// Makes collectives asynchronous where the chip runs them beside compute.
//
// On chips without collective off-load only collective-permute runs under
// kernels: it is cut into a start and a done, which the scheduler then pulls
// apart. The others stay synchronous, as the TPU compiler leaves them by
// default (async all-reduce and reduce-scatter disabled).
#ifndef TPUSIM_WORKLOADS_PASSES_ASYNC_COLLECTIVES_H_
#define TPUSIM_WORKLOADS_PASSES_ASYNC_COLLECTIVES_H_

#include "absl/status/status.h"
#include "workloads/hlo/ir.h"
#include "workloads/passes/target.h"

namespace tpusim::passes {

absl::Status MakeCollectivesAsync(hlo::Module& module, const Target& target);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_ASYNC_COLLECTIVES_H_
