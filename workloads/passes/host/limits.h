// Limits of effort of the passes in this room (configs/limit.h).
//
// None of these is a rule of the TPU compiler: with more effort the program would be the same, or a
// little shorter. A record of the pass says so where one was reached.
#ifndef TPUSIM_WORKLOADS_PASSES_HOST_LIMITS_H_
#define TPUSIM_WORKLOADS_PASSES_HOST_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::passes::limits {

inline constexpr Limit kIndexDepth{"host-copies.index_depth", 8, "scalars",
                                   "operations from which the place of a slot is computed"};

}  // namespace tpusim::passes::limits

#endif  // TPUSIM_WORKLOADS_PASSES_HOST_LIMITS_H_
