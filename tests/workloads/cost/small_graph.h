// Small graphs for the tests of the scheduler, without HLO.
#ifndef TPUSIM_TESTS_WORKLOADS_COST_SMALL_GRAPH_H_
#define TPUSIM_TESTS_WORKLOADS_COST_SMALL_GRAPH_H_

#include <utility>
#include <vector>

#include "workloads/cost/schedule_graph.h"

namespace tpusim::cost {

// `time` ps, of which it uses a share of HBM and of the links in x+, at `rate`.
inline Work WorkOf(int64_t time, double hbm = 0, double link = 0, double rate = 0) {
  Work work;
  work.time = Picoseconds(time);
  work.share[kHbmResource] = hbm;
  work.share[kLinkResource] = link;
  work.rate = BytesPerSecond(rate);
  return work;
}

class SmallGraph {
 public:
  SmallGraph() { graph_.limits = {5, 1, 1, 5, 32, 32}; }

  int Main(const Work& work, std::vector<int> after = {}, bool carries_gathers = false) {
    ScheduleNode node;
    node.work = work;
    node.carries_gathers = carries_gathers;
    return Add(std::move(node), std::move(after));
  }
  int Start(const Work& transfer, std::vector<int> after = {}, TransferKind kind = kPermute) {
    ScheduleNode node;
    node.role = ScheduleNode::Role::kStart;
    node.kind = kind;
    node.transfer = transfer;
    return Add(std::move(node), std::move(after));
  }
  int Done(int start) {
    ScheduleNode node;
    node.role = ScheduleNode::Role::kDone;
    node.kind = graph_.nodes[start].kind;
    node.start = start;
    return Add(std::move(node), {start});
  }
  ScheduleGraph& graph() { return graph_; }

 private:
  int Add(ScheduleNode node, std::vector<int> after) {
    node.predecessors = std::move(after);
    graph_.nodes.push_back(std::move(node));
    return static_cast<int>(graph_.nodes.size()) - 1;
  }

  ScheduleGraph graph_;
};

}  // namespace tpusim::cost

#endif  // TPUSIM_TESTS_WORKLOADS_COST_SMALL_GRAPH_H_
