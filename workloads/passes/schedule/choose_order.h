// The best order that is known for a computation: candidates, replayed.
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_CHOOSE_ORDER_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_CHOOSE_ORDER_H_

#include "workloads/cost/work.h"
#include "workloads/passes/schedule/graph.h"

namespace tpusim::passes {

struct ChosenOrder {
  ScheduleOrder order;
  cost::Work work;  // of the whole
};

// As schedule.h describes it.
ChosenOrder ChooseOrder(const ScheduleGraph& graph);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_CHOOSE_ORDER_H_
