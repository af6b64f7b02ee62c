#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/host_transfer.h"
#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/forward_tuples.h"
#include "workloads/hlo/transforms/loop_carries.h"
#include "workloads/passes/host/host.h"
#include "workloads/passes/host/limits.h"
#include "workloads/passes/host/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::HostTransfer;
using hlo::Instruction;
using hlo::Opcode;

// The element of the carry that an instruction of the body reads; -1: none.
int64_t ElementOf(const Instruction& i) { return hlo::CarriedElement(i, *i.parent()); }

// Whether a scalar is computed from constants and scalars of the carry.
bool FollowsFromCarry(const Instruction& scalar, int depth = 0) {
  if (!scalar.shape().IsScalar()) return false;
  if (depth > limits::kIndexDepth.most()) {
    limits::kIndexDepth.Reached();
    return false;
  }
  if (scalar.opcode() == Opcode::kConstant || ElementOf(scalar) >= 0) return true;
  return hlo::IsElementwise(scalar.opcode()) &&
         std::ranges::all_of(scalar.operands(), [depth](const Instruction* operand) {
           return FollowsFromCarry(*operand, depth + 1);
         });
}

// Computes a scalar again in computation `into`, from other elements of the carry.
Instruction* Again(const Instruction& scalar, Computation* into,
                   const std::function<Instruction*(size_t)>& element) {
  if (const int64_t n = ElementOf(scalar); n >= 0) return element(static_cast<size_t>(n));
  std::vector<Instruction*> operands;
  for (const Instruction* operand : scalar.operands()) {
    operands.push_back(Again(*operand, into, element));
  }
  return into->Add(scalar.opcode(), scalar.shape(), operands, scalar.name(), &scalar);
}

// A loop with a known number of iterations, of which one is taken out.
class CountedLoop {
 public:
  explicit CountedLoop(hlo::ModuleLoops& loops) : loops_(loops) {}

  // Returns false if the loop has another form.
  bool Find(Instruction* loop) {
    const hlo::LoopFacts& facts = loops_.Of(*loop);
    if (!facts.counter() || facts.trips().value_or(0) < 2 ||
        !hlo::LoopCarry::Find(loop, &carry_)) {
      return false;
    }
    counter_ = *facts.counter();
    trips_ = *facts.trips();
    return true;
  }
  void FindAgain() {
    TPUSIM_CHECK(hlo::LoopCarry::Find(carry_.loop(), &carry_), "a loop lost its form");
  }

  hlo::LoopCarry& carry() { return carry_; }
  Instruction* loop() { return carry_.loop(); }
  Computation* body() { return carry_.body(); }
  Computation* outside() { return loop()->parent(); }
  hlo::Module& module() { return *outside()->parent(); }

  // One iteration as `body` has it runs before the loop, which begins with the second.
  void PeelFirst(Computation* body) {
    Instruction* call =
        outside()->Add(Opcode::kCall, loop()->shape(), {loop()->operand(0)}, "first");
    call->set_called({body});
    Instruction* first = module().InlineCall(call);
    std::vector<Instruction*> initial = first->operands();
    initial[Index()] = hlo::AddIntConstant(outside(), initial[Index()]->shape().element_type,
                                           counter_.start + counter_.step, "second");
    loop()->ReplaceOperand(0, outside()->Add(Opcode::kTuple, loop()->shape(), initial, "initial"));
    SetTrips();
    CleanUp();
  }

  // One iteration as `body` has it runs behind the loop, which ends before the last.
  void PeelLast(Computation* body) {
    Instruction* call = outside()->Add(Opcode::kCall, loop()->shape(), {loop()}, "last");
    call->set_called({body});
    for (Instruction* user : hlo::Walk(loop()->users())) {
      if (user != call) user->ReplaceOperand(0, call);
    }
    module().InlineCall(call);
    EndBefore(counter_.start + (trips_ - 1) * counter_.step);
    SetTrips();
    CleanUp();
  }

 private:
  size_t Index() const { return static_cast<size_t>(counter_.index); }

