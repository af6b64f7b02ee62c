#include "workloads/passes/copies/copies.h"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/copies/reasons.h"

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

// Returns a copy of the value. A splat is broadcast again, which writes as much and reads nothing.
Instruction* CopyOf(Instruction* value) {
  hlo::Computation* computation = value->parent();
  if (value->opcode() == Opcode::kBroadcast && value->operand(0)->shape().IsScalar()) {
    return computation->Add(Opcode::kBroadcast, value->shape(), value->operands(), value->name(),
                            value);
  }
  Instruction* copy = computation->Add(Opcode::kCopy, value->shape(), {value}, "copy");
  *copy->mutable_attrs().mutable_metadata() = value->attrs().metadata();
  return copy;
}

// A parameter of a computation, or one element of it (-1: the array that it is).
struct CalleeArgument {
  int64_t parameter = 0, element = -1;
  auto operator<=>(const CalleeArgument&) const = default;
};

std::optional<CalleeArgument> ArgumentOf(const Instruction& storage) {
  if (storage.opcode() == Opcode::kParameter)
    return CalleeArgument{storage.attrs().parameter_number()};
  if (storage.opcode() != Opcode::kGetTupleElement) return std::nullopt;
  const Instruction* tuple = storage.operand(0);
  if (tuple->opcode() != Opcode::kParameter) return std::nullopt;
  return CalleeArgument{tuple->attrs().parameter_number(), storage.attrs().tuple_index()};
}

// The arguments that a computation may overwrite.
struct Owned {
  bool all = false;
  std::set<CalleeArgument> arguments;

  // A constant has no owner.
  bool Has(const Instruction& storage) const {
    if (storage.opcode() == Opcode::kConstant) return false;
    const std::optional<CalleeArgument> argument = ArgumentOf(storage);
    return all || !argument || arguments.contains(*argument) ||
           arguments.contains({argument->parameter, -1});
  }
};

class CopyInsertion {
 public:
  CopyInsertion(const hlo::Module& module, hlo::ModuleAliases& aliases, const Records& records)
      : aliases_(aliases), records_(records) {
    for (const int64_t parameter : DonatedParameters(module)) {
      owned_[module.entry()].arguments.insert({parameter, -1});
    }
  }

  // Callers before callees. Whether anything changed.
  bool Run(const Computation& computation) {
    const hlo::AliasAnalysis& storage = aliases_.Of(computation);
    const Owned& owned = owned_[&computation];
    const auto place = OrderWithLateUpdates(computation, storage);
    bool changed = false;
    for (Instruction* i : computation.PostOrder()) {
      if (hlo::IsControlFlow(i->opcode())) PassOwnership(*i, storage, owned);
      const std::vector<Overwrite> overwrites = OverwritesOf(*i);
      if (overwrites.empty()) continue;
      std::set<const Instruction*> taken = StaysIn(*i, storage);
      for (const Overwrite& overwrite : overwrites) {
        Instruction* value = overwrite.user->operand(overwrite.operand);
        if (hlo::OnHost(value->shape()) && i->opcode() != Opcode::kWhile) {
          continue;  // moved there by themselves
        }
        const Instruction* made_by = storage.Of(value);
        if (taken.insert(made_by).second && owned.Has(*made_by) &&
            RunsLast(*i, *made_by, storage, place)) {
          if (OrderAfterReaders(*i, *made_by, storage)) {
            records_.Add(reasons::kOrderedLast, i->name(), {{"value", made_by->name()}});
            changed = true;
          }
          continue;
        }
        records_.Add(reasons::kCopied, value->name(), {{"user", i->name()}});
        overwrite.user->ReplaceOperand(overwrite.operand, CopyOf(value));
        changed = true;
      }
    }
    if (changed) aliases_.Forget(computation);
    return changed;
  }

 private:
  using Places = std::unordered_map<const Instruction*, int64_t>;

  // The arrays that the instruction reads and does not overwrite: other operands of an update,
  // initial values that a loop forwards.
  static std::set<const Instruction*> StaysIn(const Instruction& i,
                                              const hlo::AliasAnalysis& storage) {
    std::set<const Instruction*> stays;  // looked up, never iterated
    if (i.opcode() == Opcode::kWhile) {
      const Instruction* initial = i.operand(0);
      for (size_t n = 0; n < initial->operands().size(); ++n) {
        if (hlo::ForwardsElement(i, static_cast<int64_t>(n))) {
          stays.insert(storage.Of(initial->operand(n)));
        }
      }
    } else if (i.opcode() == Opcode::kScatter || i.opcode() == Opcode::kDynamicUpdateSlice) {
      const size_t arrays = hlo::InPlaceResults(i).size();
      for (size_t o = arrays; o < i.operands().size(); ++o) stays.insert(storage.Of(i.operand(o)));
    }
    return stays;
  }

