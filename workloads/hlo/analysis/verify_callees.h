// What instructions and the computations that they call owe each other: part of
// the verifier.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_CALLEES_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_CALLEES_H_

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// How many computations `i` calls, how many parameters they have, and that the
// shapes that cross into and out of them are the same on both sides.
absl::Status CheckCallees(const Instruction& i);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_CALLEES_H_
