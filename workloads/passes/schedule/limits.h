// Limits of effort of the passes in this room (configs/limit.h).
//
// None of these is a rule of the TPU compiler: with more effort the program would be the same, or a
// little shorter. A record of the pass says so where one was reached.
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_LIMITS_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_LIMITS_H_

#include "configs/limit.h"

namespace tpusim::passes::limits {

inline constexpr Limit kListLookAhead{
    "schedule.look_ahead", 8, "instructions",
    "ready instructions looked at for one that fits into the time before the next transfer"};
inline constexpr Limit kScheduleRounds{"schedule.rounds", 2, "rounds",
                                       "how often the best order tells how long transfers take"};

}  // namespace tpusim::passes::limits

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_LIMITS_H_
