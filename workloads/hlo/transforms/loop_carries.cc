#include "workloads/hlo/transforms/loop_carries.h"

#include <unordered_map>
#include <unordered_set>

#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"

namespace tpusim::hlo {
namespace {

// Sorts the users of a tuple by the element that they read. False: it has other users.
bool ReadsOf(const Instruction& tuple, size_t size, std::vector<std::vector<Instruction*>>* reads) {
  reads->assign(size, {});
  if (tuple.IsRoot()) return false;
  for (Instruction* user : tuple.users()) {
    if (user->opcode() != Opcode::kGetTupleElement || user->has_control_edges()) return false;
    (*reads)[user->attrs().tuple_index()].push_back(user);
  }
  return true;
}

Instruction* OnlyParameter(const Computation& computation) {
  const std::vector<Instruction*> parameters = computation.parameters();
  return parameters.size() == 1 ? parameters[0] : nullptr;
}

bool ForwardInvariants(LoopCarry& carry) {
  bool changed = false;
  for (size_t n = 0; n < carry.size(); ++n) {
    if (!carry.Forwards(n)) continue;
    Instruction* initial = carry.initial(n);
    for (Instruction* read : carry.behind(n)) {
      if (read->users().empty() && !read->IsRoot()) continue;
      read->ReplaceAllUsesWith(initial);
      changed = true;
    }
    if (initial->opcode() != Opcode::kConstant || !initial->shape().IsScalar()) continue;
    for (const auto* reads : {&carry.in_body(n), &carry.in_condition(n)}) {
      for (Instruction* read : *reads) {
        Computation* inside = read->parent();
        // The body hands the element on as before: it is seen not to change.
        const Instruction* handed_on = inside == carry.body() ? inside->root() : nullptr;
        Instruction* constant = nullptr;
        for (Instruction* user : Walk(read->users())) {
          if (user == handed_on) continue;
          if (constant == nullptr) {
            constant =
                inside->Add(Opcode::kConstant, initial->shape(), {}, initial->name(), initial);
          }
          for (size_t k = 0; k < user->operands().size(); ++k) {
            if (user->operand(k) == read) user->ReplaceOperand(k, constant);
          }
          changed = true;
        }
      }
    }
  }
  return changed;
}

// Elements that something reads for more than themselves.
std::vector<char> LiveElements(const LoopCarry& carry) {
  std::vector<char> live(carry.size(), 0);
  std::vector<Instruction*> work;
  std::unordered_set<const Instruction*> seen;
  std::unordered_map<const Instruction*, size_t> element_of;  // looked up, never iterated
  const auto want = [&](Instruction* i) {
    if (seen.insert(i).second) work.push_back(i);
  };
  const auto keep = [&](size_t n) {
    if (live[n] != 0) return;
    live[n] = 1;
    want(carry.next(n));
  };
  for (size_t n = 0; n < carry.size(); ++n) {
    for (const Instruction* read : carry.in_body(n)) element_of[read] = n;
  }
  for (size_t n = 0; n < carry.size(); ++n) {
    bool read = false;
    for (const auto* reads : {&carry.in_condition(n), &carry.behind(n)}) {
      for (const Instruction* i : *reads) read = read || i->IsRoot() || !i->users().empty();
    }
    if (read) keep(n);
  }
  for (Instruction* i : carry.body()->instructions()) {
    if (i->HasSideEffect() || i->has_control_edges()) want(i);
  }
  while (!work.empty()) {
    Instruction* i = work.back();
    work.pop_back();
    const auto it = element_of.find(i);
    if (it != element_of.end()) keep(it->second);
    for (Instruction* operand : i->operands()) want(operand);
  }
  return live;
}

bool RemoveDeadElements(LoopCarry& carry) {
  const std::vector<char> live = LiveElements(carry);
  std::vector<LoopCarry::Element> kept;
  for (size_t n = 0; n < live.size(); ++n) {
    if (live[n] != 0) kept.push_back({static_cast<int64_t>(n), carry.initial(n), carry.next(n)});
  }
  if (kept.size() == live.size() || kept.empty()) return false;
  carry.Rebuild(kept);
  return true;
}

}  // namespace

bool LoopCarry::Find(Instruction* loop, LoopCarry* carry) {
  if (loop->opcode() != Opcode::kWhile || loop->called().size() != 2 ||
      loop->operand(0)->opcode() != Opcode::kTuple ||
      loop->called()[0]->root()->opcode() != Opcode::kTuple || loop->has_control_edges()) {
    return false;
  }
  carry->loop_ = loop;
  carry->body_parameter_ = OnlyParameter(*loop->called()[0]);
  carry->condition_parameter_ = OnlyParameter(*loop->called()[1]);
  if (carry->body_parameter_ == nullptr || carry->condition_parameter_ == nullptr) return false;
  const size_t size = carry->size();
  return ReadsOf(*carry->body_parameter_, size, &carry->reads_[0]) &&
         ReadsOf(*carry->condition_parameter_, size, &carry->reads_[1]) &&
         ReadsOf(*loop, size, &carry->reads_[2]);
}

std::vector<LoopCarry::Element> LoopCarry::elements() const {
  std::vector<Element> elements;
  for (size_t n = 0; n < size(); ++n) {
    elements.push_back({static_cast<int64_t>(n), initial(n), next(n)});
  }
  return elements;
}

bool LoopCarry::Forwards(size_t n) const {
  return ForwardsElement(*loop_, static_cast<int64_t>(n));
}

std::vector<Instruction*> LoopCarry::Rebuild(const std::vector<Element>& elements) {
  std::vector<Shape> shapes;
  std::vector<int64_t> place(size(), -1);
  std::vector<Instruction*> initials, nexts, added;
  for (const Element& element : elements) {
    const auto index = static_cast<int64_t>(shapes.size());
    const Shape& shape =
        element.old < 0 ? element.initial->shape() : body_parameter_->shape().tuple[element.old];
    if (element.old >= 0) place[element.old] = index;
    shapes.push_back(shape);
    initials.push_back(element.initial);
    Instruction* next = element.next;
    if (element.old < 0) {
      next = body()->Add(Opcode::kGetTupleElement, shape, {body_parameter_}, "invariant",
                         element.initial);
      next->mutable_attrs().set_tuple_index(index);
      added.push_back(next);
    }
    nexts.push_back(next);
  }
  for (auto& reads : reads_) {
    for (size_t n = 0; n < reads.size(); ++n) {
      for (Instruction* read : reads[n]) {
        if (place[n] >= 0) read->mutable_attrs().set_tuple_index(place[n]);
      }
    }
  }
  const Shape shape = MakeTupleShape(shapes);
  Instruction* root = body()->root();
  body()->set_root(body()->Add(Opcode::kTuple, shape, nexts, root->name(), root));
  Instruction* initial = loop_->operand(0);
  loop_->ReplaceOperand(
      0, loop_->parent()->Add(Opcode::kTuple, shape, initials, initial->name(), initial));
  loop_->set_shape(shape);
  body_parameter_->set_shape(shape);
  condition_parameter_->set_shape(shape);
  if (loop_->attrs().has_sharding()) loop_->mutable_attrs().clear_sharding();
  if (initial->users().empty()) initial->parent()->Remove(initial);
  for (size_t n = 0; n < place.size(); ++n) {
    if (place[n] >= 0) continue;
    for (Instruction* read : Walk(reads_[2][n])) read->parent()->Remove(read);
  }
  body()->RemoveDead();
  condition()->RemoveDead();
  return added;
}

std::vector<Instruction*> LoopsWithOwnBodies(const Module& module) {
  std::unordered_map<const Computation*, int> callers;
  const std::vector<Computation*> order = module.PostOrder();
  for (const Computation* computation : order) {
    for (const Instruction* i : computation->instructions()) {
      for (const Computation* called : i->called()) ++callers[called];
    }
  }
  std::vector<Instruction*> loops;  // inner ones first
  for (const Computation* computation : order) {
    for (Instruction* i : computation->instructions()) {
      if (i->opcode() == Opcode::kWhile && i->called().size() == 2 &&
          callers[i->called()[0]] == 1 && callers[i->called()[1]] == 1) {
        loops.push_back(i);
      }
    }
  }
  return loops;
}

bool SimplifyLoopCarries(Module& module) {
  bool changed = false;
  for (Instruction* loop : Walk(LoopsWithOwnBodies(module))) {
    LoopCarry carry;
    if (!LoopCarry::Find(loop, &carry)) continue;
    const bool forwarded = ForwardInvariants(carry);
    changed = forwarded || changed;
    // Reads have moved.
    if (forwarded && !LoopCarry::Find(loop, &carry)) continue;
    changed = RemoveDeadElements(carry) || changed;
  }
  return changed;
}

}  // namespace tpusim::hlo
