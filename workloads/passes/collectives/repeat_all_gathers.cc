#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/operand_shape.h"
#include "workloads/passes/collectives/reasons.h"
#include "workloads/passes/collectives/ring.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

using Heights = std::unordered_map<const Instruction*, int64_t>;  // looked up, never iterated

Heights HeightsOf(const std::vector<Instruction*>& order) {
  Heights heights;
  heights.reserve(order.size());
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    int64_t height = 0;
    for (const Instruction* user : (*i)->users()) height = std::max(height, heights.at(user)) + 1;
    heights.emplace(*i, height);
  }
  return heights;
}

bool MayRepeat(const Instruction& i) {
  return i.opcode() == Opcode::kAllGather && i.operands().size() == 1 && i.users().size() > 1 &&
         hlo::annotations::kReshard.On(i) && !i.IsRoot() && !i.has_control_edges() &&
         std::all_of(i.users().begin(), i.users().end(),
                     [](const Instruction* user) { return user->opcode() == Opcode::kDot; });
}

// The all-gather that serves users of one shape, from the highest on.
struct Serving {
  Instruction* gather = nullptr;
  int64_t last = 0;  // height of the user before
};

// A user serves itself where the height falls by more than `far`, or where it is the first that has
// the value in another shape. Returns how many all-gathers came in.
int64_t Repeat(Instruction* gather, const Heights& heights, int64_t far, int64_t first_channel,
               const Records& records) {
  std::vector<Instruction*> users = gather->users();
  std::stable_sort(users.begin(), users.end(), [&](const Instruction* a, const Instruction* b) {
    return heights.at(a) > heights.at(b);
  });
  int64_t added = 0;
  std::array<Serving, 2> by_shape;
  by_shape[MultipliesReshaped(*users[0], *gather) ? 1 : 0] = {gather, heights.at(users[0])};
  for (Instruction* user : users) {
    Serving& serving = by_shape[MultipliesReshaped(*user, *gather) ? 1 : 0];
    const bool another_shape = serving.gather == nullptr;
    // One of its own would be one above the user.
    if (another_shape || serving.last > heights.at(user) + 1 + far) {
      serving.gather = gather->parent()->Add(Opcode::kAllGather, gather->shape(),
                                             gather->operands(), gather->name(), gather);
      serving.gather->mutable_attrs().set_channel_id(first_channel + added++);
      records.Add(another_shape ? reasons::kGatheredReshaped : reasons::kGatheredAgain,
                  gather->name(), {{"again", serving.gather->name()}, {"user", user->name()}});
    }
    serving.last = heights.at(user);
    if (serving.gather == gather) continue;
    for (size_t n = 0; n < user->operands().size(); ++n) {
      if (user->operand(n) == gather) user->ReplaceOperand(n, serving.gather);
    }
  }
  if (added == 0) records.Add(reasons::kGatheredOnce, gather->name());
  return added;
}

}  // namespace

absl::StatusOr<bool> RepeatAllGathers(hlo::Module& module, const PassContext& context) {
  const int64_t far = context.target.policy().all_gather_reuse_distance;
  const int64_t first = FirstFreeChannel(module);
  int64_t channel = first;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    const std::vector<Instruction*> order = computation->PostOrder();
    const Heights heights = HeightsOf(order);
    for (Instruction* i : order) {
      if (MayRepeat(*i)) channel += Repeat(i, heights, far, channel, context.records);
    }
  }
  return channel > first;
}

}  // namespace tpusim::passes
