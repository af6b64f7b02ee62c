#include <string>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/loop_carries.h"
#include "workloads/hlo/transforms/merge_reduces.h"
#include "workloads/hlo/transforms/plain_operations.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/combine.h"
#include "workloads/passes/collectives/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool ReadOnce(const Instruction& i) { return i.users().size() == 1 && !i.has_control_edges(); }

// The operand of which a term moves or converts the elements, perhaps to a place among zeros, so
// that the sum of several terms is the term of the sum; null if it computes anything else.
Instruction* MovedOperand(const Instruction& term) {
  switch (term.opcode()) {
    case Opcode::kTranspose:
    case Opcode::kReshape:
    case Opcode::kBitcast:
    case Opcode::kCopy:
      return term.operand(0);
    case Opcode::kConvert:
      return hlo::IsFloating(term.operand(0)->shape().element_type) ? term.operand(0)
                                                                         : nullptr;
    case Opcode::kDynamicUpdateSlice:
      return hlo::IsZero(*term.operand(0)) ? term.operand(1) : nullptr;
    default:
      return nullptr;
  }
}

// Finds the all-reduce of which a term only moves the elements; null if the term is something else.
Instruction* SumBehind(Instruction* term) {
  while (ReadOnce(*term)) {
    Instruction* operand = MovedOperand(*term);
    if (operand == nullptr) break;
    term = operand;
  }
  const bool adds = ReadOnce(*term) && !AllReduceKind(*term).empty() &&
                    hlo::ReducerOperation(*term->called()[0]) == Opcode::kAdd;
  return adds ? term : nullptr;
}

// Finds the all-reduces, of one kind, that the loop adds to element `n` of its carry; none if
// anything else reads the element or is added.
std::vector<Instruction*> SumsOf(const hlo::LoopCarry& carry, size_t n) {
  if (carry.in_body(n).size() != 1 || !carry.in_condition(n).empty() || carry.behind(n).empty()) {
    return {};
  }
  const Instruction* accumulator = carry.in_body(n)[0];
  std::vector<Instruction*> found;
  bool reads_accumulator = false;
  std::vector<Instruction*> terms = {carry.next(n)};
  while (!terms.empty()) {
    Instruction* term = terms.back();
    terms.pop_back();
    if (!ReadOnce(*term)) return {};
    if (term == accumulator) {
      reads_accumulator = true;
    } else if (term->opcode() == Opcode::kAdd) {
      terms.insert(terms.end(), {term->operand(1), term->operand(0)});
    } else if (Instruction* sum = SumBehind(term)) {
      if (!found.empty() && AllReduceKind(*sum) != AllReduceKind(*found[0])) return {};
      found.push_back(sum);
    } else {
      return {};
    }
  }
  return reads_accumulator ? found : std::vector<Instruction*>{};
}

// Adds up over devices behind the loop what element `n` has added up on each.
void Sink(hlo::LoopCarry& carry, size_t n, const std::vector<Instruction*>& sums,
          const Records& records) {
  Instruction* initial = carry.initial(n);
  const std::vector<Instruction*> reads = carry.behind(n);
  hlo::Computation* outside = carry.loop()->parent();
  Instruction* part = outside->Add(Opcode::kGetTupleElement, reads[0]->shape(), {carry.loop()},
                                   reads[0]->name(), reads[0]);
  const Instruction* first = sums[0];
  Instruction* total =
      outside->Add(first->opcode(), part->shape(), {part}, first->name(), first);
  const hlo::PrimitiveType type = part->shape().element_type;
  total->set_called({type == first->shape().element_type
                         ? first->called()[0]
                         : hlo::AddReducer(*outside->parent(), Opcode::kAdd, type, "sum")});
  records.Add(reasons::kSumSunk, total->name(), {{"loop", carry.loop()->name()}});
  if (!hlo::IsZero(*initial)) {
    total = outside->Add(Opcode::kAdd, part->shape(), {initial, total}, "total", part);
    std::vector<hlo::LoopCarry::Element> elements = carry.elements();
    elements[n].initial =
        hlo::PlainOperations(*initial).Fill(type, initial->shape().dims, 0);
    carry.Rebuild(elements);
  }
  for (Instruction* read : hlo::Walk(reads)) {
    read->ReplaceAllUsesWith(total);
    outside->Remove(read);
  }
  for (Instruction* sum : hlo::Walk(sums)) {
    sum->ReplaceAllUsesWith(sum->operand(0));
    carry.body()->Remove(sum);
  }
}

}  // namespace

absl::StatusOr<bool> SinkAllReduces(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  // Inner loops first: what leaves one may leave the next.
  for (Instruction* loop : hlo::Walk(LoopsWithOwnBodies(module))) {
    hlo::LoopCarry carry;
    bool found = hlo::LoopCarry::Find(loop, &carry);
    for (size_t n = 0; found && n < carry.size(); ++n) {
      const std::vector<Instruction*> sums = SumsOf(carry, n);
      if (sums.empty()) continue;
      Sink(carry, n, sums, context.records);
      found = hlo::LoopCarry::Find(loop, &carry);  // reads have moved
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
