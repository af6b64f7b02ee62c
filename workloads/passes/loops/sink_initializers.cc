#include <algorithm>
#include <vector>

#include "workloads/hlo/analysis/loop_stacks.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/loops/loops.h"
#include "workloads/passes/loops/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsBroadcastConstant(const Instruction& i) {
  return i.opcode() == Opcode::kBroadcast && !i.shape().IsScalar() &&
         i.operand(0)->opcode() == Opcode::kConstant && i.operand(0)->shape().IsScalar();
}

// Reads of element `index` of the tuple that the computation is given.
std::vector<Instruction*> Elements(const Computation& computation, int64_t index) {
  std::vector<Instruction*> elements;
  for (Instruction* i : computation.instructions()) {
    if (hlo::CarriedElement(*i, computation) == index) elements.push_back(i);
  }
  return elements;
}

// Whether elementwise operations use all of the value, so that a select before them costs no pass
// over memory.
bool UsedElementwise(const Instruction& value) {
  return !value.users().empty() &&
         std::all_of(value.users().begin(), value.users().end(), [&](const Instruction* user) {
           return hlo::IsElementwise(*user) && hlo::SameDims(user->shape(), value.shape());
         });
}

Instruction* Broadcast(Computation* computation, Instruction* scalar, const hlo::Shape& like) {
  const hlo::Shape shape = hlo::MakeShape(scalar->shape().element_type, like.dims);
  return computation->Add(Opcode::kBroadcast, hlo::WithOrder(shape, hlo::MinorToMajor(like)),
                          {scalar});
}

void SinkInto(Computation* body, const hlo::LoopCounter& counter, Instruction* element,
              const Instruction& initial) {
  const hlo::Walk users(element->users());
  Instruction* count = Elements(*body, counter.index).front();
  Instruction* start =
      hlo::AddIntConstant(body, count->shape().element_type, counter.start, "first");
  Instruction* first =
      body->Add(Opcode::kCompare, hlo::MakeShape(hlo::PrimitiveType::kPred, {}), {count, start});
  first->mutable_attrs().set_comparison_direction("EQ");
  const Instruction* constant = initial.operand(0);
  Instruction* value = body->Add(Opcode::kConstant, constant->shape(), {}, "initial", constant);
  Instruction* select = body->Add(
      Opcode::kSelect, element->shape(),
      {Broadcast(body, first, element->shape()), Broadcast(body, value, element->shape()), element},
      "initialized", &initial);
  for (Instruction* user : users) {
    for (size_t n = 0; n < user->operands().size(); ++n) {
      if (user->operand(n) == element) user->ReplaceOperand(n, select);
    }
  }
}

// Whether the loop writes all of an element of its carry and reads none of it. The TPU compiler
// recognises it where slots are written from the first on, not from the last (as gradients of
// stacked weights are).
bool OverwritesAll(const hlo::LoopFacts& loop, int64_t element) {
  const auto stack = hlo::StackOf(loop.loop(), element);
  return stack && stack->only_written &&
         hlo::OrderOf(stack->slot, loop) == hlo::SlotOrder::kAscending;
}

// Returns whether there was one.
bool SinkInitializersOf(Instruction& loop, const hlo::LoopFacts& facts, const Records& records) {
  Instruction* init = loop.operand(0);
  const std::optional<hlo::LoopCounter>& counter = facts.counter();
  if (init->opcode() != Opcode::kTuple || init->users().size() != 1 || !counter ||
      facts.trips().value_or(0) < 1) {
    return false;
  }
  Computation* body = loop.called()[0];
  const Computation& condition = *loop.called()[1];
  if (Elements(*body, counter->index).empty() || body->root()->opcode() != Opcode::kTuple) {
    return false;
  }
  bool changed = false;
  for (size_t n = 0; n < init->operands().size(); ++n) {
    const auto index = static_cast<int64_t>(n);
    Instruction* initial = init->operand(n);
    if (!IsBroadcastConstant(*initial) || !Elements(condition, index).empty()) continue;
    if (!OverwritesAll(facts, index)) {
      const std::vector<Instruction*> elements = Elements(*body, index);
      // Read once and elementwise only, so not passed on as it is either.
      if (elements.size() != 1 || !UsedElementwise(*elements[0])) continue;
      SinkInto(body, *counter, elements[0], *initial);
    }
    Instruction* memory =
        loop.parent()->Add(Opcode::kCustomCall, initial->shape(), {}, "allocate", initial);
    memory->mutable_attrs().set_custom_call_target(std::string(hlo::kAllocateBuffer));
    records.Add(reasons::kSunk, initial->name(), {{"loop", loop.name()}, {"element", index}});
    init->ReplaceOperand(n, memory);
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> SinkInitializers(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    for (Instruction* i : computation->PostOrder()) {
      if (i->opcode() != Opcode::kWhile) continue;
      const hlo::LoopFacts& facts = context.facts->Loops(module).Of(*i);
      changed = SinkInitializersOf(*i, facts, context.records) || changed;
    }
    if (computation->RemoveDead() > 0) {
      context.records.Add(reasons::kDeadInitializers, computation->name());
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
