#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/compiled/compiled.h"
#include "workloads/passes/compiled/order_edit.h"
#include "workloads/passes/compiled/reasons.h"
#include "workloads/passes/compiled/start_of.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// A fusion whose result is that of a call of `target`.
bool IsFusionOf(const Instruction& i, std::string_view target) {
  return i.opcode() == Opcode::kFusion && hlo::IsCallOf(*i.called()[0]->root(), target);
}

const Instruction* CollectiveIn(const Computation& body) {
  for (const Instruction* i : body.PostOrder()) {
    if (hlo::IsCollective(i->opcode())) return i;
  }
  return nullptr;
}

// The purpose of an element of a kernel's result.
enum class Carried {
  kNo,
  kHandedOn,  // an operand as it came
  kProceeds,  // what the collective has made so far; the end of it reads the buffer itself
};

Carried CarriedAs(const Instruction& element) {
  if (element.opcode() == Opcode::kParameter) return Carried::kHandedOn;
  return hlo::IsCollective(element.opcode()) ? Carried::kProceeds : Carried::kNo;
}

bool CarriesCollective(const Instruction& fusion) {
  return fusion.opcode() == Opcode::kFusion && fusion.shape().IsTuple() &&
         fusion.called()[0]->root()->opcode() == Opcode::kTuple &&
         std::ranges::any_of(fusion.called()[0]->root()->operands(), [](const Instruction* value) {
           return CarriedAs(*value) == Carried::kProceeds;
         });
}

// Users of what a kernel only forwards take it from where the kernel has it from.
void Bypass(Instruction* fusion) {
  const Instruction* tuple = fusion->called()[0]->root();
  for (Instruction* element : hlo::Walk(fusion->users())) {
    if (element->opcode() != Opcode::kGetTupleElement) continue;
    const Instruction* value = tuple->operand(element->attrs().tuple_index());
    if (CarriedAs(*value) != Carried::kHandedOn) continue;
    element->ReplaceAllUsesWith(fusion->operand(value->attrs().parameter_number()));
    fusion->parent()->Remove(element);
  }
}

// The operands of `body` that its root needs, in order; the rest of its parameters go.
std::vector<int64_t> TrimParameters(Computation* body) {
  body->RemoveDead();
  std::vector<int64_t> kept;
  for (Instruction* parameter : hlo::Walk(body->parameters())) {
    if (parameter->users().empty() && !parameter->IsRoot()) {
      body->Remove(parameter);
      continue;
    }
    kept.push_back(parameter->attrs().parameter_number());
    parameter->mutable_attrs().set_parameter_number(static_cast<int64_t>(kept.size()) - 1);
  }
  return kept;
}

// Whether only one instruction of the module calls `body`.
bool RunsAlone(const Computation& body) {
  int64_t callers = 0;
  for (const Computation* computation : body.parent()->computations()) {
    for (const Instruction* i : computation->instructions()) {
      callers += std::ranges::count(i->called(), &body);
    }
  }
  return callers == 1;
}

