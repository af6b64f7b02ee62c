#include "workloads/passes/collectives/combine_all_reduces.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/hlo/analysis/control.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/collectives/all_reduce_kind.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr Bytes kMostBytes(120 * kMiB);
constexpr size_t kMostArrays = 256;

// Kinds of all-reduces that are followed at once; those of further kinds stay as they are.
constexpr size_t kMostKinds = 32;

// All-reduces on their way to become one. Those of a kind follow one another: a later one comes
// after the earlier ones and all that those wait for, in what follows.
struct Batch {
  std::vector<Instruction*> members;
  Bytes bytes{0};  // as counted
  // For every kind the number of the last batch that has to come before this one; -1: none.
  std::vector<int> after;
};

// Of the result; where all that is done with it is to round it, of what that leaves.
Bytes CountedBytes(const Instruction& all_reduce) {
  const hlo::Shape& shape = all_reduce.shape();
  const Instruction* i = &all_reduce;
  while (i->users().size() == 1 && !i->IsRoot()) {
    i = i->users()[0];
    if (i->opcode() == Opcode::kConvert) return std::min(shape.ByteSize(), i->shape().ByteSize());
    const bool same = hlo::IsIndexMap(i->opcode()) && i->shape().IsArray() &&
                      i->shape().ElementCount() == shape.ElementCount();
    if (!same) break;
  }
  return shape.ByteSize();
}

class Combiner {
 public:
  explicit Combiner(Computation& computation) : computation_(computation) {}

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
      const std::string kind = AllReduceKind(*i);
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
  // into `before`. Closed are those that an all-reduce already found it has to wait for.
  void Place(Instruction* i, int kind, std::vector<int>& before) {
    std::vector<Batch>& batches = batches_[kind];
    const Bytes bytes = CountedBytes(*i);
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

  static bool HasRoom(const Batch& batch, Bytes bytes) {
    return batch.bytes + bytes <= kMostBytes && batch.members.size() < kMostArrays;
  }

  bool Combine(const Batch& batch) {
    if (batch.members.size() < 2) return false;
    std::vector<Instruction*> operands;
    std::vector<hlo::Shape> shapes;
    for (const Instruction* member : batch.members) {
      operands.push_back(member->operand(0));
      shapes.push_back(member->shape());
    }
    const Instruction* first = batch.members[0];
    Instruction* combined = computation_.Add(Opcode::kAllReduce, hlo::MakeTupleShape(shapes),
                                             operands, "all-reduce", first);
    combined->set_called(first->called());
    for (size_t n = 0; n < batch.members.size(); ++n) {
      Instruction* member = batch.members[n];
      Instruction* part = computation_.Add(Opcode::kGetTupleElement, member->shape(), {combined},
                                           member->name(), member);
      part->mutable_attrs().set_tuple_index(static_cast<int64_t>(n));
      member->ReplaceAllUsesWith(part);
      computation_.Remove(member);
    }
    return true;
  }

  Computation& computation_;
  std::unordered_map<const Instruction*, int> kind_of_;  // looked up, never iterated
  std::vector<std::vector<Batch>> batches_;              // of every kind, in order
  std::vector<size_t> open_;                             // of every kind, the first that is open
};

}  // namespace

absl::StatusOr<bool> CombineAllReduces(hlo::Module& module, const PassContext&) {
  bool changed = false;
  for (Computation* computation : ControlComputations(module)) {
    changed |= Combiner(*computation).Run();
  }
  return changed;
}

}  // namespace tpusim::passes
