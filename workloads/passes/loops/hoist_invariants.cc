#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/common_subexpressions.h"
#include "workloads/hlo/transforms/loop_carries.h"
#include "workloads/passes/loops/limits.h"
#include "workloads/passes/loops/loops.h"
#include "workloads/passes/loops/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Whether the result depends on nothing but the operands.
bool DependsOnOperandsOnly(const Instruction& i) {
  const Opcode op = i.opcode();
  const bool computes = hlo::IsElementwise(op) || hlo::RunsAsKernel(op) || hlo::IsIndexMap(op) ||
                        op == Opcode::kConstant;
  return computes && i.shape().IsArray() && !hlo::OwnsCallees(op) && !i.has_control_edges() &&
         !i.HasSideEffect();
}

// Whether the instruction is fused into the kernel that reads it.
bool CostsNothing(const Instruction& i) {
  return hlo::IsIndexMap(i.opcode()) || i.operands().empty() || i.shape().IsScalar();
}

class Hoist {
 public:
  Hoist(hlo::LoopCarry& carry, const Records& records) : carry_(carry), records_(records) {}

  bool Run() {
    for (size_t n = 0; n < carry_.size(); ++n) {
      if (!carry_.Forwards(n)) continue;
      for (Instruction* read : carry_.in_body(n)) outside_[read] = carry_.initial(n);
    }
    const std::vector<Instruction*> order = carry_.body()->PostOrder();
    for (Instruction* i : order) {
      if (IsInvariant(*i)) invariant_.insert(i);
    }
    std::vector<Instruction*> hoisted;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      Instruction* i = *it;
      const bool read_inside =
          std::any_of(i->users().begin(), i->users().end(),
                      [&](const Instruction* user) { return stays_.contains(user); });
      if (!invariant_.contains(i)) {
        stays_.insert(i);
      } else if (read_inside && IsWorthIt(*i)) {
        hoisted.push_back(i);
      } else if (read_inside) {
        stays_.insert(i);
      }
    }
    std::reverse(hoisted.begin(), hoisted.end());
    if (hoisted.empty()) return false;
    std::vector<hlo::LoopCarry::Element> elements = carry_.elements();
    for (Instruction* i : hoisted) {
      records_.Add(reasons::kHoisted, i->name(), {{"loop", carry_.loop()->name()}});
      elements.push_back({-1, Outside(i), nullptr});
    }
    const std::vector<Instruction*> inside = carry_.Rebuild(elements);
    for (size_t n = 0; n < hoisted.size(); ++n) hoisted[n]->ReplaceAllUsesWith(inside[n]);
    carry_.body()->RemoveDead();
    return true;
  }

 private:
  bool IsInvariant(const Instruction& i) const {
    return DependsOnOperandsOnly(i) &&
           std::all_of(i.operands().begin(), i.operands().end(), [&](const Instruction* operand) {
             return outside_.contains(operand) || invariant_.contains(operand);
           });
  }

  // Whether it takes no more memory than the elements of the carry that it is computed from.
  bool IsWorthIt(const Instruction& i) const {
    if (CostsNothing(i)) return false;
    Bytes read(0);
    std::vector<const Instruction*> work = {&i};
    std::unordered_set<const Instruction*> seen = {&i};
    while (!work.empty()) {
      if (std::ssize(seen) >= limits::kInvariantExpression.most()) {
        limits::kInvariantExpression.Reached();
        return false;
      }
      const Instruction* next = work.back();
      work.pop_back();
      for (const Instruction* operand : next->operands()) {
        if (!seen.insert(operand).second) continue;
        if (outside_.contains(operand)) {
          read += operand->shape().ByteSize();
        } else {
          work.push_back(operand);
        }
      }
      if (read >= i.shape().ByteSize()) return true;
    }
    return false;
  }

  // Returns a copy of the value before the loop, with copies of all that it is computed from.
  Instruction* Outside(Instruction* wanted) {
    std::vector<std::pair<Instruction*, size_t>> stack = {{wanted, 0}};
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      if (outside_.contains(i)) {
        stack.pop_back();
        continue;
      }
      if (next < i->operands().size()) {
        Instruction* operand = i->operand(next++);
        if (!outside_.contains(operand)) stack.emplace_back(operand, 0);
        continue;
      }
      std::vector<Instruction*> operands;
      for (const Instruction* operand : i->operands()) operands.push_back(outside_.at(operand));
      Instruction* copy =
          carry_.loop()->parent()->Add(i->opcode(), i->shape(), operands, i->name(), i);
      copy->set_called(i->called());
      outside_[i] = copy;
      stack.pop_back();
    }
    return outside_.at(wanted);
  }

  hlo::LoopCarry& carry_;
  const Records& records_;
  std::unordered_map<const Instruction*, Instruction*> outside_;  // looked up, never iterated
  std::unordered_set<const Instruction*> invariant_;
  std::unordered_set<const Instruction*> stays_;
};

}  // namespace

absl::StatusOr<bool> HoistInvariants(hlo::Module& module, const PassContext& context) {
  // Inner loops first: what leaves one may leave the next.
  bool any = false;
  for (Instruction* loop : hlo::Walk(LoopsWithOwnBodies(module))) {
    // A carry names instructions of the body: none that a rewrite would find dead.
    if (loop->called()[0]->RemoveDead() > 0) {
      context.records.Add(reasons::kDeadInLoop, loop->name());
      any = true;
    }
    hlo::LoopCarry carry;
    if (!hlo::LoopCarry::Find(loop, &carry)) continue;
    const int64_t trips = context.facts->Loops(module).Of(*loop).trips().value_or(1);
    if (NarrowStacks(carry, trips)) {
      context.records.Add(reasons::kStacksNarrowed, loop->name());
      any = true;
      if (!hlo::LoopCarry::Find(loop, &carry)) continue;  // reads have moved
    }
    any = Hoist(carry, context.records).Run() || any;
  }
  if (!any) return false;
  hlo::SimplifyLoopCarries(module);
  // Loops over one stack, forward and backward, need one of what is made of it.
  for (hlo::Computation* computation : ControlComputations(module)) {
    hlo::EliminateCommonSubexpressions(computation);
  }
  return true;
}

}  // namespace tpusim::passes
