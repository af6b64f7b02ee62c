// Combines all-reduces, and combines reduce-scatters.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "workloads/collectives/compiler_choice.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/collectives/combine.h"
#include "workloads/passes/collectives/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Returns the bytes of the result, or of its rounded form if it is only rounded.
Bytes CountedBytes(const Instruction& all_reduce) {
  const hlo::Shape& shape = all_reduce.shape();
  const Instruction* i = &all_reduce;
  while (i->users().size() == 1 && !i->IsRoot()) {
    i = i->users()[0];
    if (i->opcode() == Opcode::kConvert) return std::min(shape.ByteSize(), i->shape().ByteSize());
    const bool same = hlo::IsIndexMap(i->opcode()) && i->shape().IsArray() &&
                      i->shape().ElementCount() == shape.ElementCount();
    if (!same) break;
  }
  return shape.ByteSize();
}

void CombineSums(const std::vector<Instruction*>& members) {
  std::vector<Instruction*> operands;
  std::vector<hlo::Shape> shapes;
  for (const Instruction* member : members) {
    operands.push_back(member->operand(0));
    shapes.push_back(member->shape());
  }
  const std::vector<Instruction*> parts = AddCombined(members, operands, shapes);
  for (size_t n = 0; n < members.size(); ++n) {
    members[n]->ReplaceAllUsesWith(parts[n]);
    members[n]->parent()->Remove(members[n]);
  }
}

}  // namespace

absl::StatusOr<bool> CombineAllReduces(hlo::Module& module, const PassContext& context) {
  const configs::Policy& policy = context.target.policy();
  const CombineRule rule = {AllReduceKind, CountedBytes, policy.all_reduce_combined_bytes,
                            static_cast<size_t>(policy.all_reduce_combined_arrays), CombineSums};
  return CombineCollectives(module, context, rule, reasons::kAllReducesCombined);
}

namespace {

// Returns the bytes that the kernel which sums and slices keeps in VMEM.
Bytes BufferBytes(const Instruction& i, int64_t buffers_of_a_piece) {
  return i.operand(0)->shape().ByteSize() + i.shape().ByteSize() * buffers_of_a_piece;
}

// Returns the shape with dimension `dim` moved to the front.
hlo::Shape WithFirst(const hlo::Shape& shape, int64_t dim) {
  hlo::Shape moved = shape;
  std::rotate(moved.dims.begin(), moved.dims.begin() + dim, moved.dims.begin() + dim + 1);
  moved.layout.minor_to_major.clear();
  for (const int64_t d : hlo::MinorToMajor(shape)) {
    moved.layout.minor_to_major.push_back(d == dim ? 0 : d < dim ? d + 1 : d);
  }
  return moved;
}

Instruction* BitcastTo(const hlo::Shape& shape, Instruction* i) {
  if (i->shape() == shape) return i;
  return i->parent()->Add(Opcode::kBitcast, shape, {i}, "bitcast", i);
}

void CombineScatters(const std::vector<Instruction*>& members) {
  std::vector<Instruction*> operands;
  std::vector<hlo::Shape> shapes;
  for (const Instruction* member : members) {
    const int64_t dim = hlo::OnlyDimension(*member);
    operands.push_back(
        dim == 0 ? member->operand(0)
                 : BitcastTo(WithFirst(member->operand(0)->shape(), dim), member->operand(0)));
    shapes.push_back(dim == 0 ? member->shape() : WithFirst(member->shape(), dim));
  }
  const std::vector<Instruction*> parts = AddCombined(members, operands, shapes);
  hlo::SetDimensions(parts[0]->operand(0), {0});
  for (size_t n = 0; n < members.size(); ++n) {
    members[n]->ReplaceAllUsesWith(BitcastTo(members[n]->shape(), parts[n]));
    members[n]->parent()->Remove(members[n]);
  }
}

}  // namespace

absl::StatusOr<bool> CombineReduceScatters(hlo::Module& module, const PassContext& context) {
  const configs::ChipParams& chip = context.target.chip();
  const configs::Policy& policy = context.target.policy();
  if (chip.CoresPerDevice() > 1 || collectives::OffLoadsCollectives(policy)) {
    context.records.Add(reasons::kNotOnThisChip, module.name(), {{"chip", chip.name}});
    return false;
  }
  CombineRule rule;
  rule.kind = [](const Instruction& i) {
    return hlo::annotations::kReshard.On(i) ? ReduceScatterKind(i) : std::string();
  };
  rule.bytes = [&policy](const Instruction& i) {
    return BufferBytes(i, policy.reduce_scatter_combined_buffers);
  };
  const double most = policy.reduce_scatter_combined_share *
                      static_cast<double>(context.target.ScopedVmem().value());
  rule.most_bytes = Bytes(static_cast<int64_t>(most) - 1);
  rule.most_arrays = std::numeric_limits<size_t>::max();
  rule.combine = CombineScatters;
  return CombineCollectives(module, context, rule, reasons::kScattersCombined);
}

}  // namespace tpusim::passes
