#include "workloads/passes/collectives/combine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "workloads/cost/collective_decisions.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/merge_reduces.h"
#include "workloads/passes/collectives/limits.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Collectives of a kind of which none waits for another. Levels are numbered from the end of the
// program; one comes before those with lower numbers, and all that those come before, in what
// follows.
struct Level {
  std::vector<Instruction*> members;  // from the end of the program
  // The highest level of every kind that has to come after this one; -1: none.
  std::vector<int> before;
};

class Combiner {
 public:
  Combiner(Computation& computation, const CombineRule& rule, const Records& records,
           const Reason& reason)
      : computation_(computation), rule_(rule), records_(records), reason_(reason) {}

  bool Run() {
    const std::vector<Instruction*> order = computation_.PostOrder();
    FindKinds(order);
    if (levels_.empty()) return false;
    std::unordered_map<const Instruction*, std::vector<int>> before;  // looked up, never iterated
    before.reserve(order.size());
    for (auto i = order.rbegin(); i != order.rend(); ++i) {
      std::vector<int> after(levels_.size(), -1);
      for (const Instruction* user : (*i)->users()) Raise(after, before.at(user));
      for (const Instruction* later : (*i)->control_successors()) Raise(after, before.at(later));
      const auto kind = kind_of_.find(*i);
      if (kind != kind_of_.end()) Place(*i, kind->second, after);
      before.emplace(*i, std::move(after));
    }
    bool changed = false;
    for (const std::vector<Level>& levels : levels_) {
      for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
        changed |= Combine(*level);
      }
    }
    return changed;
  }

 private:
  void FindKinds(const std::vector<Instruction*>& order) {
    std::map<std::string, std::vector<Instruction*>> found;
    std::vector<std::string> names;  // in the order of the program
    for (Instruction* i : order) {
      const std::string kind = rule_.kind(*i);
      if (kind.empty()) continue;
      std::vector<Instruction*>& alike = found[kind];
      if (alike.empty()) names.push_back(kind);
      alike.push_back(i);
    }
    for (const std::string& name : names) {
      const std::vector<Instruction*>& alike = found[name];
      if (alike.size() < 2) continue;
      if (std::ssize(levels_) == limits::kCombinedKinds.most()) {
        limits::kCombinedKinds.Reached();
        continue;
      }
      for (const Instruction* i : alike) kind_of_[i] = static_cast<int>(levels_.size());
      levels_.emplace_back();
    }
  }

  static bool Raise(std::vector<int>& a, const std::vector<int>& b) {
    bool raised = false;
    for (size_t k = 0; k < a.size(); ++k) {
      raised |= b[k] > a[k];
      a[k] = std::max(a[k], b[k]);
    }
    return raised;
  }

  // Returns the levels in `after` with all that has to come after them by now.
  std::vector<int> Closure(std::vector<int> after) const {
    for (bool grown = true; grown;) {
      const std::vector<int> last = after;
      for (size_t k = 0; k < last.size(); ++k) {
        if (last[k] >= 0) Raise(after, levels_[k][last[k]].before);
      }
      grown = after != last;
    }
    return after;
  }

  // Puts `i` into the last level of its kind that comes before all that waits for it, and that into
  // `after`.
  void Place(Instruction* i, int kind, std::vector<int>& after) {
    std::vector<Level>& levels = levels_[kind];
    const std::vector<int> all = Closure(after);
    const auto at = static_cast<size_t>(all[kind] + 1);
    if (at == levels.size()) {
      levels.push_back({{}, std::vector<int>(levels_.size(), -1)});
      if (at > 0) levels[at].before = levels[at - 1].before;
      levels[at].before[kind] = static_cast<int>(at) - 1;
    }
    levels[at].members.push_back(i);
    // Those that come before it come before the same.
    for (size_t n = at; n < levels.size() && Raise(levels[n].before, all); ++n) {
    }
    after[kind] = std::max(after[kind], static_cast<int>(at));
  }

  // In the order of the program, each into the first batch with room.
  bool Combine(const Level& level) {
    struct Batch {
      std::vector<Instruction*> members;
      Bytes bytes{0};
    };
    std::vector<Batch> batches;
    for (auto member = level.members.rbegin(); member != level.members.rend(); ++member) {
      const Bytes bytes = rule_.bytes(**member);
      auto batch = std::find_if(batches.begin(), batches.end(), [&](const Batch& b) {
        return b.bytes + bytes <= rule_.most_bytes && b.members.size() < rule_.most_arrays;
      });
      if (batch == batches.end()) batch = batches.emplace(batches.end());
      batch->members.push_back(*member);
      batch->bytes += bytes;
    }
    bool changed = false;
    for (const Batch& batch : batches) {
      if (batch.members.size() < 2) continue;
      if (records_.wanted()) Explain(batch.members, batch.bytes);
      rule_.combine(batch.members);
      changed = true;
    }
    return changed;
  }

  void Explain(const std::vector<Instruction*>& members, Bytes bytes) const {
    std::vector<std::string> others;
    for (size_t n = 1; n < members.size(); ++n) others.push_back(members[n]->name());
    records_.Add(
        reason_, members[0]->name(),
        {{"others", fmt::format("{}", fmt::join(others, ", "))}, {"bytes", bytes.value()}});
  }

  Computation& computation_;
  const CombineRule& rule_;
  const Records& records_;
  const Reason& reason_;
  std::unordered_map<const Instruction*, int> kind_of_;  // looked up, never iterated
  std::vector<std::vector<Level>> levels_;               // of every kind
};

std::string SumKind(const Instruction& i) {
  if (!i.shape().IsArray() || i.has_control_edges()) return "";
  const std::optional<Opcode> reduction = hlo::ReducerOperation(*i.called()[0]);
  if (!reduction.has_value()) return "";
  return fmt::format("{} {} {} {} {}", static_cast<int>(*reduction),
                     static_cast<int>(i.shape().element_type), i.attrs().constrain_layout(),
                     cost::AxesOf(i), cost::GroupsKeyOf(i));
}

}  // namespace

std::string AllReduceKind(const Instruction& i) {
  return i.opcode() == Opcode::kAllReduce ? SumKind(i) : "";
}

std::string ReduceScatterKind(const Instruction& i) {
  return i.opcode() == Opcode::kReduceScatter ? SumKind(i) : "";
}

bool CombineCollectives(const hlo::Module& module, const PassContext& context,
                        const CombineRule& rule, const Reason& reason) {
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    changed |= Combiner(*computation, rule, context.records, reason).Run();
  }
  return changed;
}

std::vector<Instruction*> AddCombined(const std::vector<Instruction*>& members,
                                      const std::vector<Instruction*>& operands,
                                      const std::vector<hlo::Shape>& results) {
  const Instruction* first = members[0];
  Computation* computation = first->parent();
  Instruction* combined =
      computation->Add(first->opcode(), hlo::MakeTupleShape(results), operands, "", first);
  combined->set_called(first->called());
  std::vector<Instruction*> parts;
  for (size_t n = 0; n < members.size(); ++n) {
    parts.push_back(computation->Add(Opcode::kGetTupleElement, results[n], {combined},
                                     members[n]->name(), members[n]));
    parts.back()->mutable_attrs().set_tuple_index(static_cast<int64_t>(n));
  }
  return parts;
}

}  // namespace tpusim::passes
