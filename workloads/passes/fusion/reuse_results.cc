#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "workloads/passes/fusion/limits.h"
#include "workloads/passes/fusion/reasons.h"
#include "workloads/passes/fusion/steps.h"

namespace tpusim::passes::fusion {
namespace {

class Reuser {
 public:
  Reuser(Plan& plan, const Records& records) : plan_(plan), records_(records) {}

  bool Run() {
    bool changed = false;
    for (int g = 0; g < plan_.size(); ++g) {
      if (!plan_.group(g).alive || plan_.HeroOf(g) == Part::kExpression) continue;
      // The last value first: it spares others the most.
      const std::vector<int> members = plan_.group(g).members;
      for (auto m = members.rbegin(); m != members.rend(); ++m) changed |= TryToStore(g, *m);
    }
    return changed;
  }

 private:
  using Saved = std::vector<std::pair<int, Group>>;

  // Kernels that compute `value` as well and read a result of `g`, which comes before them then.
  std::vector<int> ReadersThatCompute(int g, int value) const {
    std::vector<int> readers;
    for (int other : plan_.Containing(value)) {
      const Group& group = plan_.group(other);
      if (other == g || Contains(group.roots, value)) continue;
      if (Reads(group, plan_.group(g).roots)) readers.push_back(other);
    }
    return readers;
  }

  bool Reads(const Group& reader, const std::vector<int>& values) const {
    return std::any_of(reader.members.begin(), reader.members.end(), [&](int m) {
      const std::vector<int>& operands = plan_.graph().operands[m];
      return std::any_of(operands.begin(), operands.end(), [&](int o) {
        return Contains(values, o) && !Contains(reader.members, o);
      });
    });
  }

  // Whether a block of `g` has all of `value` that belongs to it.
  bool IsMadeByBlocks(int g, int value) const {
    const Graph& graph = plan_.graph();
    if (!graph.Is(value, Part::kExpression)) return false;
    for (int root : plan_.group(g).roots) {
      if (graph.Is(root, Part::kReduce) || graph.Is(root, Part::kUpdate)) continue;
      if (graph.At(root).shape().dims == graph.At(value).shape().dims) return true;
    }
    return false;
  }

  // Members of a group without `value` that its results need.
  std::vector<int> MembersWithout(const Group& group, int value) const {
    std::unordered_set<int> needed(group.roots.begin(), group.roots.end());
    std::vector<int> kept;
    for (auto m = group.members.rbegin(); m != group.members.rend(); ++m) {
      if (*m == value || !needed.contains(*m)) continue;
      kept.push_back(*m);
      needed.insert(plan_.graph().operands[*m].begin(), plan_.graph().operands[*m].end());
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
  }

  Bytes StoredBy(const Group& group) const {
    Bytes stored(0);
    for (int root : group.roots) {
      stored += plan_.target().PaddedSize(plan_.graph().At(root).shape());
    }
    return stored;
  }

  bool TryToStore(int g, int value) {
    const std::vector<int>& roots = plan_.group(g).roots;
    if (Contains(roots, value) || !IsMadeByBlocks(g, value)) {
      return false;
    }
    const std::vector<int> readers = ReadersThatCompute(g, value);
    if (readers.empty()) return false;
    if (std::ssize(readers) > limits::kReaders.most()) {
      limits::kReaders.Reached();
      return false;
    }
    Saved before;
    before.emplace_back(g, plan_.group(g));
    for (int reader : readers) before.emplace_back(reader, plan_.group(reader));
    Picoseconds gain(0);
    for (const auto& [number, group] : before) gain += group.price.time;

    for (int reader : readers) {
      const Group& group = plan_.group(reader);
      plan_.Replace(reader, MembersWithout(group, value), group.roots);
    }
    std::vector<int> results = roots;
    results.insert(std::upper_bound(results.begin(), results.end(), value), value);
    std::erase_if(results, [&](int r) { return r != value && !plan_.ReadOutside(g, r); });
    plan_.Replace(g, plan_.group(g).members, std::move(results));

    for (const auto& [number, group] : before) gain -= plan_.group(number).price.time;
    // Memory that is held until the last reader is not given for time.
    if (gain > Picoseconds(0) && StoredBy(plan_.group(g)) <= StoredBy(before[0].second)) {
      if (records_.wanted()) {
        records_.Add(reasons::kReused, plan_.graph().At(value).name(),
                     {{"readers", plan_.NamesOf(readers)}, {"less_us", ToMicroseconds(gain)}});
      }
      return true;
    }
    for (auto& [number, group] : before) {
      plan_.Replace(number, std::move(group.members), std::move(group.roots));
    }
    return false;
  }

  Plan& plan_;
  const Records& records_;
};

}  // namespace

bool ReuseResults(Plan& plan, const Records& records) { return Reuser(plan, records).Run(); }

}  // namespace tpusim::passes::fusion
