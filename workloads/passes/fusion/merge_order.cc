#include "workloads/passes/fusion/merge_order.h"

#include <algorithm>

#include "workloads/passes/pipeline/limits.h"

namespace tpusim::passes::fusion {

MergeOrder::MergeOrder(const Plan& plan)
    : plan_(plan), place_(plan.size()), seen_at_(plan.size(), 0) {
  for (int i = 0; i < plan.size(); ++i) place_[i] = i;
}

int MergeOrder::NodeOf(int instruction) const {
  const int group = plan_.MadeBy(instruction);
  return group >= 0 ? group : instruction;
}

// The nodes that compute with `instruction`: the groups that it is a member of, or
// itself. What is copied into its users stands for them.
template <typename Visit>
void MergeOrder::ForEachNodeOf(int instruction, const Visit& visit) const {
  const Graph& graph = plan_.graph();
  const std::vector<int>& groups = plan_.Containing(instruction);
  for (int g : groups) visit(g);
  if (groups.empty()) visit(instruction);
  if (!graph.Is(instruction, Part::kFree)) return;
  for (int user : graph.users[instruction]) {
    for (int g : plan_.Containing(user)) visit(g);
  }
}

template <typename Visit>
void MergeOrder::ForEachSuccessor(int node, const Visit& visit) const {
  const Graph& graph = plan_.graph();
  const auto of = [&](int instruction) {
    for (int user : graph.users[instruction]) ForEachNodeOf(user, visit);
    for (int after : graph.controlled[instruction]) visit(NodeOf(after));
  };
  if (!plan_.group(node).alive) return of(node);
  for (int root : plan_.group(node).roots) of(root);
}

template <typename Visit>
void MergeOrder::ForEachPredecessor(int node, const Visit& visit) const {
  const Graph& graph = plan_.graph();
  const auto of = [&](int instruction) {
    for (int operand : graph.operands[instruction]) {
      visit(NodeOf(operand));
      if (!graph.Is(operand, Part::kFree)) continue;
      for (int deep : graph.operands[operand]) visit(NodeOf(deep));
    }
    for (int before : graph.controls[instruction]) visit(NodeOf(before));
  };
  if (!plan_.group(node).alive) return of(node);
  const std::vector<int>& members = plan_.group(node).members;
  for (int m : members) {
    for (int operand : graph.operands[m]) {
      if (std::binary_search(members.begin(), members.end(), operand)) continue;
      visit(NodeOf(operand));
      if (!graph.Is(operand, Part::kFree)) continue;
      for (int deep : graph.operands[operand]) visit(NodeOf(deep));
    }
  }
}

std::optional<std::vector<int>> MergeOrder::Reached(int start, int stop, bool forward) {
  ++stamp_;
  std::vector<int> reached;
  bool reaches_stop = false;
  const auto expand = [&](int node) {
    const auto visit = [&](int next) {
      if (next == stop) {
        // Directly is how they are joined; any other way is a cycle.
        reaches_stop = reaches_stop || node != start;
        return;
      }
      const bool between = forward ? place_[next] < place_[stop] : place_[next] > place_[stop];
      if (next == start || !between || seen_at_[next] == stamp_) return;
      seen_at_[next] = stamp_;
      reached.push_back(next);
    };
    if (forward) {
      ForEachSuccessor(node, visit);
    } else {
      ForEachPredecessor(node, visit);
    }
  };
  expand(start);
  for (size_t n = 0; n < reached.size() && !reaches_stop; ++n) {
    if (std::ssize(reached) > limits::kBetweenJoined.most()) {
      limits::kBetweenJoined.Reached();
      return std::nullopt;
    }
    expand(reached[n]);
  }
  if (reaches_stop) return std::nullopt;
  return reached;
}

bool MergeOrder::MakeNeighbours(int into, int from) {
  const int early = place_[into] < place_[from] ? into : from;
  const int late = early == into ? from : into;
  auto after = Reached(early, late, /*forward=*/true);
  if (!after) return false;
  auto before = Reached(late, early, /*forward=*/false);
  if (!before) return false;
  const auto by_place = [&](int a, int b) { return place_[a] < place_[b]; };
  std::sort(after->begin(), after->end(), by_place);
  std::sort(before->begin(), before->end(), by_place);
  std::vector<int64_t> places = {place_[early], place_[late]};
  for (int node : *after) places.push_back(place_[node]);
  for (int node : *before) places.push_back(place_[node]);
  std::sort(places.begin(), places.end());
  size_t next = 0;
  for (int node : *before) place_[node] = places[next++];
  place_[into] = places[next++];
  ++next;  // the place of the other one stays empty
  for (int node : *after) place_[node] = places[next++];
  return true;
}

}  // namespace tpusim::passes::fusion
