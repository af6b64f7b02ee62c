// What every stage may take for granted of a module.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Ids, shapes, arities, cycles, called computations, schedules.
absl::Status Verify(const Module& module);
// Replica groups and source-target pairs, for a program of so many partitions:
// every partition in exactly one group (or no groups at all), and source and
// target of at most one pair.
absl::Status VerifyCollectives(const Module& module, int64_t num_partitions);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_H_
