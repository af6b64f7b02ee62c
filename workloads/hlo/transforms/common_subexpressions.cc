#include "workloads/hlo/transforms/common_subexpressions.h"

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/limits.h"

namespace tpusim::hlo {
namespace {

// Reducers, comparators and the like, which instructions share.
bool AppliesSmallComputations(const Instruction& i) {
  if (OwnsCallees(i.opcode())) return false;
  const bool small = std::ranges::all_of(i.called(), [](const Computation* called) {
    return static_cast<int64_t>(called->size()) <= limits::kSharedComputation.most();
  });
  if (!small) limits::kSharedComputation.Reached();
  return small;
}

bool MayShare(const Instruction& i) {
  if (i.opcode() == Opcode::kOptBarrier || i.opcode() == Opcode::kCustomCall ||
      IsCollective(i.opcode()) || i.has_control_edges()) {
    return false;
  }
  // Of several results: tuples are put together for nothing, random numbers have a state.
  if (i.called().empty()) return i.shape().IsArray() && !i.HasSideEffect();
  return !i.HasSideEffect() && AppliesSmallComputations(i);
}

// A text of what a small computation does, without the names of its instructions.
std::string TextOf(const Computation& computation) {
  std::unordered_map<const Instruction*, size_t> place;
  std::string text;
  for (const Instruction* i : computation.PostOrder()) {
    text += std::to_string(static_cast<int>(i->opcode())) + i->shape().ToString(true);
    for (const Instruction* operand : i->operands()) text += " " + std::to_string(place[operand]);
    for (const Computation* called : i->called()) text += " " + called->name();
    text += "|" + i->AttributeBytes() + ";";
    place.emplace(i, place.size());
  }
  return text + std::to_string(place[computation.root()]);
}

// Instructions by what they compute: of two that are equal one is enough.
class Equal {
 public:
  size_t operator()(const Instruction* i) const {
    size_t hash = absl::HashOf(i->opcode(), i->shape().element_type, i->shape().dims,
                               i->operands(), i->AttributeBytes());
    for (const Computation* called : i->called()) hash = absl::HashOf(hash, Text(*called));
    return hash;
  }
  bool operator()(const Instruction* a, const Instruction* b) const {
    return a->opcode() == b->opcode() && a->operands() == b->operands() &&
           a->AttributeBytes() == b->AttributeBytes() &&
           a->shape().ToString(true) == b->shape().ToString(true) &&
           std::ranges::equal(a->called(), b->called(), {},
                              [&](const Computation* c) -> const std::string& { return Text(*c); },
                              [&](const Computation* c) -> const std::string& { return Text(*c); });
  }

 private:
  const std::string& Text(const Computation& computation) const {
    std::string& text = (*texts_)[&computation];
    if (text.empty()) text = TextOf(computation);
    return text;
  }

  std::shared_ptr<std::unordered_map<const Computation*, std::string>> texts_ =
      std::make_shared<std::unordered_map<const Computation*, std::string>>();
};

}  // namespace

bool EliminateCommonSubexpressions(Computation* computation) {
  bool changed = false;
  const Equal equal;
  absl::flat_hash_set<Instruction*, Equal, Equal> known(0, equal, equal);
  for (Instruction* i : computation->PostOrder()) {
    if (!MayShare(*i)) continue;
    const auto [it, fresh] = known.insert(i);
    if (fresh) continue;
    i->ReplaceAllUsesWith(*it);
    changed = true;
  }
  return changed;
}

}  // namespace tpusim::hlo
