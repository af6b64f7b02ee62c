#include "workloads/hlo/transforms/common_subexpressions.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {
namespace {

// Reducers and comparators have a handful.
constexpr size_t kMaxCalled = 16;

// Reducers, comparators and the like, which instructions share.
bool AppliesSmallComputations(const Instruction& i) {
  return !OwnsCallees(i.opcode()) &&
         std::all_of(i.called().begin(), i.called().end(),
                     [](const Computation* called) { return called->size() <= kMaxCalled; });
}

bool MayShare(const Instruction& i) {
  if (i.opcode() == Opcode::kOptBarrier || i.opcode() == Opcode::kCustomCall ||
      IsCollective(i.opcode()) || i.has_control_edges()) {
    return false;
  }
  // Of several results: tuples are put together for nothing, random numbers have a state.
  if (i.called().empty()) return i.shape().IsArray() && !i.HasSideEffect();
  return AppliesSmallComputations(i) && !i.HasSideEffect();
}

std::string KeyOf(const Instruction& i) {
  std::string key = std::to_string(static_cast<int>(i.opcode())) + i.shape().ToString(true);
  for (const Instruction* operand : i.operands()) key += " " + std::to_string(operand->id());
  return key + "|" + i.AttributeBytes();
}

// What a small computation does, whatever its instructions are called.
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

}  // namespace

bool EliminateCommonSubexpressions(Computation* computation) {
  bool changed = false;
  std::unordered_map<std::string, Instruction*> known;  // looked up, never iterated
  std::unordered_map<const Computation*, std::string> texts;
  for (Instruction* i : computation->PostOrder()) {
    if (!MayShare(*i)) continue;
    std::string key = KeyOf(*i);
    for (const Computation* called : i->called()) {
      std::string& text = texts[called];
      if (text.empty()) text = TextOf(*called);
      key += text;
    }
    const auto [it, fresh] = known.try_emplace(std::move(key), i);
    if (fresh) continue;
    i->ReplaceAllUsesWith(it->second);
    changed = true;
  }
  return changed;
}

}  // namespace tpusim::hlo
