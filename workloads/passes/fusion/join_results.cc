#include <algorithm>
#include <vector>

#include "workloads/passes/fusion/legality.h"
#include "workloads/passes/fusion/merge_order.h"
#include "workloads/passes/fusion/steps.h"
#include "workloads/passes/pipeline/limits.h"
#include "workloads/passes/pipeline/reasons.h"

namespace tpusim::passes::fusion {
namespace {

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
        if (!std::binary_search(computing.begin(), computing.end(), g)) readers.push_back(g);
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
