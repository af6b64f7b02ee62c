#include "workloads/passes/simplify/simplify.h"

#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/pipeline/control.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsIdentityTranspose(const Instruction& i) {
  const auto& dims = i.attrs().dimensions();
  for (int d = 0; d < dims.size(); ++d) {
    if (dims[d] != d) return false;
  }
  return true;
}

// The value that `i` merely repeats, or null.
Instruction* Repeats(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kReshape:
    case Opcode::kConvert:
    case Opcode::kBroadcast:
      return hlo::SameDims(i.shape(), i.operand(0)->shape()) ? i.operand(0) : nullptr;
    case Opcode::kTranspose:
      return IsIdentityTranspose(i) ? i.operand(0) : nullptr;
    case Opcode::kGetTupleElement: {
      const Instruction* tuple = i.operand(0);
      return tuple->opcode() == Opcode::kTuple ? tuple->operand(i.attrs().tuple_index()) : nullptr;
    }
    default:
      return nullptr;
  }
}

// Two instructions with the same key compute the same value. The optimization
// barrier and anything with side effects stays out, as do collectives (channel
// ids) and calls; a parameter is itself.
bool MayShare(const Instruction& i) {
  return i.called().empty() && !i.HasSideEffect() && !hlo::IsCollective(i.opcode()) &&
         i.opcode() != Opcode::kParameter && i.opcode() != Opcode::kOptBarrier &&
         i.opcode() != Opcode::kTuple && i.shape().IsArray() &&
         i.opcode() != Opcode::kRngBitGenerator && i.opcode() != Opcode::kRng &&
         i.opcode() != Opcode::kCustomCall && i.control_predecessors().empty();
}

std::string KeyOf(const Instruction& i) {
  std::string key = std::string(hlo::OpcodeName(i.opcode())) + i.shape().ToString(true);
  for (const Instruction* operand : i.operands()) key += " " + std::to_string(operand->id());
  hlo::pb::HloInstructionProto attrs = i.attrs();
  attrs.clear_metadata();
  attrs.clear_sharding();
  attrs.clear_frontend_attributes();
  return key + "|" + attrs.SerializeAsString();
}

}  // namespace

absl::StatusOr<bool> Simplify(hlo::Module& module, const PassContext&) {
  bool changed = false;
  for (Computation* computation : ControlComputations(module)) {
    std::map<std::string, Instruction*> known;
    for (Instruction* i : computation->PostOrder()) {
      if (Instruction* same = Repeats(*i)) {
        i->ReplaceAllUsesWith(same);
        changed = true;
        continue;
      }
      if (i->opcode() == Opcode::kReshape && i->operand(0)->opcode() == Opcode::kReshape) {
        i->ReplaceOperand(0, i->operand(0)->operand(0));
        changed = true;
      }
      if (!MayShare(*i)) continue;
      const auto [it, fresh] = known.try_emplace(KeyOf(*i), i);
      if (fresh) continue;
      i->ReplaceAllUsesWith(it->second);
      changed = true;
    }
    changed = computation->RemoveDead() > 0 || changed;
  }
  return changed;
}

}  // namespace tpusim::passes
