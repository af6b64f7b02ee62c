#include "workloads/passes/simplify/simplify.h"

#include <algorithm>
#include <cmath>

#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/common_subexpressions.h"
#include "workloads/hlo/transforms/loop_carries.h"
#include "workloads/hlo/transforms/merge_reduces.h"
#include "workloads/passes/simplify/limits.h"
#include "workloads/passes/simplify/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;

using Rule = Instruction* (*)(Instruction*);
constexpr Rule kRules[] = {FoldConstants, SimplifyArithmetic, SimplifyIndexing, SimplifyReduce,
                           SimplifyDot,   SinkBroadcast,      SimplifyScatter};

// Rules do not ask in which memory a value is: an instruction that moves one between
// memories is not what it is by its opcode.
bool MovesBetweenMemories(const Instruction& i) {
  return std::ranges::any_of(i.operands(), [&](const Instruction* operand) {
    return hlo::OnHost(operand->shape()) != hlo::OnHost(i.shape());
  });
}

Instruction* Rewrite(Instruction* i) {
  if (MovesBetweenMemories(*i)) return nullptr;
  for (const Rule rule : kRules) {
    if (Instruction* with = rule(i)) return with;
  }
  return nullptr;
}

bool ApplyRules(Computation* computation, const Records& records) {
  bool changed = false;
  for (Instruction* i : computation->PostOrder()) {
    if ((i->users().empty() && !i->IsRoot()) || i->has_control_edges()) continue;
    // What a rule makes may be the start of the next.
    while (Instruction* with = Rewrite(i)) {
      records.Add(
          reasons::kSimplified, i->name(),
          {{"with", with->name()}, {"opcode", std::string(hlo::OpcodeName(with->opcode()))}});
      i->ReplaceAllUsesWith(with);
      changed = true;
      if (with->id() < i->id()) break;  // one of the operands
      i = with;
    }
  }
  return changed;
}

bool NothingIsFixed(const Instruction*) { return false; }

bool SimplifyComputation(Computation* computation, const Records& records) {
  bool changed = false;
  bool again = true;
  const size_t before = computation->size();
  for (int round = 0; again; ++round) {
    if (round == limits::kSimplifyRounds.most()) {
      limits::kSimplifyRounds.Reached();
      break;
    }
    again = ApplyRules(computation, records);
    again = computation->RemoveDead() > 0 || again;
    again = hlo::MergeReduces(computation, NothingIsFixed) || again;
    again = hlo::EliminateCommonSubexpressions(computation) || again;
    changed = changed || again;
  }
  computation->RemoveDead();
  if (changed) {
    records.Add(reasons::kComputationSimplified, computation->name(),
                {{"before", static_cast<int64_t>(before)},
                 {"after", static_cast<int64_t>(computation->size())}});
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> Simplify(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  bool again = true;
  for (int round = 0; again; ++round) {
    if (round == limits::kSimplifyRounds.most()) {
      limits::kSimplifyRounds.Reached();
      break;
    }
    again = false;
    for (Computation* computation : ControlComputations(module)) {
      again = SimplifyComputation(computation, context.records) || again;
    }
    if (hlo::SimplifyLoopCarries(module)) {
      context.records.Add(reasons::kCarriesSimplified, module.name());
      again = true;
    }
    changed = changed || again;
  }
  module.RemoveUnreachable();
  return changed;
}

using hlo::Opcode;

const Instruction* ConstantElement(const Instruction& i) {
  const Instruction* value = &i;
  while (value->opcode() == Opcode::kBroadcast || value->opcode() == Opcode::kReshape) {
    value = value->operand(0);
  }
  const bool one = value->opcode() == Opcode::kConstant && value->shape().IsScalar();
  return one ? value : nullptr;
}

bool IsAll(const Instruction& i, double value) {
  const Instruction* constant = ConstantElement(i);
  if (constant == nullptr) return false;
  const auto found = hlo::ScalarConstant(*constant);
  return found.has_value() && *found == value && std::signbit(*found) == std::signbit(value);
}

}  // namespace tpusim::passes
