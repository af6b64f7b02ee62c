#include "workloads/spmd/argument_data.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool OnlyMoves(Opcode opcode) {
  switch (opcode) {
    case Opcode::kBitcast:
    case Opcode::kBitcastConvert:
    case Opcode::kConvert:
    case Opcode::kCopy:
    case Opcode::kDynamicSlice:
    case Opcode::kReducePrecision:
    case Opcode::kReshape:
    case Opcode::kSlice:
    case Opcode::kTranspose:
      return true;
    default:
      return false;
  }
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
      const Instruction* root = tuple->called()[0]->root();
      if (root->opcode() != Opcode::kTuple) return nullptr;
      const Instruction* next = root->operand(index);
      const bool only_read = next->opcode() == Opcode::kGetTupleElement &&
                             next->operand(0)->opcode() == Opcode::kParameter &&
                             next->attrs().tuple_index() == index;
      if (!only_read) return nullptr;
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
