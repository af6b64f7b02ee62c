// How long an order of a computation will take, with what meets on links and in memory.
//
// The main stream executes one operation after the other. A start sets its transfer in
// motion, which goes on beside the main stream until it is over; a done waits for it.
// Operations under way at the same time share the resources of their Work max-min
// fairly, by the solver of the machine's flows (models/flow/max_min.h): each proceeds at the
// part of its speed alone that its rate allows.
//
// Between two events, the ends of latencies and of work, speeds are constant. There is
// an event or two per operation, and few operations are under way at once, so a replay
// takes time in proportion to the length of the order.
#ifndef TPUSIM_WORKLOADS_COST_REPLAY_H_
#define TPUSIM_WORKLOADS_COST_REPLAY_H_

#include <vector>

#include "configs/units.h"
#include "workloads/cost/schedule_graph.h"

namespace tpusim::cost {

struct ReplayResult {
  // The whole computation as one operation: its length and its average shares.
  Work work;
  // By node, of starts: from the start until the transfer is over.
  std::vector<Picoseconds> in_flight;
  // By node, of starts: how long the done waited for it.
  std::vector<Picoseconds> stall;
};

ReplayResult Replay(const ScheduleGraph& graph, const ScheduleOrder& order);

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_REPLAY_H_
