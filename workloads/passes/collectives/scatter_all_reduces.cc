#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/known_values.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/combine.h"
#include "workloads/passes/collectives/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// An all-reduce of which a device reads one part of a dimension, converted or transposed on the way.
struct OwnPart {
  Instruction* sum = nullptr;
  std::vector<Instruction*> between;  // from the slice back to the sum
  int64_t dim = -1;                   // of the sum
  const Instruction* start = nullptr;
  int64_t size = 0;
};

// The only dimension of which a slice leaves a part; -1: none, or several.
int64_t OnlyCut(const Instruction& slice) {
  int64_t cut = -1;
  for (int64_t d = 0; d < slice.shape().rank(); ++d) {
    if (slice.shape().dims[d] == slice.operand(0)->shape().dims[d]) continue;
    if (cut >= 0) return -1;
    cut = d;
  }
  return cut;
}

std::optional<OwnPart> PartOf(const Instruction& slice) {
  if (slice.opcode() != Opcode::kDynamicSlice) return std::nullopt;
  OwnPart part;
  part.dim = OnlyCut(slice);
  if (part.dim < 0) return std::nullopt;
  part.start = slice.operand(1 + part.dim);
  part.size = slice.shape().dims[part.dim];
  Instruction* value = slice.operand(0);
  while (value->users().size() == 1 && !value->has_control_edges()) {
    if (!AllReduceKind(*value).empty()) {
      part.sum = value;
      return part;
    }
    if (value->opcode() == Opcode::kTranspose) {
      part.dim = hlo::Dimensions(*value)[part.dim];
    } else if (value->opcode() != Opcode::kConvert && value->opcode() != Opcode::kCopy) {
      break;
    }
    part.between.push_back(value);
    value = value->operand(0);
  }
  return std::nullopt;
}

// Whether every device of a group takes the part with its number in the group, and nothing is left.
bool IsOwnPart(const OwnPart& part, const std::vector<std::vector<int64_t>>& groups,
               const hlo::KnownValues& known) {
  for (const std::vector<int64_t>& group : groups) {
    if (std::ssize(group) * part.size != part.sum->shape().dims[part.dim]) return false;
    for (int64_t rank = 0; rank < std::ssize(group); ++rank) {
      if (known.ScalarOf(*part.start, group[rank]) != rank * part.size) return false;
    }
  }
  return !groups.empty();
}

void Scatter(const OwnPart& part, Instruction* slice) {
  hlo::Computation* computation = slice->parent();
  Shape shape = part.sum->shape();
  shape.dims[part.dim] = part.size;
  Instruction* value = computation->Add(Opcode::kReduceScatter, shape, {part.sum->operand(0)},
                                        "reduce-scatter", part.sum);
  value->mutable_attrs() = part.sum->attrs();
  value->set_called(part.sum->called());
  hlo::SetDimensions(value, {part.dim});
  hlo::annotations::kReshard.Set(value);
  for (auto it = part.between.rbegin(); it != part.between.rend(); ++it) {
    const Instruction& moved = **it;
    shape = hlo::MakeShape(moved.shape().element_type, value->shape().dims);
    if (moved.opcode() == Opcode::kTranspose) {
      const std::vector<int64_t> order = hlo::Dimensions(moved);
      for (size_t d = 0; d < order.size(); ++d) shape.dims[d] = value->shape().dims[order[d]];
    }
    Instruction* made =
        computation->Add(moved.opcode(), shape, {value}, moved.name(), &moved);
    made->mutable_attrs() = moved.attrs();
    value = made;
  }
  slice->ReplaceAllUsesWith(value);
  computation->Remove(slice);
}

}  // namespace

absl::StatusOr<bool> ScatterAllReduces(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (hlo::Computation* computation : context.facts->CallsOf(module).control()) {
    bool here = false;
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      if (i->has_control_edges()) continue;
      const std::optional<OwnPart> part = PartOf(*i);
      if (!part) continue;
      ASSIGN_OR_RETURN(const cost::CollectiveGroups groups, context.cost.GroupsOf(*part->sum));
      if (!IsOwnPart(*part, groups.partitions, hlo::KnownValues(module))) continue;
      context.records.Add(reasons::kSumScattered, part->sum->name(), {{"part", i->name()}});
      Scatter(*part, i);
      here = true;
    }
    if (here) computation->RemoveDead();
    changed = changed || here;
  }
  return changed;
}

}  // namespace tpusim::passes