// The kernel without what it carried. Error: something still uses that.
absl::Status Unload(Instruction* fusion, OrderEdit& order) {
  Computation* computation = fusion->parent();
  Computation* body = fusion->called()[0];
  const Instruction* tuple = body->root();
  std::vector<int64_t> kept;
  for (size_t n = 0; n < tuple->operands().size(); ++n) {
    if (CarriedAs(*tuple->operand(n)) == Carried::kNo) kept.push_back(static_cast<int64_t>(n));
  }
  if (kept.empty()) return NoRule(fusion->Describe() + " carries a collective and does nothing");
  if (!RunsAlone(*body)) {
    return NoRule(fmt::format("{} and another instruction call {}, which carries a collective",
                              fusion->Describe(), body->name()));
  }
  std::vector<Instruction*> values;
  std::vector<hlo::Shape> shapes;
  for (const int64_t n : kept) {
    values.push_back(tuple->operand(n));
    shapes.push_back(fusion->shape().tuple[n]);
  }
  const bool one = kept.size() == 1;
  Instruction* old_root = body->root();
  body->set_root(one ? values[0]
                     : body->Add(Opcode::kTuple, hlo::MakeTupleShape(shapes), values, "tuple"));
  body->Remove(old_root);
  for (Instruction* i : hlo::Walk(body->instructions())) {
    if (hlo::IsCollective(i->opcode()) && i->users().empty()) body->Remove(i);
  }
  std::vector<Instruction*> operands;
  for (const int64_t n : TrimParameters(body)) operands.push_back(fusion->operand(n));
  Instruction* light = computation->Add(
      Opcode::kFusion, one ? shapes[0] : hlo::MakeTupleShape(shapes), operands, fusion->name());
  light->mutable_attrs() = fusion->attrs();
  light->mutable_attrs().clear_output_operand_aliasing();
  light->set_called({body});
  order.Insert(fusion, light);
  for (Instruction* element : hlo::Walk(fusion->users())) {
    const auto place = std::find(kept.begin(), kept.end(), element->attrs().tuple_index());
    if (element->opcode() != Opcode::kGetTupleElement || place == kept.end()) {
      if (element->opcode() == Opcode::kGetTupleElement && element->users().empty()) {
        computation->Remove(element);
        continue;
      }
      return NoRule(fmt::format("{} takes of {} what belongs to a collective", element->Describe(),
                                fusion->name()));
    }
    if (one) {
      element->ReplaceAllUsesWith(light);
      computation->Remove(element);
    } else {
      element->ReplaceOperand(0, light);
      element->mutable_attrs().set_tuple_index(place - kept.begin());
    }
  }
  fusion->MoveControlTo(light, light);
  computation->Remove(fusion);
  return absl::OkStatus();
}

// The state of a collective that has begun has its operands first, as they came.
bool IsOperandOf(const Instruction& collective, int64_t element) {
  return element < static_cast<int64_t>(collective.operands().size());
}

// `begin` and `end`, fusions of a collective's start and done, become the halves of it.
void Join(Instruction* begin, Instruction* end, OrderEdit& order) {
  Computation* computation = begin->parent();
  const Instruction* collective = CollectiveIn(*begin->called()[0]);
  std::vector<Instruction*> operands;
  for (const Instruction* operand : collective->operands()) {
    operands.push_back(begin->operand(operand->attrs().parameter_number()));
  }
  Instruction* start = StartOf(*collective, operands, end->shape(), computation);
  Instruction* done =
      computation->Add(Opcode::kAsyncDone, end->shape(), {start}, collective->name() + "-done");
  *done->mutable_attrs().mutable_metadata() = end->attrs().metadata();
  order.Insert(begin, start);
  order.Insert(end, done);
  begin->MoveControlTo(start, start);
  end->MoveControlTo(done, done);
  end->ReplaceAllUsesWith(done);
  // The end may have had the operand from a copy of it, made meanwhile: it waits for that still.
  for (Instruction* operand : end->operands()) {
    if (operand->opcode() == Opcode::kCopyDone) done->AddControlPredecessor(operand);
  }
  computation->Remove(end);
  for (Instruction* element : hlo::Walk(begin->users())) {
    if (const int64_t n = element->attrs().tuple_index(); IsOperandOf(*collective, n)) {
      element->ReplaceAllUsesWith(operands[n]);
    }
    computation->Remove(element);
  }
  computation->Remove(begin);
}

// The fusion in which what ends in `end` began. Error: there is none.
absl::StatusOr<Instruction*> BeginOf(const Instruction& end) {
  for (const Instruction* element : end.operands()) {
    if (element->opcode() == Opcode::kGetTupleElement &&
        IsFusionOf(*element->operand(0), "AsyncCollectiveStart")) {
      return element->operand(0);
    }
  }
  return NoRule(fmt::format("{} ends a collective that begins nowhere", end.Describe()));
}

