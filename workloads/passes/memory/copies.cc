#include "workloads/passes/memory/copies.h"

#include <set>
#include <vector>

#include "workloads/hlo/analysis/control.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Parameters whose buffers the program may overwrite: aliased to a result or
// donated.
std::set<int64_t> DonatedParameters(const hlo::Module& module) {
  std::set<int64_t> donated;
  for (const auto& e : module.fields().input_output_alias().entries()) {
    donated.insert(e.parameter_number());
  }
  for (const auto& e : module.fields().buffer_donor().entries()) {
    donated.insert(e.parameter_number());
  }
  return donated;
}

bool BodyReplaces(const Instruction& loop, int64_t leaf) {
  const Instruction* root = loop.called()[0]->root();
  if (root->opcode() != Opcode::kTuple) return true;
  const Instruction* value = root->operand(leaf);
  return !(value->opcode() == Opcode::kGetTupleElement &&
           value->operand(0)->opcode() == Opcode::kParameter &&
           value->attrs().tuple_index() == leaf);
}

Instruction* CopyOf(Instruction* value) {
  Instruction* copy = value->parent()->Add(Opcode::kCopy, value->shape(), {value}, "copy");
  *copy->mutable_attrs().mutable_metadata() = value->attrs().metadata();
  return copy;
}

// Whether any of them needs one.
bool CopyLoopInputs(Instruction& loop, const std::set<int64_t>& donated, bool in_entry) {
  Instruction* init = loop.operand(0);
  if (init->opcode() != Opcode::kTuple) return false;
  bool changed = false;
  for (size_t leaf = 0; leaf < init->operands().size(); ++leaf) {
    Instruction* value = init->operand(leaf);
    if (!value->shape().IsArray() || value->shape().IsScalar()) continue;
    if (!BodyReplaces(loop, static_cast<int64_t>(leaf))) continue;
    const Instruction* storage = hlo::WithoutBitcasts(value);
    const bool kept_argument = storage->opcode() == Opcode::kParameter &&
                               !(in_entry && donated.contains(storage->attrs().parameter_number()));
    // A body's own carry, or one value that feeds two places.
    const bool shared = value->users().size() > 1 || storage->users().size() > 1 ||
                        storage->opcode() == Opcode::kGetTupleElement;
    if (kept_argument || shared || storage->opcode() == Opcode::kConstant) {
      init->ReplaceOperand(leaf, CopyOf(value));
      changed = true;
    }
  }
  return changed;
}

// Updates in place of what has to stay: they work on a copy.
bool CopyUpdated(Instruction& update, const std::set<int64_t>& donated, bool in_entry) {
  bool changed = false;
  for (const hlo::InPlaceResult& result : hlo::InPlaceResults(update)) {
    Instruction* updated = update.operand(result.operand);
    const Instruction* storage = hlo::WithoutBitcasts(updated);
    const bool kept_argument = in_entry && storage->opcode() == Opcode::kParameter &&
                               !donated.contains(storage->attrs().parameter_number());
    if (hlo::OnHost(updated->shape())) continue;  // moved there by themselves
    if (!kept_argument && storage->opcode() != Opcode::kConstant) continue;
    update.ReplaceOperand(static_cast<size_t>(result.operand), CopyOf(updated));
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> InsertCopies(hlo::Module& module, const PassContext&) {
  bool changed = false;
  const std::set<int64_t> donated = DonatedParameters(module);
  for (Computation* computation : ControlComputations(module)) {
    for (Instruction* i : computation->PostOrder()) {
      const bool in_entry = computation == module.entry();
      if (i->opcode() == Opcode::kWhile) {
        changed = CopyLoopInputs(*i, donated, in_entry) || changed;
      } else {
        changed = CopyUpdated(*i, donated, in_entry) || changed;
      }
    }
  }
  Computation* entry = module.entry();
  Instruction* root = entry->root();
  const auto needs_copy = [&](const Instruction* value) {
    const Instruction* storage = hlo::WithoutBitcasts(value);
    return value->shape().IsArray() && storage->opcode() == Opcode::kParameter &&
           !donated.contains(storage->attrs().parameter_number());
  };
  if (root->opcode() == Opcode::kTuple) {
    for (size_t n = 0; n < root->operands().size(); ++n) {
      if (!needs_copy(root->operand(n))) continue;
      root->ReplaceOperand(n, CopyOf(root->operand(n)));
      changed = true;
    }
  } else if (needs_copy(root)) {
    entry->set_root(CopyOf(root));
    changed = true;
  }
  return changed;
}

}  // namespace tpusim::passes
