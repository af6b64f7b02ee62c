// An order of the kernels that are planned, kept while they are joined.
//
// Two kernels may only be joined if no other value takes the way from one to the other:
// the joined kernel would wait for itself. Kernels and all other instructions stand in
// a topological order. Joining two moves, of what stands between them, what the later
// one needs before the joined kernel and what needs the earlier one behind it (Pearce
// and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006).
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_MERGE_ORDER_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_MERGE_ORDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/passes/fusion/plan.h"

namespace tpusim::passes::fusion {

class MergeOrder {
 public:
  // Nodes are groups and, outside of groups, instructions; both by number. The plan has
  // groups with one result only, and must live as long.
  explicit MergeOrder(const Plan& plan);

  // Moves what is between the two aside and says that they may be joined, or that they
  // may not: another way leads from one to the other, or too much is between them to
  // find out. The joined group takes the number `into`.
  bool MakeNeighbours(int into, int from);

 private:
  template <typename Visit>
  void ForEachSuccessor(int node, const Visit& visit) const;
  template <typename Visit>
  void ForEachPredecessor(int node, const Visit& visit) const;
  template <typename Visit>
  void ForEachNodeOf(int instruction, const Visit& visit) const;
  int NodeOf(int instruction) const;
  // Nodes that `start` reaches, `stop` left out, up to the place of `stop`; nullopt if
  // one of them reaches `stop` or there are too many.
  std::optional<std::vector<int>> Reached(int start, int stop, bool forward);

  const Plan& plan_;
  std::vector<int64_t> place_;
  std::vector<int64_t> seen_at_;
  int64_t stamp_ = 0;
};

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_MERGE_ORDER_H_
