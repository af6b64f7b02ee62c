#include "workloads/remat/loop_pair.h"

#include <algorithm>

#include "workloads/hlo/analysis/loop_stacks.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::remat {
namespace {

using hlo::Affine;
using hlo::Instruction;
using hlo::Opcode;

// Whether `with` has one dimension of extent 1 more, in front of all others.
bool HasFirst(const hlo::Shape& with, const hlo::Shape& without) {
  return with.rank() == without.rank() + 1 && with.dims[0] == 1 &&
         std::equal(without.dims.begin(), without.dims.end(), with.dims.begin() + 1);
}

// The value that a slot [1, ...] is made of; null: it is made otherwise.
Instruction* WithoutFirst(Instruction* slot) {
  slot = hlo::Underlying(slot);
  Instruction* value = slot->operands().empty() ? nullptr : hlo::Underlying(slot->operand(0));
  if (value == nullptr || !HasFirst(slot->shape(), value->shape())) return nullptr;
  if (slot->opcode() == Opcode::kReshape) return value;
  if (slot->opcode() != Opcode::kBroadcast) return nullptr;
  const std::vector<int64_t> dims = hlo::Dimensions(*slot);
  for (size_t n = 0; n < dims.size(); ++n) {
    if (dims[n] != static_cast<int64_t>(n) + 1) return nullptr;
  }
  return value;
}

}  // namespace

std::optional<ReadSlot> ReadSlotOf(Instruction* value) {
  value = hlo::Underlying(value);
  if (value->opcode() != Opcode::kReshape) return std::nullopt;
  Instruction* slice = hlo::Underlying(value->operand(0));
  if (slice->opcode() != Opcode::kDynamicSlice || !HasFirst(slice->shape(), value->shape())) {
    return std::nullopt;
  }
  const auto slot = hlo::SlotOf(slice);
  if (!slot || slot->dimension != 0) return std::nullopt;
  return ReadSlot{hlo::Underlying(slice->operand(0)), slot->index};
}

std::optional<WrittenSlot> WrittenSlotOf(const Instruction& loop, int64_t element) {
  const auto stack = hlo::StackOf(loop, element);
  if (!stack || stack->slot.dimension != 0 ||
      !hlo::SameDims(stack->slot.access->shape(), loop.shape().tuple[element])) {
    return std::nullopt;
  }
  Instruction* value = WithoutFirst(stack->slot.access->operand(1));
  if (value == nullptr) return std::nullopt;
  return WrittenSlot{stack->slot.index, value};
}

bool StaysIn(const Affine& index, const hlo::LoopFacts& loop, const ReadSlot& slot) {
  const auto [first, last] = index.RangeOver(*loop.trips());
  return first >= 0 && last < slot.array->shape().dims[0];
}

bool LoopPair::Same(const Affine& in_backward, const Affine& in_forward) const {
  return in_backward == Affine{in_forward.scale * iteration.scale,
                               in_forward.scale * iteration.offset + in_forward.offset};
}

std::optional<WrittenSlot> LoopPair::StackIn(Instruction* array) const {
  const int64_t element = hlo::CarriedElement(*array, *backward->called()[0]);
  if (element < 0 || !hlo::IsInvariant(*backward, element)) return std::nullopt;
  Instruction* initial = hlo::TupleElement(backward->operand(0), element);
  if (initial == nullptr) return std::nullopt;
  const Instruction* left = hlo::Underlying(initial);
  if (left->opcode() != Opcode::kGetTupleElement || left->operand(0) != forward) {
    return std::nullopt;
  }
  return WrittenSlotOf(*forward, left->attrs().tuple_index());
}

std::optional<LoopPair> PairOf(Instruction* forward_loop, Instruction* backward_loop,
                               hlo::ModuleLoops& loops) {
  const hlo::LoopFacts& forward = loops.Of(*forward_loop);
  const hlo::LoopFacts& backward = loops.Of(*backward_loop);
  if (forward.trips().value_or(0) < 1 || backward.trips().value_or(0) < 1) return std::nullopt;
  LoopPair pair;
  pair.forward = forward_loop;
  pair.backward = backward_loop;
  for (Instruction* i : backward.body().PostOrder()) {
    if (i->opcode() != Opcode::kReshape) continue;
    const auto read = ReadSlotOf(i);
    const auto written = read ? pair.StackIn(read->array) : std::nullopt;
    if (!written) continue;
    const auto at = backward.AffineOf(*read->index), by = forward.AffineOf(*written->index);
    if (!at || !by || by->scale == 0 || !StaysIn(*by, forward, *read)) continue;
    if (at->scale % by->scale != 0 || (at->offset - by->offset) % by->scale != 0) continue;
    pair.iteration = {at->scale / by->scale, (at->offset - by->offset) / by->scale};
    const auto [earliest, latest] = pair.iteration.RangeOver(*backward.trips());
    if (earliest < 0 || latest >= *forward.trips()) continue;
    pair.written_at = written->index;
    pair.read_at = read->index;
    pair.slots = read->array->shape().dims[0];
    return pair;
  }
  return std::nullopt;
}

}  // namespace tpusim::remat
