// Transposes and reshapes around products.
#include <algorithm>
#include <iterator>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/simplify/simplify.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Dims = std::vector<int64_t>;

// Free dimensions of the transposed value must come in the order of those of its operand:
// they are the result's.
bool FreeOnesInOrder(const Dims& permutation, const Dims& contracting, const Dims& batch) {
  int64_t last = -1;
  for (int64_t d : hlo::FreeDims(static_cast<int64_t>(permutation.size()), contracting, batch)) {
    if (permutation[d] < last) return false;
    last = permutation[d];
  }
  return true;
}

void Map(const Dims& permutation, Dims* dims) {
  for (int64_t& d : *dims) d = permutation[d];
}

Instruction* AbsorbTransposes(Instruction* dot) {
  hlo::DotDims dims = hlo::GetDotDims(*dot);
  Instruction* operands[2] = {dot->operand(0), dot->operand(1)};
  bool any = false;
  for (int side = 0; side < 2; ++side) {
    Instruction* transpose = operands[side];
    if (transpose->opcode() != Opcode::kTranspose) continue;
    Dims& contracting = side == 0 ? dims.lhs_contracting : dims.rhs_contracting;
    Dims& batch = side == 0 ? dims.lhs_batch : dims.rhs_batch;
    const Dims permutation = hlo::Dimensions(*transpose);
    if (!FreeOnesInOrder(permutation, contracting, batch)) continue;
    Map(permutation, &contracting);
    Map(permutation, &batch);
    operands[side] = transpose->operand(0);
    any = true;
  }
  if (!any) return nullptr;
  Instruction* made =
      dot->parent()->Add(Opcode::kDot, dot->shape(), {operands[0], operands[1]}, dot->name(), dot);
  hlo::SetDotDims(made, dims);
  return made;
}

// The result is [batch, left, right]; a transpose that exchanges left and right is the
// product of the operands in the other order.
Instruction* Exchanged(Instruction* transpose) {
  Instruction* dot = transpose->operand(0);
  if (dot->opcode() != Opcode::kDot || dot->operands().size() != 2 || dot->users().size() != 1 ||
      dot->has_control_edges()) {
    return nullptr;
  }
  const hlo::DotDims dims = hlo::GetDotDims(*dot);
  const auto batch = static_cast<int64_t>(dims.lhs_batch.size());
  const int64_t left =
      dot->operand(0)->shape().rank() - batch - static_cast<int64_t>(dims.lhs_contracting.size());
  const int64_t rank = dot->shape().rank();
  Dims wanted;
  for (int64_t d = 0; d < batch; ++d) wanted.push_back(d);
  for (int64_t d = batch + left; d < rank; ++d) wanted.push_back(d);
  for (int64_t d = batch; d < batch + left; ++d) wanted.push_back(d);
  if (hlo::Dimensions(*transpose) != wanted) return nullptr;
  Instruction* made = dot->parent()->Add(
      Opcode::kDot, hlo::MakeShape(dot->shape().element_type, transpose->shape().dims),
      {dot->operand(1), dot->operand(0)}, dot->name(), dot);
  hlo::SetDotDims(made,
                  {dims.rhs_contracting, dims.lhs_contracting, dims.rhs_batch, dims.lhs_batch});
  auto* precision = made->attrs().has_precision_config()
                        ? made->mutable_attrs().mutable_precision_config()
                        : nullptr;
  if (precision != nullptr && precision->operand_precision_size() == 2) {
    precision->mutable_operand_precision()->SwapElements(0, 1);
  }
  return made;
}

// The product with merged dimensions of its right operand in place of a reshape that merges those
// of the result. So the TPU compiler has it where the left operand has a dimension of extent one
// (gated linear units of [1,512,512,128] x [128,2,256], compiled for v5p in bf16 and f32); of
// [2,512,512,128] and [512,512,128] it makes the result in five and four dimensions and moves it.
Instruction* Merged(Instruction* reshape) {
  Instruction* dot = reshape->operand(0);
  if (dot->opcode() != Opcode::kDot || dot->operands().size() != 2 || dot->users().size() != 1 ||
      dot->has_control_edges()) {
    return nullptr;
  }
  hlo::DotDims dims = hlo::GetDotDims(*dot);
  Instruction *left = dot->operand(0), *right = dot->operand(1);
  const Dims &rows = left->shape().dims, &columns = right->shape().dims;
  const Dims left_free = hlo::FreeDims(left->shape().rank(), dims.lhs_contracting, dims.lhs_batch);
  const Dims free = hlo::FreeDims(right->shape().rank(), dims.rhs_contracting, dims.rhs_batch);
  const bool has_one = std::ranges::any_of(left_free, [&](int64_t d) { return rows[d] == 1; });
  // Neighbours in order can be merged where they lie.
  const int64_t first = free.empty() ? 0 : free.front(), more = std::ssize(free) - 1;
  if (!has_one || more < 1 || free.back() != first + more) return nullptr;
  Dims merged = columns, result = dot->shape().dims;
  for (int64_t n = 0; n < more; ++n) {
    merged[first] *= merged[first + 1];
    merged.erase(merged.begin() + first + 1);
  }
  result.resize(result.size() - free.size());
  result.push_back(merged[first]);
  if (result != reshape->shape().dims) return nullptr;
  for (Dims* of : {&dims.rhs_contracting, &dims.rhs_batch}) {
    for (int64_t& d : *of) d -= d > first ? more : 0;
  }
  hlo::Computation* parent = dot->parent();
  Instruction* weights = parent->Add(
      Opcode::kReshape, hlo::MakeShape(right->shape().element_type, merged), {right}, right->name(),
      reshape);
  Instruction* made =
      parent->Add(Opcode::kDot, hlo::MakeShape(dot->shape().element_type, result), {left, weights},
                  dot->name(), dot);
  hlo::SetDotDims(made, dims);
  return made;
}

}  // namespace

Instruction* SimplifyDot(Instruction* i) {
  if (i->opcode() == Opcode::kReshape) return Merged(i);
  if (i->opcode() == Opcode::kDot && i->operands().size() == 2) return AbsorbTransposes(i);
  if (i->opcode() == Opcode::kTranspose) return Exchanged(i);
  return nullptr;
}

}  // namespace tpusim::passes
