// The best order that is known for a computation: candidates, replayed.
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_CHOOSE_ORDER_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_CHOOSE_ORDER_H_

#include "workloads/cost/schedule_graph.h"
#include "workloads/cost/work.h"
#include "workloads/passes/schedule/order_memory.h"

namespace tpusim::passes {

struct ChosenOrder {
  cost::ScheduleOrder order;
  cost::Work work;  // of the whole
};

// What an order may take.
struct MemoryLimit {
  const OrderMemory* memory = nullptr;
  Bytes most{0};
};

// As schedule.h describes it. With a limit, the shortest order that fits; if none does, the
// one that takes least. The order of the nodes themselves is a candidate then, too.
ChosenOrder ChooseOrder(const cost::ScheduleGraph& graph, const MemoryLimit& limit = {});

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_CHOOSE_ORDER_H_
