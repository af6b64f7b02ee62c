#include "workloads/passes/collectives/combine.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Kinds that are followed at once; collectives of further kinds stay as they are.
constexpr size_t kMostKinds = 32;

// Collectives on their way to become one. Those of a kind follow one another: a later one comes
// after the earlier ones and all that those wait for, in what follows.
struct Batch {
  std::vector<Instruction*> members;
  Bytes bytes{0};  // as counted
  // For every kind the number of the last batch that has to come before this one; -1: none.
  std::vector<int> after;
};

class Combiner {
 public:
  Combiner(Computation& computation, const CombineRule& rule)
      : computation_(computation), rule_(rule) {}

  bool Run() {
    const std::vector<Instruction*> order = computation_.PostOrder();
    FindKinds(order);
    if (batches_.empty()) return false;
    std::unordered_map<const Instruction*, std::vector<int>> after;  // looked up, never iterated
    after.reserve(order.size());
    for (Instruction* i : order) {
      std::vector<int> before(batches_.size(), -1);
      for (const Instruction* operand : i->operands()) Raise(before, after.at(operand));
      for (const Instruction* earlier : i->control_predecessors()) Raise(before, after.at(earlier));
      const auto kind = kind_of_.find(i);
      if (kind != kind_of_.end()) Place(i, kind->second, before);
      after.emplace(i, std::move(before));
    }
    bool changed = false;
    for (const std::vector<Batch>& batches : batches_) {
      for (const Batch& batch : batches) changed |= Combine(batch);
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
      if (alike.size() < 2 || batches_.size() == kMostKinds) continue;
      for (const Instruction* i : alike) kind_of_[i] = static_cast<int>(batches_.size());
      batches_.emplace_back();
      open_.push_back(0);
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

  // With all that the batches named in `before` have to wait for by now.
  std::vector<int> Closure(std::vector<int> before) const {
    for (bool grown = true; grown;) {
      const std::vector<int> last = before;
      for (size_t k = 0; k < last.size(); ++k) {
        if (last[k] >= 0) Raise(before, batches_[k][last[k]].after);
      }
      grown = before != last;
    }
    return before;
  }

  // Puts `i` into the first batch of its kind with room that is still open, or a new one, and that
  // into `before`. Closed are those that one already found it has to wait for.
  void Place(Instruction* i, int kind, std::vector<int>& before) {
    std::vector<Batch>& batches = batches_[kind];
    const Bytes bytes = rule_.bytes(*i);
    const std::vector<int> all = Closure(before);
    size_t& open = open_[kind];
    open = std::max(open, static_cast<size_t>(all[kind] + 1));
    size_t at = open;
    while (at < batches.size() && !HasRoom(batches[at], bytes)) ++at;
    if (at == batches.size()) {
      batches.push_back({{}, Bytes(0), std::vector<int>(batches_.size(), -1)});
      if (at > 0) batches[at].after = batches[at - 1].after;
      batches[at].after[kind] = static_cast<int>(at) - 1;
    }
    batches[at].members.push_back(i);
    batches[at].bytes += bytes;
    // Those that follow it wait for the same.
    for (size_t n = at; n < batches.size() && Raise(batches[n].after, all); ++n) {
    }
    before[kind] = std::max(before[kind], static_cast<int>(at));
  }

  bool HasRoom(const Batch& batch, Bytes bytes) const {
    return batch.bytes + bytes <= rule_.most_bytes && batch.members.size() < rule_.most_arrays;
  }

  bool Combine(const Batch& batch) {
    if (batch.members.size() < 2) return false;
    rule_.combine(batch.members);
    return true;
  }

  Computation& computation_;
  const CombineRule& rule_;
  std::unordered_map<const Instruction*, int> kind_of_;  // looked up, never iterated
  std::vector<std::vector<Batch>> batches_;              // of every kind, in order
  std::vector<size_t> open_;                             // of every kind, the first that is open
};

}  // namespace

bool CombineCollectives(Computation& computation, const CombineRule& rule) {
  return Combiner(computation, rule).Run();
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
