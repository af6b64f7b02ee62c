#include "workloads/hlo/ir/opcode.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

namespace tpusim::hlo {
namespace {

struct OpcodeRow {
  std::string_view name;
  int arity;
  unsigned traits;
};

constexpr OpcodeRow kTable[] = {
#define TPUSIM_HLO_ROW(enumerator, name, arity, traits) {name, arity, traits},
    TPUSIM_HLO_OPCODES(TPUSIM_HLO_ROW)
#undef TPUSIM_HLO_ROW
};
static_assert(std::size(kTable) == kNumOpcodes);

constexpr std::pair<std::string_view, std::string_view> kOldCompares[] = {
    {"equal-to", "EQ"},
    {"not-equal-to", "NE"},
    {"greater-than", "GT"},
    {"less-than", "LT"},
    {"greater-than-or-equal-to", "GE"},
    {"less-than-or-equal-to", "LE"},
};

}  // namespace

std::string_view OpcodeName(Opcode opcode) { return kTable[static_cast<int>(opcode)].name; }
int OpcodeArity(Opcode opcode) { return std::max(kTable[static_cast<int>(opcode)].arity, -1); }
int FewestOperands(Opcode opcode) {
  const int arity = kTable[static_cast<int>(opcode)].arity;
  return arity >= 0 ? arity : -1 - arity;
}
unsigned OpcodeTraitsOf(Opcode opcode) { return kTable[static_cast<int>(opcode)].traits; }

std::optional<Opcode> OpcodeFromName(std::string_view name) {
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string_view, Opcode>;
    for (int i = 0; i < kNumOpcodes; ++i) map->emplace(kTable[i].name, static_cast<Opcode>(i));
    return map;
  }();
  const auto it = by_name->find(name);
  if (it == by_name->end()) return std::nullopt;
  return it->second;
}

std::optional<std::string_view> OldCompareDirection(std::string_view name) {
  for (const auto& [old_name, direction] : kOldCompares) {
    if (old_name == name) return direction;
  }
  return std::nullopt;
}

}  // namespace tpusim::hlo