  void EndBefore(int64_t value) {
    Computation* condition = carry_.condition();
    Instruction* carried = condition->parameters()[0];
    const hlo::Shape& shape = carried->shape().tuple[Index()];
    Instruction* count = condition->Add(Opcode::kGetTupleElement, shape, {carried}, "count");
    count->mutable_attrs().set_tuple_index(counter_.index);
    Instruction* limit = hlo::AddIntConstant(condition, shape.element_type, value, "last");
    Instruction* goes_on = condition->Add(Opcode::kCompare, condition->root()->shape(),
                                          {count, limit}, "goes-on", condition->root());
    goes_on->mutable_attrs().set_comparison_direction(counter_.step > 0 ? "LT" : "GT");
    condition->set_root(goes_on);
    condition->RemoveDead();
  }

  void SetTrips() {
    loops_.Forget(*loop());
    if (loop()->attrs().backend_config().empty()) return;
    loop()->mutable_attrs().set_backend_config(
        fmt::format(R"({{"known_trip_count":{{"n":"{}"}}}})", trips_ - 1));
  }

  void CleanUp() {
    hlo::ForwardTuples(*outside());
    outside()->RemoveDead();
    body()->RemoveDead();
  }

  hlo::ModuleLoops& loops_;
  hlo::LoopCarry carry_;
  hlo::LoopCounter counter_;
  int64_t trips_ = 0;
};

// Slices that may come in an iteration early.
std::vector<Instruction*> SlicesOf(const hlo::LoopCarry& carry) {
  std::vector<Instruction*> slices;
  for (Instruction* i : carry.body()->PostOrder()) {
    if (i->opcode() != Opcode::kDynamicSlice ||
        hlo::HostTransferOf(*i) != HostTransfer::kFromHost || i->has_control_edges()) {
      continue;
    }
    const int64_t stack = ElementOf(*i->operand(0));
    if (stack < 0 || !carry.Forwards(static_cast<size_t>(stack))) continue;
    if (std::all_of(i->operands().begin() + 1, i->operands().end(),
                    [](const Instruction* index) { return FollowsFromCarry(*index); })) {
      slices.push_back(i);
    }
  }
  return slices;
}

Instruction* SliceAgain(const Instruction& slice, Computation* into,
                        const std::function<Instruction*(size_t)>& element, Instruction* stack) {
  std::vector<Instruction*> operands = {stack};
  for (size_t n = 1; n < slice.operands().size(); ++n) {
    operands.push_back(Again(*slice.operand(n), into, element));
  }
  return into->Add(slice.opcode(), slice.shape(), operands, slice.name(), &slice);
}

bool SlicesEarly(Instruction* loop, hlo::ModuleLoops& loops) {
  CountedLoop counted(loops);
  if (!counted.Find(loop)) return false;
  hlo::LoopCarry& carry = counted.carry();
  const std::vector<Instruction*> slices = SlicesOf(carry);
  if (slices.empty()) return false;
  const auto initial = [&carry](size_t n) { return carry.initial(n); };
  const auto next = [&carry](size_t n) { return carry.next(n); };
  std::vector<hlo::LoopCarry::Element> elements = carry.elements();
  const size_t first = elements.size();
  for (const Instruction* slice : slices) {
    const auto stack = static_cast<size_t>(ElementOf(*slice->operand(0)));
    elements.push_back({-1, SliceAgain(*slice, counted.outside(), initial, initial(stack))});
  }
  const std::vector<Instruction*> come_in = carry.Rebuild(elements);
  for (size_t n = 0; n < slices.size(); ++n) slices[n]->ReplaceAllUsesWith(come_in[n]);
  Computation* last = counted.module().CloneComputation(*counted.body(), "last");
  counted.FindAgain();
  for (size_t n = 0; n < slices.size(); ++n) {
    Instruction* early = SliceAgain(*slices[n], counted.body(), next, slices[n]->operand(0));
    counted.body()->root()->ReplaceOperand(first + n, early);
  }
  counted.PeelLast(last);
  return true;
}

// Updates that may go out an iteration late, by the element that they write.
std::vector<std::pair<size_t, Instruction*>> UpdatesOf(const hlo::LoopCarry& carry) {
  std::vector<std::pair<size_t, Instruction*>> updates;
  for (size_t n = 0; n < carry.size(); ++n) {
    Instruction* update = carry.next(n);
    if (update->opcode() != Opcode::kDynamicUpdateSlice ||
        hlo::HostTransferOf(*update) != HostTransfer::kToHost || update->has_control_edges() ||
        update->users().size() != 1 || !carry.in_condition(n).empty()) {
      continue;
    }
    const std::vector<Instruction*>& reads = carry.in_body(n);
    if (reads.size() == 1 && update->operand(0) == reads[0] && reads[0]->users().size() == 1) {
      updates.emplace_back(n, update);
    }
  }
  return updates;
}

