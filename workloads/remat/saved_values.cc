#include "workloads/remat/saved_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/checkpoint_names.h"
#include "workloads/hlo/transforms/forward_tuples.h"
#include "workloads/hlo/transforms/loop_carries.h"
#include "workloads/remat/values.h"

namespace tpusim::remat {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// Moves a value between memories, as jax.device_put lowers.
Instruction* Placed(Instruction* value, const std::string& where, const Instruction* like) {
  Instruction* placed =
      value->parent()->Add(Opcode::kCustomCall, value->shape(), {value}, "device_put", like);
  placed->mutable_attrs().set_custom_call_target("annotate_device_placement");
  placed->mutable_attrs().set_custom_call_has_side_effect(true);
  hlo::SetFrontendAttribute(placed, "_xla_buffer_placement", where);
  return placed;
}

// A shape with a first dimension of `slots`.
Shape Stacked(const Shape& shape, int64_t slots) {
  std::vector<int64_t> dims = {slots};
  dims.insert(dims.end(), shape.dims.begin(), shape.dims.end());
  return hlo::MakeShape(shape.element_type, std::move(dims));
}

std::vector<Instruction*> SlotIndices(Instruction* index, int64_t rank) {
  std::vector<Instruction*> indices(static_cast<size_t>(rank) + 1, index);
  if (rank == 0) return indices;
  Instruction* zero = hlo::AddIntConstant(index->parent(), index->shape().element_type, 0);
  std::fill(indices.begin() + 1, indices.end(), zero);
  return indices;
}

// Adds an element to the carry of a loop; returns its read in the body.
Instruction* AddElement(Instruction* loop, Instruction* initial) {
  hlo::LoopCarry carry;
  TPUSIM_CHECK(hlo::LoopCarry::Find(loop, &carry), "no loop to carry more: " + loop->name());
  std::vector<hlo::LoopCarry::Element> elements = carry.elements();
  elements.push_back({-1, initial, nullptr});
  return carry.Rebuild(elements).at(0);
}

Instruction* LastElement(Instruction* loop) {
  const auto last = static_cast<int64_t>(loop->shape().tuple.size()) - 1;
  Instruction* element = loop->parent()->Add(Opcode::kGetTupleElement, loop->shape().tuple[last],
                                             {loop}, loop->name(), loop);
  element->mutable_attrs().set_tuple_index(last);
  return element;
}

// Writes a value of the forward body into a stack of its own; returns that, behind the loop.
Instruction* AddSlotWrites(const LoopPair& loops, Instruction* value, Instruction* initial) {
  const Shape one = Stacked(value->shape(), 1), all = initial->shape();
  Instruction* stack = AddElement(loops.forward, initial);
  Computation* body = stack->parent();
  Instruction* slot = body->Add(Opcode::kReshape, one, {value}, "broadcast_in_dim", value);
  std::vector<Instruction*> operands = {stack, slot};
  for (Instruction* index : SlotIndices(loops.written_at, value->shape().rank())) {
    operands.push_back(index);
  }
  Instruction* updated =
      body->Add(Opcode::kDynamicUpdateSlice, all, operands, "dynamic_update_slice", value);
  body->root()->ReplaceOperand(body->root()->operands().size() - 1, updated);
  return LastElement(loops.forward);
}

// Reads one iteration's slot of a stack (an array with a slot for each) in the backward body. The
// stack becomes an element of the loop only in Keep; until then the index is the first operand.
Instruction* AddSlotRead(const LoopPair& loops, const Shape& shape, const Instruction* like) {
  Computation* body = loops.read_at->parent();
  const Shape one = Stacked(shape, 1);
  std::vector<Instruction*> operands = {loops.read_at};
  for (Instruction* index : SlotIndices(loops.read_at, shape.rank())) operands.push_back(index);
  Instruction* slice = body->Add(Opcode::kDynamicSlice, one, operands, "dynamic_slice", like);
  hlo::SetDynamicSliceSizes(slice, one.dims);
  return body->Add(Opcode::kReshape, shape, {slice}, "squeeze", like);
}

// Returns a value as the n-th behind a barrier, which must be one of a tuple that is only taken
// apart; else the value itself.
Instruction* ThroughBarrier(Instruction* barrier, Instruction* value, int64_t n) {
  Computation* computation = barrier->parent();
  Instruction* tuple = barrier->operand(0);
  const auto takes_apart = [](const Instruction* user) {
    return user->opcode() == Opcode::kGetTupleElement;
  };
  if (tuple->opcode() != Opcode::kTuple || barrier->IsRoot() ||
      !std::ranges::all_of(barrier->users(), takes_apart)) {
    return value;
  }
  Shape shape = barrier->shape();
  shape.tuple.insert(shape.tuple.begin() + n, value->shape());
  std::vector<Instruction*> values = tuple->operands();
  values.insert(values.begin() + n, value);
  for (Instruction* user : barrier->users()) {
    const int64_t index = user->attrs().tuple_index();
    if (index >= n) user->mutable_attrs().set_tuple_index(index + 1);
  }
  barrier->ReplaceOperand(0, computation->Add(Opcode::kTuple, shape, values, "tuple", tuple));
  barrier->set_shape(shape);
  if (barrier->attrs().has_sharding()) barrier->mutable_attrs().clear_sharding();
  Instruction* element = computation->Add(Opcode::kGetTupleElement, value->shape(), {barrier},
                                          "optimization_barrier", barrier);
  element->mutable_attrs().set_tuple_index(n);
  return element;
}

// Removes the values behind a barrier that nothing reads; returns whether there were any.
bool PruneBarrier(Instruction* barrier) {
  Instruction* tuple = barrier->operand(0);
  if (tuple->opcode() != Opcode::kTuple || barrier->IsRoot() || barrier->has_control_edges()) {
    return false;
  }
  std::vector<Instruction*> values;
  std::vector<Shape> shapes;
  std::vector<int64_t> place(tuple->operands().size(), -1);
  for (const Instruction* user : barrier->users()) {
    if (user->opcode() != Opcode::kGetTupleElement) return false;
    place[user->attrs().tuple_index()] = 0;
  }
  for (size_t n = 0; n < place.size(); ++n) {
    if (place[n] < 0) continue;
    place[n] = static_cast<int64_t>(values.size());
    values.push_back(tuple->operand(n));
    shapes.push_back(barrier->shape().tuple[n]);
  }
  if (values.size() == place.size() || values.empty()) return false;
  const Shape shape = hlo::MakeTupleShape(shapes);
  for (Instruction* user : barrier->users()) {
    user->mutable_attrs().set_tuple_index(place[user->attrs().tuple_index()]);
  }
  barrier->ReplaceOperand(
      0, barrier->parent()->Add(Opcode::kTuple, shape, values, tuple->name(), tuple));
  barrier->set_shape(shape);
  if (barrier->attrs().has_sharding()) barrier->mutable_attrs().clear_sharding();
  return true;
}

}  // namespace

