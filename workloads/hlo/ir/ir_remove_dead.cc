// Side effects, and the instructions that neither they nor a result needs.
#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {
namespace {

bool SideEffectOf(const Instruction& instruction) {
  return (OpcodeTraitsOf(instruction.opcode()) & kSideEffect) != 0 ||
         (instruction.opcode() == Opcode::kCustomCall &&
          instruction.attrs().custom_call_has_side_effect());
}

// The computations with side effects, those that they call included; each is examined once.
class SideEffects {
 public:
  bool Of(const Instruction& instruction) {
    if (SideEffectOf(instruction)) return true;
    return std::any_of(instruction.called().begin(), instruction.called().end(),
                       [&](Computation* called) { return Of(called); });
  }

 private:
  bool Of(Computation* computation) {
    const auto it = known_.find(computation);
    if (it != known_.end()) return it->second;
    std::vector<Computation*> reached;
    if (!CalleesFirst({computation}, &reached)) return true;  // a cycle is the verifier's business
    for (const Computation* callee : reached) {
      if (known_.contains(callee)) continue;
      bool any = false;
      for (const Instruction* inner : callee->instructions()) {
        any = any || SideEffectOf(*inner);
        for (const Computation* called : inner->called()) any = any || known_.at(called);
      }
      known_[callee] = any;
    }
    return known_.at(computation);
  }

  std::unordered_map<const Computation*, bool> known_;
};

}  // namespace

bool Instruction::HasSideEffect() const {
  if (called().empty()) return SideEffectOf(*this);
  return SideEffects().Of(*this);
}

int64_t Computation::RemoveDead(std::vector<const Instruction*>* removed) {
  Live();
  Compact();
  SideEffects side_effects;
  const auto stays = [&](const Instruction& i) {
    return &i == root_ || i.opcode_ == Opcode::kParameter || side_effects.Of(i);
  };
  // An instruction is dead once all that needs it is: users, and what has to come after it. The
  // first are those that nothing needs.
  std::vector<size_t> dead_uses(instructions_.size());  // by slot
  std::vector<size_t> last_user(instructions_.size());  // by slot, the number of a dead one from 1
  std::vector<char> is_dead(instructions_.size());
  std::vector<Instruction*> dead;
  const auto look_at = [&](Instruction* i) {
    if (dead_uses[i->slot_] < i->users_.size() + i->control_successors_.size() || stays(*i)) return;
    is_dead[i->slot_] = 1;
    dead.push_back(i);
  };
  for (const auto& instruction : instructions_) {
    if (instruction->users_.empty() && instruction->control_successors_.empty()) {
      look_at(instruction.get());
    }
  }
  if (dead.empty()) return 0;
  std::vector<Instruction*> touched;  // what dead ones need
  const auto lose_use = [&](Instruction* i) {
    touched.push_back(i);
    ++dead_uses[i->slot_];
    look_at(i);
  };
  for (size_t n = 0; n < dead.size(); ++n) {
    const Instruction& one = *dead[n];
    for (Instruction* operand : one.operands_) {  // of each of which it is a user once
      if (std::exchange(last_user[operand->slot_], n + 1) != n + 1) lose_use(operand);
    }
    for (Instruction* before : one.control_predecessors_) lose_use(before);
  }
  const auto goes = [&](const Instruction* i) { return is_dead[i->slot_] != 0; };
  for (Instruction* i : touched) {
    if (goes(i) || dead_uses[i->slot_] == 0) continue;
    dead_uses[i->slot_] = 0;  // done
    std::erase_if(i->users_, goes);
    std::erase_if(i->control_successors_, goes);
  }
  std::erase_if(schedule_, goes);
  for (auto& instruction : instructions_) {
    if (!goes(instruction.get())) continue;
    if (removed != nullptr) removed->push_back(instruction.get());
    Forget(*instruction);
    parent_->Retire(std::move(instruction));
  }
  live_ -= dead.size();
  Compact();
  return static_cast<int64_t>(dead.size());
}

}  // namespace tpusim::hlo
