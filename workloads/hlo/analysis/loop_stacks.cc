#include "workloads/hlo/analysis/loop_stacks.h"

#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {
namespace {

// The value, looked for through bitcasts of any shape as well: all of its bytes are written with
// those of what they rename.
Instruction* UnderlyingBytes(Instruction* value) {
  for (value = Underlying(value); value->opcode() == Opcode::kBitcast;) {
    value = Underlying(value->operand(0));
  }
  return value;
}

// The only instruction that reads the value, looked for through bitcasts that nothing else reads.
const Instruction* OnlyReader(const Instruction* value) {
  while (value->users().size() == 1 && value->users()[0]->opcode() == Opcode::kBitcast) {
    value = value->users()[0];
  }
  return value->users().size() == 1 ? value->users()[0] : nullptr;
}

bool OnlyWrites(const Instruction& loop, int64_t element, const Instruction& update) {
  const Instruction* read = nullptr;
  for (const Computation* called : loop.called()) {
    for (const Instruction* i : called->instructions()) {
      if (CarriedElement(*i, *called) != element) continue;
      if (read != nullptr || called != loop.called()[0]) return false;
      read = i;
    }
  }
  return read != nullptr && OnlyReader(read) == &update &&
         OnlyReader(&update) == loop.called()[0]->root();
}

}  // namespace

std::optional<SlotAccess> SlotOf(Instruction* access) {
  const bool reads = access->opcode() == Opcode::kDynamicSlice;
  if (!reads && access->opcode() != Opcode::kDynamicUpdateSlice) return std::nullopt;
  const std::vector<int64_t>& array = access->operand(0)->shape().dims;
  const std::vector<int64_t>& part = (reads ? access : access->operand(1))->shape().dims;
  const size_t first = reads ? 1 : 2;  // of the indices, which may be one vector
  if (access->operands().size() != first + array.size()) return std::nullopt;
  SlotAccess slot{access};
  for (size_t d = 0; d < array.size(); ++d) {
    if (part[d] == array[d]) continue;
    if (slot.dimension >= 0 || part[d] != 1) return std::nullopt;
    slot.dimension = static_cast<int64_t>(d);
  }
  if (slot.dimension < 0 && !array.empty() && array[0] == 1) slot.dimension = 0;
  if (slot.dimension >= 0) {
    slot.index = access->operand(first + static_cast<size_t>(slot.dimension));
  }
  return slot;
}

SlotOrder OrderOf(const SlotAccess& slot, const LoopFacts& loop) {
  if (!loop.trips() || *loop.trips() < 1) return SlotOrder::kNone;
  if (slot.dimension < 0) return SlotOrder::kAscending;
  const int64_t slots = slot.access->operand(0)->shape().dims[static_cast<size_t>(slot.dimension)];
  if (slots == 1) return SlotOrder::kAscending;
  const auto index = loop.AffineOf(*slot.index);
  if (!index || *loop.trips() != slots) return SlotOrder::kNone;
  if (*index == Affine{1, 0}) return SlotOrder::kAscending;
  return *index == Affine{-1, slots - 1} ? SlotOrder::kDescending : SlotOrder::kNone;
}

std::optional<LoopStack> StackOf(const Instruction& loop, int64_t element) {
  const Computation& body = *loop.called()[0];
  Instruction* next = TupleElement(body.root(), element);
  if (next == nullptr) return std::nullopt;
  Instruction* update = UnderlyingBytes(next);
  if (update->opcode() != Opcode::kDynamicUpdateSlice ||
      CarriedElement(*UnderlyingBytes(update->operand(0)), body) != element) {
    return std::nullopt;
  }
  const auto slot = SlotOf(update);
  if (!slot) return std::nullopt;
  return LoopStack{element, *slot, OnlyWrites(loop, element, *update)};
}

}  // namespace tpusim::hlo
