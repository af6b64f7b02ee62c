#include "workloads/hlo/analysis/underlying.h"

#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/small_float.h"

namespace tpusim::hlo {
namespace {

// IEEE 754-2019, and bfloat16 as the upper half of a float.
bool HasPrecision(PrimitiveType type, int exponent_bits, int mantissa_bits) {
  if (type == PrimitiveType::kF32) return exponent_bits >= 8 && mantissa_bits >= 23;
  if (type == PrimitiveType::kF64) return exponent_bits >= 11 && mantissa_bits >= 52;
  const auto format = SmallFloatOf(type);
  return format && exponent_bits >= format->exponent_bits && mantissa_bits >= format->mantissa_bits;
}

// The instruction that computes element `index` of a tuple that loops and calls pass unchanged;
// null: the tuple is made otherwise.
const Instruction* PassedElement(const Instruction* tuple, int64_t index,
                                 const CallerOf& caller_of) {
  while (true) {
    if (const Instruction* element = TupleElement(tuple, index)) return element;
    while (tuple->opcode() == Opcode::kOptBarrier || tuple->opcode() == Opcode::kCopy) {
      tuple = tuple->operand(0);
    }
    if (tuple->opcode() == Opcode::kParameter) {
      const auto number = static_cast<size_t>(tuple->attrs().parameter_number());
      const Instruction* caller = caller_of(*tuple->parent());
      if (caller == nullptr) return nullptr;
      tuple = caller->opcode() == Opcode::kCall ? caller->operand(number) : caller;
      if (caller->opcode() == Opcode::kCall) continue;
    }
    if (tuple->opcode() != Opcode::kWhile || !IsInvariant(*tuple, index)) return nullptr;
    tuple = tuple->operand(0);
  }
}

}  // namespace

bool NamesOperand(const Instruction& i) {
  return ForwardsOperand(i.opcode()) && !IsControlFlow(i.opcode()) && !IsAsyncDone(i.opcode()) &&
         i.opcode() != Opcode::kAsyncUpdate;
}

bool OnlyNames(const Instruction& i) {
  return NamesOperand(i) || i.opcode() == Opcode::kTuple || i.opcode() == Opcode::kGetTupleElement;
}

bool KeepsValue(const Instruction& i) {
  if (i.operands().size() != 1 || !i.shape().IsArray() ||
      !SameDims(i.shape(), i.operand(0)->shape())) {
    return false;
  }
  switch (i.opcode()) {
    case Opcode::kCopy:
    case Opcode::kOptBarrier:
    case Opcode::kBitcast:
      return true;
    case Opcode::kReducePrecision:
      return HasPrecision(i.shape().element_type, i.attrs().exponent_bits(),
                          i.attrs().mantissa_bits());
    case Opcode::kCustomCall:
      return PlacementOf(i).has_value() || IsCallOf(i, kShardingConstraint) ||
             IsCallOf(i, kResultShardingConstraint) || IsCallOf(i, kPropagationBarrier);
    default:
      return false;
  }
}

Instruction* Underlying(Instruction* value, std::vector<Instruction*>* barriers) {
  while (true) {
    if (KeepsValue(*value)) {
      if (value->opcode() == Opcode::kOptBarrier && barriers != nullptr) barriers->push_back(value);
      value = value->operand(0);
      continue;
    }
    if (value->opcode() == Opcode::kCopyDone) {
      value = StartOf(*value).operand(0);
      continue;
    }
    if (value->opcode() != Opcode::kGetTupleElement) return value;
    Instruction* tuple = value->operand(0);
    std::vector<Instruction*> passed;
    while (tuple->opcode() == Opcode::kOptBarrier) {
      passed.push_back(tuple);
      tuple = tuple->operand(0);
    }
    if (tuple->opcode() != Opcode::kTuple) return value;
    if (barriers != nullptr) barriers->insert(barriers->end(), passed.begin(), passed.end());
    value = tuple->operand(static_cast<size_t>(value->attrs().tuple_index()));
  }
}

const Instruction* Underlying(const Instruction* value) {
  return Underlying(const_cast<Instruction*>(value));  // which changes nothing
}

const Instruction* Underlying(const Instruction* value, const CallerOf& caller_of) {
  while (true) {
    value = Underlying(value);
    const Instruction* from = nullptr;
    if (value->opcode() == Opcode::kGetTupleElement) {
      from = PassedElement(value->operand(0), value->attrs().tuple_index(), caller_of);
    } else if (value->opcode() == Opcode::kParameter) {
      const Instruction* caller = caller_of(*value->parent());
      if (caller != nullptr && caller->opcode() == Opcode::kCall) {
        from = caller->operand(static_cast<size_t>(value->attrs().parameter_number()));
      }
    }
    // The body of a manual region has parts of what it is called with.
    if (from == nullptr || !SameDims(from->shape(), value->shape())) return value;
    value = from;
  }
}

Instruction* TupleElement(Instruction* tuple, int64_t index) {
  while (tuple->opcode() == Opcode::kOptBarrier || tuple->opcode() == Opcode::kCopy) {
    tuple = tuple->operand(0);
  }
  if (tuple->opcode() != Opcode::kTuple || index < 0 || index >= std::ssize(tuple->operands())) {
    return nullptr;
  }
  return tuple->operand(static_cast<size_t>(index));
}

const Instruction* TupleElement(const Instruction* tuple, int64_t index) {
  return TupleElement(const_cast<Instruction*>(tuple), index);
}

int64_t CarriedElement(const Instruction& read, const Computation& computation) {
  if (read.opcode() != Opcode::kGetTupleElement || read.parent() != &computation ||
      read.operand(0)->opcode() != Opcode::kParameter) {
    return -1;
  }
  return read.attrs().tuple_index();
}

bool ForwardsElement(const Instruction& loop, int64_t index) {
  const Computation& body = *loop.called()[0];
  if (body.root()->opcode() != Opcode::kTuple) return false;
  const Instruction* next = body.root()->operand(static_cast<size_t>(index));
  while (NamesOperand(*next)) next = next->operand(0);
  return CarriedElement(*next, body) == index;
}

bool IsInvariant(const Instruction& loop, int64_t index) {
  const Computation& body = *loop.called()[0];
  const Instruction* next = TupleElement(body.root(), index);
  return next != nullptr && CarriedElement(*Underlying(next), body) == index;
}

}  // namespace tpusim::hlo
