#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "workloads/hlo/analysis/loop_stacks.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/host/host.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Placement;

struct OperandUse {
  Instruction* user = nullptr;
  size_t operand = 0;
};

// The updates that write `value`, renamed or not; empty if anything else reads it too.
std::vector<Instruction*> OnlyUpdatesWith(Instruction* value) {
  std::vector<Instruction*> updates, work = {value};
  while (!work.empty()) {
    Instruction* i = work.back();
    work.pop_back();
    if (i->IsRoot()) return {};
    for (Instruction* user : i->users()) {
      if (user->opcode() == Opcode::kReshape || user->opcode() == Opcode::kBitcast) {
        work.push_back(user);
      } else if (user->opcode() == Opcode::kDynamicUpdateSlice && user->operand(1) == i &&
                 user->operand(0) != i) {
        updates.push_back(user);
      } else {
        return {};
      }
    }
  }
  return updates;
}

class StackPlacement {
 public:
  StackPlacement(const hlo::CallGraph& calls, hlo::ModuleLoops& loops)
      : calls_(calls), loops_(loops) {}

  bool Run() {
    std::vector<Instruction*> placements;
    for (Computation* computation : calls_.control()) {
      for (Instruction* i : computation->PostOrder()) {
        if (hlo::PlacementOf(*i) == Placement::kToHost) placements.push_back(i);
      }
    }
    bool changed = false;
    for (Instruction* placement : hlo::Walk(placements)) {
      const std::vector<Instruction*> updates = OnlyUpdatesWith(placement);
      if (updates.empty()) continue;
      for (Instruction* update : updates) work_.push_back({update, 0});
      placement->ReplaceAllUsesWith(placement->operand(0));
      placement->parent()->Remove(placement);
      changed = true;
    }
    while (!work_.empty()) {
      const OperandUse use = work_.back();
      work_.pop_back();
      if (seen_.insert({use.user->id(), use.operand}).second) Require(use);
    }
    return changed;
  }

 private:
  void Require(const OperandUse& use) {
    Instruction* value = use.user->operand(use.operand);
    if (hlo::OnHost(value->shape()) || hlo::PlacementOf(*value) == Placement::kToHost) return;
    switch (value->opcode()) {
      case Opcode::kDynamicUpdateSlice:
      case Opcode::kReshape:
      case Opcode::kBitcast:
      case Opcode::kOptBarrier:
        if (value->shape().IsArray()) return work_.push_back({value, 0});
        break;
      case Opcode::kGetTupleElement:
        if (RequireElement(*value->operand(0), static_cast<size_t>(value->attrs().tuple_index()))) {
          return;
        }
        break;
      default:
        break;
    }
    use.user->ReplaceOperand(use.operand, OnHost(value, use));
  }

  // Requires an element of a tuple, if the tuple that it comes from is visible.
  bool RequireElement(Instruction& tuple, size_t element) {
    if (tuple.opcode() == Opcode::kTuple) {
      work_.push_back({&tuple, element});
      return true;
    }
    if (tuple.opcode() == Opcode::kWhile) return RequireElement(*tuple.operand(0), element);
    if (tuple.opcode() != Opcode::kParameter) return false;
    std::vector<Instruction*> given;
    for (Instruction* caller : calls_.CallersOf(*tuple.parent())) {
      if (caller->opcode() != Opcode::kWhile || caller->operand(0)->opcode() != Opcode::kTuple) {
        return false;
      }
      given.push_back(caller->operand(0));
    }
    for (Instruction* initial : given) work_.push_back({initial, element});
    return !given.empty();
  }

  // Whether the iterations of `loop` together write all of an element of its carry, slot by slot.
  bool Fills(const Instruction& loop, size_t element) {
    const auto stack = hlo::StackOf(loop, static_cast<int64_t>(element));
    return stack && hlo::OrderOf(stack->slot, loops_.Of(loop)) != hlo::SlotOrder::kNone;
  }

  // Returns the value on the host that `use` takes in place of one on the device.
  Instruction* OnHost(Instruction* value, const OperandUse& use) {
    const std::vector<Instruction*>& loops = use.user->users();
    const bool splat =
        value->opcode() == Opcode::kBroadcast && value->operand(0)->shape().IsScalar();
    const bool unread = splat && use.user->opcode() == Opcode::kTuple && loops.size() == 1 &&
                        loops[0]->opcode() == Opcode::kWhile && Fills(*loops[0], use.operand);
    hlo::Shape shape = value->shape();
    shape.layout.memory_space = hlo::kHostSpace;
    Instruction* placed = value->parent()->Add(
        Opcode::kCustomCall, std::move(shape),
        unread ? std::vector<Instruction*>{} : std::vector<Instruction*>{value},
        unread ? "allocate" : "to-host", value);
    placed->mutable_attrs().set_custom_call_target(
        std::string(unread ? hlo::kAllocateBuffer : hlo::kMoveToHost));
    return placed;
  }

  const hlo::CallGraph& calls_;
  hlo::ModuleLoops& loops_;
  std::vector<OperandUse> work_;
  std::set<std::pair<int64_t, size_t>> seen_;  // by id of the user
};

}  // namespace

bool PlaceStacksOnHost(const hlo::CallGraph& calls, hlo::ModuleLoops& loops) {
  return StackPlacement(calls, loops).Run();
}

}  // namespace tpusim::passes
