// Orders of a computation, chosen to hide asynchronous transfers.
//
// ListOrder is a list scheduler over simulated time, from the end of a computation to
// its beginning: so nothing is started earlier than it takes to be hidden, and what a
// transfer brings does not wait in memory for longer than that. Among the
// instructions whose users are all placed it takes, first match wins:
//   1. what costs no time (tuples, parameters, bitcasts);
//   2. a done, while the limit of transfers of its kind in flight allows;
//   3. a start that is as far ahead of its done as the transfer takes;
//   4. the compute instruction with the longest way from the beginning, the later
//      one in the original order on ties; but while the next start has a longer way
//      than it, only one that does not delay that start;
//   5. the start that is closest to that (a stall).
//
// EarlyStarts moves starts of an order forward: right behind what they wait for, as
// far as limits allow and without overtaking starts of their kind. Everything else
// stays as it is; so do copies from the host, which take memory from their start on.
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_LIST_ORDER_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_LIST_ORDER_H_

#include <vector>

#include "configs/units.h"
#include "workloads/cost/schedule_graph.h"

namespace tpusim::passes {

// `in_flight`, by node: how long a transfer takes from its start.
cost::ScheduleOrder ListOrder(const cost::ScheduleGraph& graph,
                              const std::vector<Picoseconds>& in_flight);

cost::ScheduleOrder EarlyStarts(const cost::ScheduleGraph& graph, const cost::ScheduleOrder& order);

// Moves what is made of constants alone right before its first reader: the zeros that a loop adds
// to take no memory from the beginning of the program on, where a list scheduler has what nothing
// leads to.
cost::ScheduleOrder LateConstants(const cost::ScheduleGraph& graph,
                                  const cost::ScheduleOrder& order);

// Copies to the host free memory of the device: they go as early as they can.
//
// A value that goes to the host takes HBM until its copy is over, and one that comes from there
// from the start of its copy on. A list scheduler from the end to the beginning starts both just
// in time; for copies to the host that would be when the value is wanted back.
//
// The order with copies to the host right behind what they wait for, as far as their limit
// allows, and what waits for them as soon as they should be over: when twice the time has
// passed that they take one after the other, alone, but no later than it was.
cost::ScheduleOrder FreeEarly(const cost::ScheduleGraph& graph, const cost::ScheduleOrder& order);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_LIST_ORDER_H_
