// Rounds what products of matrices read before it goes from device to device, not after.
//
// A product of float32 arrays with the default precision multiplies bfloat16 on TPUs. An
// all-gather, all-to-all or permute of which all that is read goes into such products may as well
// move bfloat16: half of the bytes, and the same numbers. What only moves or selects elements may
// lie between; anything else that reads the array keeps it as it is, and so does a higher
// precision. The TPU compiler does so whether the program states the collective or the partitioner
// made it.
//
// In what this pass leaves the rounding is explicit, so on a device whose products are exact in
// float32, such as a CPU, the numbers become those of a TPU.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_ROUND_BEFORE_EXCHANGE_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_ROUND_BEFORE_EXCHANGE_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> RoundBeforeExchange(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_ROUND_BEFORE_EXCHANGE_H_