// The loop without those elements of its carry that it forwards and nothing in it reads: behind it
// they are what they were before.
void ThinCarry(Instruction* loop, OrderEdit& order, OrderEdit& body_order) {
  Computation* body = loop->called()[0];
  Instruction* initial = loop->operand(0);
  if (initial->opcode() != Opcode::kTuple || body->root()->opcode() != Opcode::kTuple) return;
  const std::vector<Instruction*> parameters = {body->parameters()[0],
                                                loop->called()[1]->parameters()[0]};
  const auto size = static_cast<int64_t>(initial->operands().size());
  std::vector<bool> idle(size);
  for (int64_t n = 0; n < size; ++n) idle[n] = hlo::ForwardsElement(*loop, n);
  const auto keep = [&](const Instruction* parameter, const Instruction* reader) {
    for (const Instruction* element : parameter->users()) {
      if (element->opcode() != Opcode::kGetTupleElement) return false;
      if (element->users().empty()) continue;
      const bool handed_on = element->users().size() == 1 && element->users()[0] == reader;
      if (!handed_on) idle[element->attrs().tuple_index()] = false;
    }
    return true;
  };
  if (!keep(parameters[0], body->root()) || !keep(parameters[1], nullptr)) return;
  if (!std::ranges::all_of(loop->users(), [](const Instruction* user) {
        return user->opcode() == Opcode::kGetTupleElement;
      })) {
    return;
  }
  std::vector<int64_t> place(size, -1);
  std::vector<Instruction*> before, after;
  std::vector<hlo::Shape> shapes;
  for (int64_t n = 0; n < size; ++n) {
    if (idle[n]) continue;
    place[n] = static_cast<int64_t>(before.size());
    before.push_back(initial->operand(n));
    after.push_back(body->root()->operand(n));
    shapes.push_back(initial->shape().tuple[n]);
  }
  if (static_cast<int64_t>(before.size()) == size) return;
  const hlo::Shape shape = hlo::MakeTupleShape(shapes);
  Instruction* carry = loop->parent()->Add(Opcode::kTuple, shape, before, initial->name());
  order.Insert(initial, carry);
  Instruction* root = body->root();
  Instruction* next = body->Add(Opcode::kTuple, shape, after, root->name());
  body_order.Insert(root, next);
  body->set_root(next);
  body->Remove(root);
  for (Instruction* tuple : {parameters[0], parameters[1], loop}) {
    for (Instruction* element : hlo::Walk(tuple->users())) {
      const int64_t n = element->attrs().tuple_index();
      if (place[n] >= 0) {
        element->mutable_attrs().set_tuple_index(place[n]);
        continue;
      }
      if (tuple == loop) element->ReplaceAllUsesWith(initial->operand(n));
      element->parent()->Remove(element);
    }
    tuple->set_shape(shape);
  }
  loop->ReplaceOperand(0, carry);
  if (initial->users().empty()) initial->parent()->Remove(initial);
}

absl::StatusOr<bool> JoinCarried(Computation* computation, OrderEdit& order,
                                 const PassContext& context) {
  bool changed = false;
  for (Instruction* i : hlo::Walk(computation->PostOrder())) {
    if (CarriesCollective(*i)) Bypass(i);
  }
  for (Instruction* i : hlo::Walk(computation->PostOrder())) {
    if (!CarriesCollective(*i)) continue;
    RETURN_IF_ERROR(Unload(i, order));
    changed = true;
  }
  for (Instruction* i : hlo::Walk(computation->PostOrder())) {
    if (i->opcode() != Opcode::kWhile) continue;
    OrderEdit body_order(i->called()[0]), condition_order(i->called()[1]);
    ThinCarry(i, order, body_order);
  }
  for (Instruction* end : hlo::Walk(computation->PostOrder())) {
    if (!IsFusionOf(*end, "AsyncCollectiveDone")) continue;
    ASSIGN_OR_RETURN(Instruction * begin, BeginOf(*end));
    const Instruction* collective = CollectiveIn(*begin->called()[0]);
    const auto is_parameter = [](const Instruction* operand) {
      return operand->opcode() == Opcode::kParameter;
    };
    if (collective == nullptr || !std::ranges::all_of(collective->operands(), is_parameter)) {
      return NoRule(begin->Describe() + " begins no collective of its operands");
    }
    for (const Instruction* element : begin->users()) {
      if (element->opcode() != Opcode::kGetTupleElement || element->IsRoot()) {
        return NoRule(
            fmt::format("{} uses the state of {}", element->Describe(), collective->name()));
      }
      for (const Instruction* user : element->users()) {
        if (user == end || IsOperandOf(*collective, element->attrs().tuple_index())) continue;
        return NoRule(fmt::format("{} uses the state of {}", user->Describe(), collective->name()));
      }
    }
    context.records.Add(reasons::kCarriedJoined, collective->name());
    Join(begin, end, order);
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> JoinCarriedCollectives(hlo::Module& module, const PassContext& context) {
  return EditOrdered(module, [&](Computation* computation, OrderEdit& order) {
    return JoinCarried(computation, order, context);
  });
}

}  // namespace tpusim::passes
