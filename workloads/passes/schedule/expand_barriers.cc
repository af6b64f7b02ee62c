#include <unordered_set>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/schedule/reasons.h"
#include "workloads/passes/schedule/schedule.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Has the users of a barrier take what goes through it. Those that take the tuple whole, and do
// not only name one element, keep it: they get the tuple before the barrier.
void Expand(Instruction& barrier, std::unordered_set<const Instruction*>& gone) {
  Instruction* value = barrier.operand(0);
  if (value->opcode() == Opcode::kTuple) {
    const std::vector<Instruction*> users = barrier.users();
    for (Instruction* user : users) {
      if (user->opcode() != Opcode::kGetTupleElement || user->has_control_edges()) continue;
      user->ReplaceAllUsesWith(value->operand(static_cast<size_t>(user->attrs().tuple_index())));
      gone.insert(user);
    }
  }
  barrier.ReplaceAllUsesWith(value);
  gone.insert(&barrier);
}

bool ExpandIn(Computation& computation, const Records& records) {
  std::unordered_set<const Instruction*> gone;  // looked up, never iterated
  for (Instruction* i : computation.schedule()) {
    if (i->opcode() != Opcode::kOptBarrier || i->has_control_edges()) continue;
    records.Add(reasons::kBarrierGone, i->name());
    Expand(*i, gone);
  }
  if (gone.empty()) return false;
  // A tuple that only a barrier took.
  for (Instruction* i : computation.schedule()) {
    if (i->opcode() != Opcode::kTuple || i == computation.root() || i->has_control_edges())
      continue;
    bool read = false;
    for (const Instruction* user : i->users()) read = read || !gone.contains(user);
    if (!read && !i->users().empty()) gone.insert(i);
  }
  std::vector<Instruction*> schedule, removed;
  for (Instruction* i : computation.schedule()) {
    (gone.contains(i) ? removed : schedule).push_back(i);
  }
  // Readers first: in a schedule they are behind what they read.
  for (auto i = removed.rbegin(); i != removed.rend(); ++i) computation.Remove(*i);
  computation.set_schedule(std::move(schedule));
  return true;
}

}  // namespace

absl::StatusOr<bool> ExpandBarriers(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    if (ExpandIn(*computation, context.records)) changed = true;
  }
  return changed;
}

}  // namespace tpusim::passes
