#include "workloads/sharding/rules/rolls.h"

#include <algorithm>
#include <optional>
#include <string>

#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/walk.h"

namespace tpusim::sharding {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// A part of `source` along one dimension, all of the others.
struct SlicedPart {
  Instruction* source = nullptr;
  int64_t start = 0, limit = 0;
};

std::optional<SlicedPart> PartOf(Instruction* value, int64_t dim) {
  if (value->opcode() != Opcode::kSlice) return SlicedPart{value, 0, value->shape().dims[dim]};
  Instruction* source = value->operand(0);
  const std::vector<hlo::SliceDim> slice = hlo::GetSlice(*value);
  for (int64_t d = 0; d < source->shape().rank(); ++d) {
    if (slice[d].stride != 1) return std::nullopt;
    if (d != dim && value->shape().dims[d] != source->shape().dims[d]) return std::nullopt;
  }
  return SlicedPart{source, slice[dim].start, slice[dim].limit};
}

// The place of the first element if the parts follow each other round the source.
std::optional<SlicedPart> RoundOf(const Instruction& concatenate) {
  const int64_t dim = hlo::OnlyDimension(concatenate);
  std::optional<SlicedPart> first;
  int64_t next = 0;
  bool wraps = false;
  for (Instruction* operand : concatenate.operands()) {
    const std::optional<SlicedPart> part = PartOf(operand, dim);
    if (!part || part->start == part->limit) return std::nullopt;
    const int64_t size = part->source->shape().dims[dim];
    if (!first) {
      first = part;
    } else if (part->source != first->source || part->start != next) {
      return std::nullopt;
    } else {
      wraps = wraps || part->start == 0;
    }
    next = part->limit % size;
  }
  if (!wraps) return std::nullopt;
  return first;
}

}  // namespace

Roll GetRoll(const Instruction& roll) {
  return {hlo::OnlyDimension(roll), *hlo::annotations::kRoll.Of(roll)};
}

void FindRolls(hlo::Computation* computation, const std::function<bool(const Instruction*)>& keep) {
  for (Instruction* concatenate : hlo::Walk(computation->PostOrder())) {
    if (concatenate->opcode() != Opcode::kConcatenate || keep(concatenate)) continue;
    const std::optional<SlicedPart> first = RoundOf(*concatenate);
    if (!first) continue;
    Instruction* roll = computation->Add(Opcode::kCustomCall, concatenate->shape(), {first->source},
                                         "roll", concatenate);
    roll->mutable_attrs().set_custom_call_target(kRollTarget);
    hlo::SetDimensions(roll, {hlo::OnlyDimension(*concatenate)});
    hlo::annotations::kRoll.Set(roll, first->start);
    concatenate->ReplaceAllUsesWith(roll);
    const std::vector<Instruction*> parts = concatenate->operands();
    computation->Remove(concatenate);
    for (size_t i = 0; i < parts.size(); ++i) {
      // A part may occur twice.
      if (std::find(parts.begin(), parts.begin() + i, parts[i]) != parts.begin() + i) continue;
      if (parts[i]->opcode() == Opcode::kSlice && parts[i]->users().empty() && !keep(parts[i]) &&
          !parts[i]->IsRoot()) {
        computation->Remove(parts[i]);
      }
    }
  }
}

}  // namespace tpusim::sharding
