#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/analysis/execution.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/rematerialize/rematerialize.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Execution;
using hlo::Instruction;
using hlo::Opcode;

// Whether the result is another name of the only operand.
bool Renames(const Instruction& i) { return hlo::NamesOperand(i) && i.operands().size() == 1; }

bool IsElement(const Instruction& i, const RecomputedValue& value) {
  return i.opcode() == Opcode::kGetTupleElement && i.operand(0) == value.maker &&
         i.attrs().tuple_index() == value.leaf;
}

// Whether the instruction is the value itself, not a bitcast of it.
bool IsValue(const Instruction* i, const RecomputedValue& value) {
  return value.maker->shape().IsTuple() ? IsElement(*i, value) : i == value.maker;
}

// "jit(f)/jvp()/tanh" becomes "jit(f)/jvp()/rematted_computation/tanh", as of a computation
// that the program itself asks to be repeated.
std::string RepeatedName(const std::string& op_name) {
  const size_t slash = op_name.rfind('/');
  const size_t at = slash == std::string::npos ? 0 : slash + 1;
  return op_name.substr(0, at) + "rematted_computation/" + op_name.substr(at);
}

// Removes all results of a fused computation but one, and all parameters but those that it needs.
void KeepResult(Computation& fused, int64_t leaf, const std::vector<size_t>& parameters) {
  fused.set_root(fused.root()->operand(static_cast<size_t>(leaf)));
  fused.RemoveDead();
  const std::vector<Instruction*> all = fused.parameters();
  std::vector<bool> kept(all.size());
  for (size_t n = 0; n < parameters.size(); ++n) {
    kept[parameters[n]] = true;
    all[parameters[n]]->mutable_attrs().set_parameter_number(static_cast<int64_t>(n));
  }
  for (size_t n = 0; n < all.size(); ++n) {
    if (!kept[n]) fused.Remove(all[n]);
  }
}

}  // namespace

bool CanBeRecomputed(const RecomputedValue& value) {
  const Instruction& i = *value.maker;
  const absl::StatusOr<Execution> what = hlo::ExecutionOf(i);
  if (!what.ok() || *what != Execution::kKernel) return false;
  if (i.opcode() == Opcode::kCustomCall || i.HasSideEffect() || i.has_control_edges()) return false;
  if (i.shape().IsTuple()) {
    if (i.opcode() != Opcode::kFusion || i.called()[0]->root()->opcode() != Opcode::kTuple ||
        !i.shape().tuple[value.leaf].IsArray()) {
      return false;
    }
  }
  return hlo::InPlaceResults(i).empty();
}

std::optional<std::vector<Instruction*>> ReadersOf(const RecomputedValue& value) {
  std::vector<const Instruction*> names;
  if (!value.maker->shape().IsTuple()) {
    names.push_back(value.maker);
  } else {
    for (const Instruction* user : value.maker->users()) {
      if (user->opcode() != Opcode::kGetTupleElement) return std::nullopt;
      if (IsElement(*user, value)) names.push_back(user);
    }
  }
  std::vector<Instruction*> readers;
  while (!names.empty()) {
    const Instruction* name = names.back();
    names.pop_back();
    if (name->IsRoot() || name->has_control_edges()) return std::nullopt;
    for (Instruction* user : name->users()) {
      if (Renames(*user)) {
        names.push_back(user);
      } else if (hlo::OnlyNames(*user) || hlo::IsControlFlow(user->opcode())) {
        return std::nullopt;
      } else {
        readers.push_back(user);
      }
    }
  }
  return readers;
}

std::vector<size_t> OperandsFor(const RecomputedValue& value) {
  std::vector<size_t> operands;
  if (!value.maker->shape().IsTuple()) {
    for (size_t n = 0; n < value.maker->operands().size(); ++n) operands.push_back(n);
    return operands;
  }
  const Computation& fused = *value.maker->called()[0];
  std::vector<const Instruction*> work = {fused.root()->operand(static_cast<size_t>(value.leaf))};
  std::unordered_set<const Instruction*> seen(work.begin(), work.end());
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (i->opcode() == Opcode::kParameter) {
      operands.push_back(static_cast<size_t>(i->attrs().parameter_number()));
    }
    for (const Instruction* o : i->operands()) {
      if (seen.insert(o).second) work.push_back(o);
    }
  }
  std::sort(operands.begin(), operands.end());
  return operands;
}

Instruction* Recompute(const RecomputedValue& value) {
  Instruction& maker = *value.maker;
  Computation& computation = *maker.parent();
  const std::vector<size_t> numbers = OperandsFor(value);
  std::vector<Instruction*> operands;
  for (const size_t n : numbers) operands.push_back(maker.operand(n));
  const bool one_of_several = maker.shape().IsTuple();
  Instruction* copy = computation.Add(
      maker.opcode(), one_of_several ? maker.shape().tuple[value.leaf] : maker.shape(), operands,
      maker.name() + ".remat", &maker);
  if (maker.opcode() == Opcode::kFusion) {
    Computation* fused = computation.parent()->CloneComputation(*maker.called()[0]);
    if (one_of_several) KeepResult(*fused, value.leaf, numbers);
    copy->set_called({fused});
  } else {
    copy->set_called(maker.called());
  }
  if (!maker.op_name().empty()) {
    copy->mutable_attrs().mutable_metadata()->set_op_name(RepeatedName(maker.op_name()));
  }
  return copy;
}

std::vector<Instruction*> Redirect(const RecomputedValue& value, Instruction* copy,
                                   const std::vector<Instruction*>& readers) {
  std::vector<Instruction*> added;
  std::unordered_map<const Instruction*, Instruction*> copies;  // of names; looked up
  for (Instruction* reader : readers) {
    for (size_t o = 0; o < reader->operands().size(); ++o) {
      std::vector<Instruction*> chain;
      Instruction* name = reader->operand(o);
      while (!IsValue(name, value) && Renames(*name)) {
        chain.push_back(name);
        name = name->operand(0);
      }
      if (!IsValue(name, value)) continue;
      Instruction* now = copy;
      for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
        Instruction*& known = copies[*it];
        if (known == nullptr) {
          known = copy->parent()->Add((*it)->opcode(), (*it)->shape(), {now}, (*it)->name(), *it);
          added.push_back(known);
        }
        now = known;
      }
      reader->ReplaceOperand(o, now);
    }
  }
  return added;
}

}  // namespace tpusim::passes
