// All-gathers of vectors of which a device has less than a row of lanes become all-reduces.
//
// Each device puts its part into zeros at its place, and the sum has all parts: that is as many
// bytes again, but whole rows, where parts would have to be moved to their place within one. The
// TPU compiler does so with arrays of one dimension of which a device has fewer than 128 elements
// (compiled for v5e to v7x: f32 and bf16 of 64 and 127 per device, not of 128; with more dimensions
// it has a layout in which the gathered one is not the fastest). The all-reduces are then combined
// with others.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_NARROW_ALL_GATHERS_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_NARROW_ALL_GATHERS_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> SumNarrowAllGathers(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_NARROW_ALL_GATHERS_H_
