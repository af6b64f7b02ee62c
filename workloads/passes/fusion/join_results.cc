#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/passes/fusion/limits.h"
#include "workloads/passes/fusion/reasons.h"
#include "workloads/passes/fusion/steps.h"

namespace tpusim::passes::fusion {
namespace {

// An order of the kernels that are planned, kept while they are joined.
//
// Two kernels may only be joined if no other value takes the way from one to the other:
// the joined kernel would wait for itself. Kernels and all other instructions stand in
// a topological order. Joining two moves, of what stands between them, what the later
// one needs before the joined kernel and what needs the earlier one behind it (Pearce
// and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006).
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
      if (Contains(members, operand)) continue;
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

class Joiner {
 public:
  Joiner(Plan& plan, const Records& records) : plan_(plan), records_(records), order_(plan) {}

  bool Run() {
    bool changed = false;
    for (int i = 0; i < plan_.size(); ++i) {
      if (plan_.graph().parts[i] == Part::kFree) continue;
      changed |= JoinFollowers(i);
      changed |= JoinSiblings(i);
    }
    return changed;
  }

 private:
  // Groups that read `value`, ascending.
  std::vector<int> ReadersOf(int value) const {
    std::vector<int> readers;
    const std::vector<int>& computing = plan_.Containing(value);
    for (int user : plan_.graph().users[value]) {
      for (int g : plan_.Containing(user)) {
        if (!Contains(computing, g)) readers.push_back(g);
      }
    }
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    return readers;
  }

  bool JoinFollowers(int value) {
    const int maker = plan_.MadeBy(value);
    if (maker < 0) return false;
    bool changed = false;
    for (int reader : ReadersOf(value)) {
      if (reader == maker) continue;
      if (const char* why = WhyNotFollow(plan_, maker, reader)) {
        if (records_.wanted()) {
          records_.Add(reasons::kNotInlined, plan_.NameOf(maker),
                       {{"reader", plan_.NameOf(reader)}, {"why", why}});
        }
        continue;
      }
      changed |= JoinIfBetter(maker, reader, "one following the other");
    }
    return changed;
  }

  bool JoinSiblings(int value) {
    std::vector<int> readers = ReadersOf(value);
    if (std::ssize(readers) > limits::kSiblings.most()) {
      limits::kSiblings.Reached();
      return false;
    }
    bool changed = false;
    for (size_t a = 0; a < readers.size(); ++a) {
      for (size_t b = a + 1; b < readers.size();) {
        const bool joins = WhyNotSiblings(plan_, readers[a], readers[b], value) == nullptr &&
                           JoinIfBetter(readers[a], readers[b], "both reading one array");
        changed |= joins;
        if (joins) {
          readers.erase(readers.begin() + static_cast<std::ptrdiff_t>(b));
        } else {
          ++b;
        }
      }
    }
    return changed;
  }

  bool JoinIfBetter(int into, int from, const char* how) {
    const Group &a = plan_.group(into), &b = plan_.group(from);
    const Price together =
        plan_.PriceOf(Plan::Union(a.members, b.members), plan_.RootsTogether(into, from));
    const Picoseconds gain = a.price.time + b.price.time - together.time;
    if (gain <= Picoseconds(0) || !order_.MakeNeighbours(into, from)) return false;
    records_.Add(reasons::kJoined, plan_.NameOf(into),
                 {{"other", plan_.NameOf(from)}, {"how", how}, {"less_us", ToMicroseconds(gain)}});
    plan_.Join(into, from);
    return true;
  }

  Plan& plan_;
  const Records& records_;
  MergeOrder order_;
};

}  // namespace

bool JoinResults(Plan& plan, const Records& records) { return Joiner(plan, records).Run(); }

}  // namespace tpusim::passes::fusion
