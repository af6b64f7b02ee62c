#include "workloads/remat/loop_pair.h"

#include <algorithm>
#include <limits>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/remat/values.h"

namespace tpusim::remat {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Indices are 32 bits wide at least: within these nothing wraps around.
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
// Operations from a counter to an index: JAX writes three.
constexpr int kDeepest = 16;

bool Fits(const Affine& a, int64_t trips) {
  const auto fits = [](int64_t v) { return v >= -kMost && v <= kMost; };
  if (!fits(a.scale) || !fits(a.offset) || trips > kMost) return false;
  return fits(a.scale * std::max<int64_t>(trips - 1, 0) + a.offset);
}

// The least and the largest value.
std::pair<int64_t, int64_t> RangeOf(const Affine& a, int64_t trips) {
  const int64_t last = a.scale * (trips - 1) + a.offset;
  return std::minmax(a.offset, last);
}

std::optional<Affine> Evaluate(Instruction* value, const Instruction& loop, int64_t trips,
                               int depth) {
  if (depth > kDeepest || trips < 1) return std::nullopt;
  value = Behind(value);
  if (!value->shape().IsArray() || value->shape().ElementCount() != 1) return std::nullopt;
  const auto known = [&](std::optional<Affine> a) {
    return a && Fits(*a, trips) ? a : std::nullopt;
  };
  if (const auto constant = hlo::ScalarIntConstant(*value)) return known(Affine{0, *constant});
  const Computation& body = *loop.called()[0];
  if (const int64_t element = CarriedElement(*value, body); element >= 0) {
    const auto counter = hlo::CounterWithStart(loop);
    if (counter && counter->index == element) return known(Affine{counter->step, counter->start});
    if (!IsInvariant(loop, element)) return std::nullopt;
    const Instruction* initial = ElementOf(loop.operand(0), element);
    const auto number = initial == nullptr ? std::nullopt : hlo::ScalarIntConstant(*initial);
    return number ? known(Affine{0, *number}) : std::nullopt;
  }
  const auto operand = [&](size_t n) {
    return Evaluate(value->operand(n), loop, trips, depth + 1);
  };
  switch (value->opcode()) {
    case Opcode::kReshape:
    case Opcode::kConvert:
      return operand(0);
    case Opcode::kAdd:
    case Opcode::kSubtract: {
      const auto a = operand(0), b = operand(1);
      if (!a || !b) return std::nullopt;
      const int64_t sign = value->opcode() == Opcode::kAdd ? 1 : -1;
      return known(Affine{a->scale + sign * b->scale, a->offset + sign * b->offset});
    }
    case Opcode::kMultiply: {
      const auto a = operand(0), b = operand(1);
      if (!a || !b || (a->scale != 0 && b->scale != 0)) return std::nullopt;
      return known(Affine{a->scale * b->offset + b->scale * a->offset, a->offset * b->offset});
    }
    case Opcode::kSelect: {
      // JAX lets an index count from the end: select(i < 0, i + n, i).
      Instruction* predicate = Behind(value->operand(0));
      if (predicate->opcode() != Opcode::kCompare ||
          predicate->attrs().comparison_direction() != "LT") {
        return std::nullopt;
      }
      const auto a = Evaluate(predicate->operand(0), loop, trips, depth + 1);
      const auto b = Evaluate(predicate->operand(1), loop, trips, depth + 1);
      if (!a || !b) return std::nullopt;
      const auto [least, most] = RangeOf({a->scale - b->scale, a->offset - b->offset}, trips);
      if (least >= 0) return operand(2);
      return most < 0 ? operand(1) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

bool IsZero(const Instruction& i) { return hlo::ScalarIntConstant(i) == 0; }

// Whether indices from `first` on are zeros but for the one of the first dimension.
bool AtSlot(const Instruction& access, size_t first) {
  for (size_t n = first + 1; n < access.operands().size(); ++n) {
    if (!IsZero(*Behind(access.operand(n)))) return false;
  }
  return access.operands().size() > first;
}

// One slot of an array, whole in all other dimensions.
bool IsSlot(const hlo::Shape& slot, const hlo::Shape& array) {
  if (slot.rank() != array.rank() || slot.rank() < 1 || slot.dims[0] != 1) return false;
  return std::equal(slot.dims.begin() + 1, slot.dims.end(), array.dims.begin() + 1);
}

bool DropsFirst(const hlo::Shape& without, const hlo::Shape& with) {
  return std::equal(without.dims.begin(), without.dims.end(), with.dims.begin() + 1,
                    with.dims.end());
}

// The value that a slot of this form is made of; null: of none.
Instruction* WithoutFirst(Instruction* slot) {
  slot = Behind(slot);
  Instruction* value = slot->operands().empty() ? nullptr : Behind(slot->operand(0));
  if (value == nullptr || slot->shape().rank() != value->shape().rank() + 1 ||
      !DropsFirst(value->shape(), slot->shape())) {
    return nullptr;
  }
  if (slot->opcode() == Opcode::kReshape) return value;
  if (slot->opcode() != Opcode::kBroadcast) return nullptr;
  const std::vector<int64_t> dims = hlo::Dimensions(*slot);
  for (size_t n = 0; n < dims.size(); ++n) {
    if (dims[n] != static_cast<int64_t>(n) + 1) return nullptr;
  }
  return value;
}

}  // namespace

std::optional<Affine> AffineOf(Instruction* value, const Instruction& loop, int64_t trips) {
  return Evaluate(value, loop, trips, 0);
}

std::optional<Slot> SlotRead(Instruction* value) {
  value = Behind(value);
  if (value->opcode() != Opcode::kReshape) return std::nullopt;
  Instruction* slice = Behind(value->operand(0));
  if (slice->opcode() != Opcode::kDynamicSlice || slice->operands().size() < 2 ||
      !IsSlot(slice->shape(), slice->operand(0)->shape()) || !AtSlot(*slice, 1) ||
      value->shape().rank() + 1 != slice->shape().rank() ||
      !DropsFirst(value->shape(), slice->shape())) {
    return std::nullopt;
  }
  return Slot{Behind(slice->operand(0)), slice->operand(1)};
}

std::optional<Stack> StackOf(const Instruction& loop, int64_t element) {
  const Computation& body = *loop.called()[0];
  Instruction* next = ElementOf(body.root(), element);
  if (next == nullptr) return std::nullopt;
  Instruction* update = Behind(next);
  if (update->opcode() != Opcode::kDynamicUpdateSlice || update->operands().size() < 3 ||
      !IsSlot(update->operand(1)->shape(), update->shape()) || !AtSlot(*update, 2) ||
      CarriedElement(*Behind(update->operand(0)), body) != element) {
    return std::nullopt;
  }
  Instruction* written = WithoutFirst(update->operand(1));
  if (written == nullptr) return std::nullopt;
  return Stack{element, update->operand(2), written};
}

bool LoopPair::Same(const Affine& in_backward, const Affine& in_forward) const {
  return in_backward == Affine{in_forward.scale * iteration.scale,
                               in_forward.scale * iteration.offset + in_forward.offset};
}

std::optional<Stack> LoopPair::StackIn(Instruction* array) const {
  const int64_t element = CarriedElement(*array, *backward->called()[0]);
  if (element < 0 || !IsInvariant(*backward, element)) return std::nullopt;
  Instruction* initial = ElementOf(backward->operand(0), element);
  if (initial == nullptr) return std::nullopt;
  const int64_t left = ElementBehind(*Behind(initial), *forward);
  return left < 0 ? std::nullopt : StackOf(*forward, left);
}

std::optional<LoopPair> PairOf(Instruction* forward, Instruction* backward) {
  LoopPair pair;
  pair.forward = forward;
  pair.backward = backward;
  const auto forward_trips = hlo::TripCount(*forward), backward_trips = hlo::TripCount(*backward);
  if (!forward_trips || !backward_trips || *forward_trips < 1 || *backward_trips < 1) {
    return std::nullopt;
  }
  pair.forward_trips = *forward_trips;
  pair.backward_trips = *backward_trips;
  for (Instruction* i : backward->called()[0]->PostOrder()) {
    if (i->opcode() != Opcode::kReshape) continue;
    const auto read = SlotRead(i);
    const auto stack = read ? pair.StackIn(read->array) : std::nullopt;
    if (!stack) continue;
    const auto at = AffineOf(read->index, *backward, pair.backward_trips);
    const auto by = AffineOf(stack->index, *forward, pair.forward_trips);
    if (!at || !by || by->scale == 0) continue;
    // No index is moved to where the array ends.
    const int64_t slots = read->array->shape().dims[0];
    const auto [first, last] = RangeOf(*by, pair.forward_trips);
    if (first < 0 || last >= slots) continue;
    if (at->scale % by->scale != 0 || (at->offset - by->offset) % by->scale != 0) continue;
    pair.iteration = {at->scale / by->scale, (at->offset - by->offset) / by->scale};
    const auto [earliest, latest] = RangeOf(pair.iteration, pair.backward_trips);
    if (earliest < 0 || latest >= pair.forward_trips) continue;
    pair.written_at = stack->index;
    pair.read_at = read->index;
    pair.slots = slots;
    return pair;
  }
  return std::nullopt;
}

}  // namespace tpusim::remat
