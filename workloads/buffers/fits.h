// Whether a program fits into the memories of a chip, and what is in the way if not.
#ifndef TPUSIM_WORKLOADS_BUFFERS_FITS_H_
#define TPUSIM_WORKLOADS_BUFFERS_FITS_H_

#include <optional>

#include "absl/status/status.h"
#include "configs/units.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::buffers {

// Error: a memory needs more than programs may use of it. Of HBM it is "resource exhausted",
// says how much is whose at the peak (owners.h), and names the largest arrays.
absl::Status CheckFits(const hlo::Module& module, const MemoryPlan& plan,
                       const target::Target& target);

// Returns how much HBM the program needs at its peak; nullopt: the error is about something else.
std::optional<Bytes> NeededHbm(const absl::Status& status);

}  // namespace tpusim::buffers

#endif  // TPUSIM_WORKLOADS_BUFFERS_FITS_H_