Instruction* AddUnwritten(Computation* computation, const hlo::Shape& shape) {
  Instruction* memory = computation->Add(Opcode::kCustomCall, shape, {}, "unwritten");
  memory->mutable_attrs().set_custom_call_target(std::string(hlo::kAllocateBuffer));
  return memory;
}

bool UpdatesLate(Instruction* loop, hlo::ModuleLoops& loops) {
  CountedLoop counted(loops);
  if (!counted.Find(loop)) return false;
  hlo::LoopCarry& carry = counted.carry();
  const std::vector<std::pair<size_t, Instruction*>> updates = UpdatesOf(carry);
  if (updates.empty()) return false;

  // What an update needs is carried; constants are at hand.
  std::vector<hlo::LoopCarry::Element> elements = carry.elements();
  const size_t first = elements.size();
  std::vector<Instruction*> carried;
  std::unordered_map<const Instruction*, size_t> place;  // in `carried`; looked up, never iterated
  for (const auto& [n, update] : updates) {
    for (size_t o = 1; o < update->operands().size(); ++o) {
      Instruction* operand = update->operand(o);
      if (operand->opcode() == Opcode::kConstant) continue;
      if (!place.emplace(operand, carried.size()).second) continue;
      carried.push_back(operand);
      elements.push_back({-1, AddUnwritten(counted.outside(), operand->shape())});
    }
  }
  const std::vector<Instruction*> from_before = carry.Rebuild(elements);
  counted.FindAgain();
  // The body without its updates is what runs first.
  for (size_t k = 0; k < carried.size(); ++k) {
    counted.body()->root()->ReplaceOperand(first + k, carried[k]);
  }
  for (const auto& [n, update] : updates) update->ReplaceAllUsesWith(update->operand(0));
  Computation* without = counted.module().CloneComputation(*counted.body(), "first");

  const auto update_with = [&](const Instruction& update, Computation* into, Instruction* stack,
                               const auto& value) {
    std::vector<Instruction*> operands = {stack};
    for (size_t o = 1; o < update.operands().size(); ++o) {
      const Instruction* operand = update.operand(o);
      const auto it = place.find(operand);
      operands.push_back(it == place.end() ? into->Add(Opcode::kConstant, operand->shape(), {},
                                                       operand->name(), operand)
                                           : value(it->second));
    }
    return into->Add(update.opcode(), update.shape(), operands, update.name(), &update);
  };
  Computation* outside = counted.outside();
  const auto result = [&](size_t element) {
    Instruction* read =
        outside->Add(Opcode::kGetTupleElement, loop->shape().tuple[element], {loop}, "late");
    read->mutable_attrs().set_tuple_index(static_cast<int64_t>(element));
    return read;
  };
  for (const auto& [n, update] : updates) {
    Instruction* late = update_with(*update, counted.body(), update->operand(0),
                                    [&](size_t k) { return from_before[k]; });
    counted.body()->root()->ReplaceOperand(n, late);
    const std::vector<Instruction*> reads = counted.carry().behind(n);
    if (reads.empty()) continue;
    Instruction* last =
        update_with(*update, outside, result(n), [&](size_t k) { return result(first + k); });
    for (Instruction* read : reads) read->ReplaceAllUsesWith(last);
  }
  counted.PeelFirst(without);
  return true;
}

}  // namespace

absl::StatusOr<bool> PipelineHostCopies(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  hlo::ModuleLoops& loops = context.facts->Loops(module);
  for (Instruction* loop : hlo::Walk(LoopsWithOwnBodies(module))) {
    // What is found in a body is still there when its loop is made anew.
    const std::string name = loop->name();
    const auto note = [&](bool did, const Reason& reason) {
      if (did) context.records.Add(reason, name);
      changed = changed || did;
    };
    note(loop->called()[0]->RemoveDead() > 0, reasons::kDeadInHostLoop);
    note(SlicesEarly(loop, loops), reasons::kReadEarly);
    if (loop->removed()) continue;  // nothing reads its results
    note(UpdatesLate(loop, loops), reasons::kWrittenLate);
  }
  if (changed) module.RemoveUnreachable();
  return changed;
}

}  // namespace tpusim::passes
