// Checks instructions against the computations that they call: part of the verifier.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_CALLEES_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_CALLEES_H_

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Checks how many computations `i` calls, how many parameters they have, and that the shapes of
// arguments and results are equal on both sides.
absl::Status CheckCallees(const Instruction& i);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_CALLEES_H_
