#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "workloads/hlo/analysis/donation.h"
#include "workloads/hlo/analysis/in_place.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/copies/copies.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// A result by its index in the root, and the array whose buffer it is to have; null if nothing
// reads that array.
struct ResultPlace {
  size_t result = 0;
  const Instruction* of = nullptr;
};

class PlaceCopies {
 public:
  PlaceCopies(Computation& computation, hlo::ModuleAliases& aliases)
      : computation_(computation), aliases_(aliases), storage_(aliases.Of(computation)) {}

  bool Run(const std::vector<ResultPlace>& places, bool distinct) {
    const std::vector<Instruction*> order = computation_.PostOrder();
    for (size_t n = 0; n < order.size(); ++n) position_[order[n]] = n;
    std::set<const Instruction*> taken;
    std::vector<size_t> copied;
    for (const ResultPlace& place : places) {
      const Instruction* value = ResultOf(computation_, place.result);
      if (!value->shape().IsArray() || value->shape().IsScalar()) continue;
      const Instruction* made = storage_.Of(value);
      const bool again = distinct && !taken.insert(made).second;
      if (again || !GoesTo(*made, place.of)) copied.push_back(place.result);
    }
    for (const size_t result : copied) {
      Instruction* value = ResultOf(computation_, result);
      Instruction* copy =
          computation_.Add(Opcode::kCopy, value->shape(), {value}, value->name() + ".placed");
      *copy->mutable_attrs().mutable_metadata() = value->attrs().metadata();
      SetResult(computation_, result, copy);
    }
    if (!copied.empty()) aliases_.Forget(computation_);
    return !copied.empty();
  }

 private:
  // Whether `made` can have the buffer of `place`.
  bool GoesTo(const Instruction& made, const Instruction* place) const {
    if (&made == place) return true;
    const bool element = made.opcode() == Opcode::kGetTupleElement;
    const Instruction& maker = element ? *made.operand(0) : made;
    if (maker.opcode() == Opcode::kParameter) return false;  // lies somewhere else
    if (place == nullptr) return true;
    if (storage_.LivesOut(place)) return false;  // the old contents go elsewhere at the end
    const int64_t leaf = element ? made.attrs().tuple_index() : 0;
    if (maker.opcode() == Opcode::kWhile) {
      if (!LoopWritesThere(maker, leaf, *place)) return false;
    } else if (hlo::MovesThroughWindows(maker.opcode())) {
      if (!KernelWritesThere(maker, leaf, *place)) return false;
    } else {
      return true;
    }
    return !ReadAfter(maker, *place);
  }

  // Nothing but element `leaf` of the loop starts as that array.
  bool LoopWritesThere(const Instruction& loop, int64_t leaf, const Instruction& place) const {
    const Instruction* initial = loop.operand(0);
    if (initial->opcode() != Opcode::kTuple) return true;
    for (size_t n = 0; n < initial->operands().size(); ++n) {
      if (static_cast<int64_t>(n) != leaf && storage_.Of(initial->operand(n)) == &place) {
        return false;
      }
    }
    return true;
  }

  bool KernelWritesThere(const Instruction& kernel, int64_t leaf, const Instruction& place) const {
    const std::vector<hlo::InPlaceResult> updates = hlo::InPlaceResults(kernel);
    for (size_t o = 0; o < kernel.operands().size(); ++o) {
      if (storage_.Of(kernel.operand(o)) != &place) continue;
      const bool updated =
          std::any_of(updates.begin(), updates.end(), [&](const hlo::InPlaceResult& result) {
            return result.leaf == leaf && result.operand == static_cast<int64_t>(o);
          });
      if (!updated && !hlo::MayOverwrite(kernel, static_cast<int64_t>(o)))
        return false;
    }
    return true;
  }

  // Whether something that needs what `maker` makes reads the array.
  bool ReadAfter(const Instruction& maker, const Instruction& array) const {
    std::unordered_set<const Instruction*> readers;  // looked up, never iterated
    size_t last = 0;
    for (const Instruction* reader : storage_.ReadersOf(&array)) {
      const size_t at = position_.at(reader);
      if (reader == &maker || at < position_.at(&maker)) continue;
      readers.insert(reader);
      last = std::max(last, at);
    }
    if (readers.empty()) return false;
    std::vector<const Instruction*> work = {&maker};
    std::unordered_set<const Instruction*> seen;  // likewise
    while (!work.empty()) {
      const Instruction* i = work.back();
      work.pop_back();
      if (readers.contains(i)) return true;
      const auto visit = [&](const Instruction* next) {
        const auto at = position_.find(next);
        if (at != position_.end() && at->second <= last && seen.insert(next).second) {
          work.push_back(next);
        }
      };
      for (const Instruction* user : i->users()) visit(user);
      for (const Instruction* next : i->control_successors()) visit(next);
    }
    return false;
  }

  Computation& computation_;
  hlo::ModuleAliases& aliases_;
  const hlo::AliasAnalysis& storage_;
  std::unordered_map<const Instruction*, size_t> position_;  // looked up, never iterated
};

// Results of the program that are aliased to arguments. What is in tuples of tuples, and
// arguments that are tuples, are left aside.
std::vector<ResultPlace> PlacesOfProgram(const hlo::Module& module) {
  const Computation& entry = *module.entry();
  const Instruction* root = entry.root();
  const bool flat = root->shape().IsArray() ||
                    (root->opcode() == Opcode::kTuple &&
                     std::all_of(root->operands().begin(), root->operands().end(),
                                 [](const Instruction* o) { return o->shape().IsArray(); }));
  std::vector<ResultPlace> places;
  if (!flat) return places;
  const std::vector<Instruction*> arguments = entry.parameters();
  for (const hlo::Donation& d : hlo::Donations(module)) {
    const Instruction* argument = arguments[static_cast<size_t>(d.parameter)];
    if (!argument->shape().IsArray()) continue;
    places.push_back({static_cast<size_t>(d.result_leaf), argument});
  }
  return places;
}

std::vector<ResultPlace> PlacesOfBody(const Computation& body) {
  std::vector<ResultPlace> places;
  if (body.root()->opcode() != Opcode::kTuple) return places;
  places.resize(body.root()->operands().size());
  for (size_t n = 0; n < places.size(); ++n) places[n].result = n;
  for (const Instruction* i : body.PostOrder()) {
    const int64_t element = hlo::CarriedElement(*i, body);
    if (element < 0) continue;
    const Instruction*& first = places[static_cast<size_t>(element)].of;
    if (first == nullptr) first = i;
  }
  return places;
}

}  // namespace

Instruction* ResultOf(const Computation& computation, size_t n) {
  Instruction* root = computation.root();
  return root->opcode() == Opcode::kTuple ? root->operand(n) : root;
}

void SetResult(Computation& computation, size_t n, Instruction* value) {
  Instruction* root = computation.root();
  if (root->opcode() != Opcode::kTuple) return computation.set_root(value);
  root->ReplaceOperand(n, value);
}

bool InsertPlaceCopies(hlo::Module& module, const hlo::CallGraph& calls,
                       hlo::ModuleAliases& aliases) {
  bool changed =
      PlaceCopies(*module.entry(), aliases).Run(PlacesOfProgram(module), /*distinct=*/false);
  for (Computation* c : calls.control()) {
    if (calls.LoopOf(*c) == nullptr) continue;
    changed = PlaceCopies(*c, aliases).Run(PlacesOfBody(*c), /*distinct=*/true) || changed;
  }
  return changed;
}

}  // namespace tpusim::passes
