// The best order that is known for a computation: candidates, replayed.
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_CHOOSE_ORDER_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_CHOOSE_ORDER_H_

#include <unordered_map>
#include <vector>

#include "configs/units.h"
#include "workloads/cost/cost_model.h"
#include "workloads/cost/schedule_graph.h"
#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// The peak of computations that are ordered already.
using PeakOfComputations = std::unordered_map<const hlo::Computation*, Bytes>;

// Computes the memory that an order of a computation takes beside what its caller keeps.
//
// A buffer is live from the instruction that makes it to its last reader in the order; which
// arrays share one is asked of hlo/analysis/alias.h, and a loop takes what its body does while it
// runs. Asking for one order more takes time in proportion to its length. Donated arguments that
// results take and holes of the heap are ignored: orders are compared, the memory plan decides.
class OrderMemory {
 public:
  // The nodes of the graph are the instructions of the computation that `aliases` is of.
  OrderMemory(const cost::ScheduleGraph& graph, const target::Target& target,
              const hlo::AliasAnalysis& aliases, const PeakOfComputations& callees);

  Bytes PeakOf(const cost::ScheduleOrder& order) const;

 private:
  struct Buffer {
    Bytes bytes{0};
    int made_by = -1;  // node
    std::vector<int> readers;
    bool stays = false;  // beyond the computation
  };

  std::vector<Buffer> buffers_;
  std::vector<Bytes> inside_;  // what a node takes while it runs
};

struct ChosenOrder {
  cost::ScheduleOrder order;
  cost::Work work;  // of the whole
};

// The memory that an order may take.
struct MemoryLimit {
  const OrderMemory* memory = nullptr;
  Bytes most{0};
};

// Chooses an order as schedule.h describes it. With a limit, the shortest order that fits; if none
// does, the one that takes least. The order of the nodes themselves is a candidate then, too.
ChosenOrder ChooseOrder(const cost::ScheduleGraph& graph, const MemoryLimit& limit = {});

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_CHOOSE_ORDER_H_
