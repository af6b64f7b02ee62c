// Copies to the host free memory of the device: they go as early as they can.
//
// A value that goes to the host takes HBM until its copy is over, and one that comes from there
// from the start of its copy on. A list scheduler from the end to the beginning starts both just
// in time; for copies to the host that would be when the value is wanted back.
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_FREE_EARLY_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_FREE_EARLY_H_

#include "workloads/cost/schedule_graph.h"

namespace tpusim::passes {

// The order with copies to the host right behind what they wait for, as far as their limit
// allows, and what waits for them as soon as they should be over: when twice the time has
// passed that they take one after the other, alone, but no later than it was.
cost::ScheduleOrder FreeEarly(const cost::ScheduleGraph& graph, const cost::ScheduleOrder& order);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_FREE_EARLY_H_