  static bool RunsLast(const Instruction& i, const Instruction& made_by,
                       const hlo::AliasAnalysis& storage, const Places& place) {
    if (storage.LivesOut(&made_by)) return false;
    const std::vector<Instruction*>& readers = storage.ReadersOf(&made_by);
    return std::all_of(readers.begin(), readers.end(),
                       [&](const Instruction* r) { return place.at(r) <= place.at(&i); });
  }

  static bool OrderAfterReaders(Instruction& i, const Instruction& made_by,
                                const hlo::AliasAnalysis& storage) {
    bool changed = false;
    for (Instruction* reader : storage.ReadersOf(&made_by)) {
      const auto& operands = i.operands();
      if (reader == &i || std::find(operands.begin(), operands.end(), reader) != operands.end()) {
        continue;
      }
      const size_t before = i.control_predecessors().size();
      i.AddControlPredecessor(reader);
      changed = changed || i.control_predecessors().size() > before;
    }
    return changed;
  }

  // A body works in the buffers of its loop. A branch and a callee may overwrite what only
  // they are given.
  void PassOwnership(const Instruction& i, const hlo::AliasAnalysis& storage, const Owned& owned) {
    if (i.opcode() == Opcode::kWhile) {
      owned_[i.called()[0]].all = true;
      return;
    }
    const bool branches = i.opcode() == Opcode::kConditional;
    for (size_t o = branches ? 1 : 0; o < i.operands().size(); ++o) {
      Owned& inside = owned_[i.called()[branches ? o - 1 : 0]];
      const int64_t parameter = branches ? 0 : static_cast<int64_t>(o);
      const Instruction* operand = i.operand(o);
      while (hlo::NamesOperand(*operand)) operand = operand->operand(0);
      if (operand->opcode() != Opcode::kTuple) {
        const Instruction* array = storage.Of(operand);
        if (OnlyReader(i, *array, storage, owned)) inside.arguments.insert({parameter, -1});
        continue;
      }
      std::map<const Instruction*, int64_t> times;  // looked up, never iterated
      for (const Instruction* e : operand->operands()) ++times[storage.Of(e)];
      for (size_t n = 0; n < operand->operands().size(); ++n) {
        const Instruction* element = storage.Of(operand->operand(n));
        if (times.at(element) > 1 || !OnlyReader(i, *element, storage, owned)) continue;
        inside.arguments.insert({parameter, static_cast<int64_t>(n)});
      }
    }
  }

  static bool OnlyReader(const Instruction& i, const Instruction& made_by,
                         const hlo::AliasAnalysis& storage, const Owned& owned) {
    const std::vector<Instruction*>& readers = storage.ReadersOf(&made_by);
    return made_by.shape().IsArray() && owned.Has(made_by) && !storage.LivesOut(&made_by) &&
           readers.size() == 1 && readers[0] == &i;
  }

  hlo::ModuleAliases& aliases_;
  const Records& records_;
  std::unordered_map<const Computation*, Owned> owned_;  // looked up, never iterated
};

}  // namespace

absl::StatusOr<bool> InsertCopies(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  hlo::ModuleAliases& aliases = context.facts->Aliases();
  CopyInsertion insertion(module, aliases, context.records);
  const hlo::CallGraph& calls = context.facts->CallsOf(module);
  for (const Computation* computation : calls.control()) {
    changed = insertion.Run(*computation) || changed;
  }
  if (InsertPlaceCopies(module, calls, aliases)) {
    context.records.Add(reasons::kPlacesCopied, module.name());
    changed = true;
  }
  const std::set<int64_t> donated = DonatedParameters(module);
  Computation* entry = module.entry();
  const hlo::AliasAnalysis& storage = aliases.Of(*entry);
  const bool several = entry->root()->opcode() == Opcode::kTuple;
  std::set<const Instruction*> returned;
  std::vector<size_t> copied;
  for (size_t n = 0; n < (several ? entry->root()->operands().size() : 1); ++n) {
    const Instruction* value = ResultOf(*entry, n);
    if (!value->shape().IsArray()) continue;
    const Instruction* named = hlo::WithoutBitcasts(value);
    const bool kept = named->opcode() == Opcode::kParameter &&
                      !donated.contains(named->attrs().parameter_number());
    const bool again = !returned.insert(storage.Of(value)).second;
    if (!kept && !again) continue;
    context.records.Add(kept ? reasons::kArgumentReturned : reasons::kReturnedTwice, value->name());
    copied.push_back(n);
  }
  for (const size_t n : copied) SetResult(*entry, n, CopyOf(ResultOf(*entry, n)));
  if (!copied.empty()) aliases.Forget(*entry);
  changed = changed || !copied.empty();
  return changed;
}

}  // namespace tpusim::passes
