// Limits of effort of the passes in this room (configs/limit.h).
//
// None of these is a rule of the TPU compiler: with more effort the program would be the same, or a
// little shorter. A record of the pass says so where one was reached.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_LIMITS_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::passes::limits {

inline constexpr Limit kFusedMembers{"fusion.members", 256, "fusions",
                                     "instructions of one kernel: its price is looked up by them"};
inline constexpr Limit kConsumers{
    "fusion.consumers", 64, "values",
    "a value with more users is stored: what one of them saves is little beside the price of "
    "looking at all of them again and again"};
inline constexpr Limit kBetweenJoined{
    "fusion.between", 400, "pairs",
    "kernels farther apart are not joined: their values would be held for long, and not looking "
    "farther keeps the pass linear"};
inline constexpr Limit kSiblings{"fusion.siblings", 16, "arrays",
                                 "users of one array that are tried in pairs"};
inline constexpr Limit kReaders{"fusion.readers", 16, "values",
                                "a value that more kernels compute is left to them"};

}  // namespace tpusim::passes::limits

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_LIMITS_H_