Instruction* ResidualSaver::Rounded(Instruction* forward) {
  const auto [at, is_new] = rounded_.try_emplace(forward, forward);
  const std::optional<std::string> name = hlo::CheckpointName(*forward);
  if (is_new && name) {
    hlo::RemoveCheckpointName(forward);
    if (forward->users().empty() || forward->opcode() != Opcode::kReducePrecision) {
      at->second = forward->operand(0);
      forward->ReplaceAllUsesWith(at->second);
    }
    hlo::AddName(at->second, *name);
  }
  return at->second;
}

// Returns the initial value of stacks of one shape.
Instruction* ResidualSaver::Zeros(const LoopPair& loops, const Shape& shape) {
  Computation* around = loops.forward->parent();
  const Shape all = Stacked(shape, loops.slots);
  Instruction*& zeros = zeros_[{around, all.ToString()}];
  if (zeros == nullptr || zeros->removed()) {
    Instruction* zero = hlo::AddConstant(around, shape.element_type, 0);
    zeros = around->Add(Opcode::kBroadcast, all, {zero}, "broadcast", loops.forward);
  }
  return zeros;
}

bool IsRead(const Instruction* value, const std::unordered_set<const Instruction*>& replaced) {
  std::vector<const Instruction*> work = {value};
  std::unordered_set<const Instruction*> seen = {value};
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (i->IsRoot() || (i->HasSideEffect() && !hlo::PlacementOf(*i))) return true;
    for (const Instruction* user : i->users()) {
      if (!replaced.contains(user) && seen.insert(user).second) work.push_back(user);
    }
  }
  return false;
}

Instruction* ResidualSaver::Residual(const NamedValue& named, bool on_host) {
  Instruction*& left = left_[{named.forward, on_host}];
  if (left != nullptr) return left;
  left = on_host ? named.forward : Rounded(named.forward);
  if (on_host) left = Placed(left, "pinned_host", left);
  return left;
}

absl::Status ResidualSaver::Keep(const NamedValue& named, bool on_host) {
  const auto at = brought_.find({named.forward, named.barrier, named.value->parent(), on_host});
  if (at != brought_.end() && !at->second->removed()) {
    named.value->ReplaceAllUsesWith(at->second);
    return absl::OkStatus();
  }
  if (named.forward->removed() || (named.loops && named.loops->read_at->removed())) {
    return UserError(fmt::format("'{}' at {}: what it would be kept for is gone already",
                                 named.name, named.value->Describe()));
  }
  Instruction* kept = Residual(named, on_host);
  // What the backward pass reads comes first: with readers, indices are not cut on the way.
  Instruction* read = kept;
  if (named.loops) read = AddSlotRead(*named.loops, kept->shape(), named.value);
  Instruction* brought = read;
  // As JAX has them: what is kept comes first.
  if (named.barrier != nullptr) {
    brought = ThroughBarrier(named.barrier, brought, behind_[named.barrier]++);
  }
  if (on_host) brought = Placed(brought, "device", named.value);
  brought_[{named.forward, named.barrier, named.value->parent(), on_host}] = brought;
  named.value->ReplaceAllUsesWith(brought);
  if (!named.loops) return absl::OkStatus();
  Instruction* stack = AddSlotWrites(*named.loops, kept, Zeros(*named.loops, kept->shape()));
  read->operand(0)->ReplaceOperand(0, AddElement(named.loops->backward, stack));
  return absl::OkStatus();
}

void Sweep(hlo::Module& module) {
  bool changed = true;
  while (changed) {
    hlo::ForwardAllTuples(module);
    changed = false;
    for (Computation* computation : module.computations()) {
      for (Instruction* i : hlo::Walk(computation->PostOrder())) {
        if (i->opcode() == Opcode::kOptBarrier) changed = PruneBarrier(i) || changed;
        // RemoveDead keeps annotate_device_placement, which XLA marks as a side effect; without
        // users it has no effect.
        if (hlo::PlacementOf(*i) && i->users().empty() && !i->IsRoot()) {
          computation->Remove(i);
          changed = true;
        }
      }
      computation->RemoveDead();
    }
    changed = hlo::SimplifyLoopCarries(module) || changed;
  }
  module.RemoveUnreachable();
  module.Cleanup();
}

}  // namespace tpusim::remat
