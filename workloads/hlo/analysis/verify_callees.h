// What instructions and the computations that they call owe each other: part of
// the verifier.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_CALLEES_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_CALLEES_H_

#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Computation::parameters() of every computation: found once, asked for at every
// call.
using ParametersOf = std::unordered_map<const Computation*, std::vector<Instruction*>>;

// How many computations `i` calls, how many parameters they have, and that the
// shapes that cross into and out of them are the same on both sides.
absl::Status CheckCallees(const Instruction& i, const ParametersOf& parameters);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_CALLEES_H_
