#include "workloads/spmd/argument_data.h"

#include "workloads/hlo/analysis/underlying.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Its elements are those of its first operand, perhaps not all, in another order or type.
bool OnlyMoves(Opcode opcode) {
  return hlo::IsIndexMap(opcode) || hlo::ForwardsOperand(opcode) || opcode == Opcode::kConvert ||
         opcode == Opcode::kCopy || opcode == Opcode::kDynamicSlice;
}

}  // namespace

const Instruction* ArgumentData::ElementOf(const Instruction* tuple, int64_t index) const {
  while (tuple != nullptr) {
    if (tuple->opcode() == Opcode::kTuple) return tuple->operand(index);
    if (tuple->opcode() == Opcode::kOptBarrier) {
      tuple = tuple->operand(0);
      continue;
    }
    if (tuple->opcode() == Opcode::kWhile) {
      const hlo::Computation& body = *tuple->called()[0];
      const Instruction* next = hlo::TupleElement(body.root(), index);
      // A stack that every pass writes a slice of, such as weights kept for the backward pass.
      if (next != nullptr && next->opcode() == Opcode::kDynamicUpdateSlice &&
          hlo::CarriedElement(*next->operand(0), body) == index) {
        return next->operand(1);
      }
      if (!hlo::IsInvariant(*tuple, index)) return nullptr;
      tuple = tuple->operand(0);
      continue;
    }
    if (tuple->opcode() != Opcode::kParameter || tuple->parent() == module_.entry()) return nullptr;
    const auto caller = callers_.find(tuple->parent());
    if (caller == callers_.end() || caller->second.first->opcode() != Opcode::kWhile) {
      return nullptr;
    }
    tuple = caller->second.first;  // what the loop gives is what it was given, if it only reads it
  }
  return nullptr;
}

bool ArgumentData::Is(const Instruction* value) const {
  while (value != nullptr) {
    if (value->opcode() == Opcode::kParameter) return value->parent() == module_.entry();
    if (value->opcode() == Opcode::kGetTupleElement) {
      value = ElementOf(value->operand(0), value->attrs().tuple_index());
    } else if (OnlyMoves(value->opcode())) {
      value = value->operand(0);
    } else {
      return false;
    }
  }
  return false;
}

}  // namespace tpusim::spmd
