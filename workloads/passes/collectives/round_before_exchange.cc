#include <algorithm>
#include <unordered_set>
#include <vector>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/limits.h"
#include "workloads/passes/collectives/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

bool MovesOneArray(const Instruction& i) {
  return hlo::IsCollective(i.opcode()) && !hlo::CombinesAcrossDevices(i.opcode()) &&
         !hlo::IsAsyncStart(i.opcode()) && !hlo::IsAsyncDone(i.opcode()) &&
         i.operands().size() == 1 && i.shape().IsArray() &&
         i.shape().element_type == PrimitiveType::kF32 && !i.has_control_edges();
}

bool RoundsItsOperands(const Instruction& i) {
  if (i.opcode() != Opcode::kDot && i.opcode() != Opcode::kConvolution) return false;
  const hlo::pb::PrecisionConfig& precision = i.attrs().precision_config();
  return precision.algorithm() == hlo::pb::PrecisionConfig::ALG_UNSET &&
         std::all_of(precision.operand_precision().begin(), precision.operand_precision().end(),
                     [](int p) { return p == hlo::pb::PrecisionConfig::DEFAULT; });
}

// Whether whatever reads it rounds it.
bool IsOnlyMultiplied(const Instruction& i) {
  std::vector<const Instruction*> left = {&i};
  std::unordered_set<const Instruction*> seen;  // looked up, never iterated
  while (!left.empty()) {
    const Instruction* value = left.back();
    left.pop_back();
    if (value->IsRoot() || value->users().empty()) return false;
    for (const Instruction* user : value->users()) {
      if (RoundsItsOperands(*user)) continue;
      const bool moves = hlo::IsIndexMap(user->opcode()) || user->opcode() == Opcode::kSelect;
      if (!moves) return false;
      if (std::ssize(seen) == limits::kUsesOfExchange.most()) {
        limits::kUsesOfExchange.Reached();
        return false;
      }
      if (seen.insert(user).second) left.push_back(user);
    }
  }
  return true;
}

Instruction* AsType(Instruction* value, PrimitiveType type) {
  // What was widened before has its bits already.
  if (value->opcode() == Opcode::kConvert && value->operand(0)->shape().element_type == type) {
    return value->operand(0);
  }
  hlo::Shape shape = value->shape();
  shape.element_type = type;
  return value->parent()->Add(Opcode::kConvert, shape, {value}, "", value);
}

void Round(Instruction* exchange) {
  Computation* computation = exchange->parent();
  hlo::Shape shape = exchange->shape();
  shape.element_type = PrimitiveType::kBf16;
  Instruction* rounded = AsType(exchange->operand(0), PrimitiveType::kBf16);
  Instruction* moved =
      computation->Add(exchange->opcode(), shape, {rounded}, exchange->name(), exchange);
  Instruction* wide =
      computation->Add(Opcode::kConvert, exchange->shape(), {moved}, "convert", moved);
  exchange->ReplaceAllUsesWith(wide);
  computation->Remove(exchange);
}

}  // namespace

absl::StatusOr<bool> RoundBeforeExchange(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : context.facts->CallsOf(module).control()) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      if (!MovesOneArray(*i)) continue;
      const bool rounds = IsOnlyMultiplied(*i);
      context.records.Add(rounds ? reasons::kRounded : reasons::kNotRounded, i->name());
      if (!rounds) continue;
      Round(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
