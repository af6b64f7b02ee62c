#include "workloads/hlo/transforms/expand_bitcasts.h"

#include <algorithm>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/transforms/extents_of_one.h"

namespace tpusim::hlo {
namespace {

// Logical dimensions, the slowest first.
std::vector<int64_t> MajorToMinor(const Shape& shape) {
  std::vector<int64_t> order = MinorToMajor(shape);
  std::ranges::reverse(order);
  return order;
}

std::vector<int64_t> Permuted(const std::vector<int64_t>& values,
                              const std::vector<int64_t>& permutation) {
  std::vector<int64_t> result;
  result.reserve(permutation.size());
  for (int64_t d : permutation) result.push_back(values[d]);
  return result;
}

Instruction* Transposed(Instruction* value, const std::vector<int64_t>& permutation) {
  if (std::ranges::is_sorted(permutation)) return value;
  Instruction* transpose = value->parent()->Add(
      Opcode::kTranspose,
      MakeShape(value->shape().element_type, Permuted(value->shape().dims, permutation)), {value});
  SetDimensions(transpose, permutation);
  return transpose;
}

void Expand(Instruction* bitcast) {
  Instruction* value = bitcast->operand(0);
  if (value->shape().element_type != bitcast->shape().element_type) {
    Instruction* converted =
        bitcast->parent()->Add(Opcode::kBitcastConvert, bitcast->shape(), {value});
    bitcast->ReplaceAllUsesWith(converted);
    return;
  }
  value = Transposed(value, MajorToMinor(value->shape()));
  const std::vector<int64_t> order = MajorToMinor(bitcast->shape());
  value = Reshaped(value, Permuted(bitcast->shape().dims, order), nullptr);
  std::vector<int64_t> back(order.size());
  for (size_t d = 0; d < order.size(); ++d) back[order[d]] = static_cast<int64_t>(d);
  Instruction* result = Transposed(value, back);
  // Bitcasts of it need its layout.
  if (result != bitcast->operand(0)) result->set_shape(bitcast->shape());
  bitcast->ReplaceAllUsesWith(result);
}

}  // namespace

void ExpandBitcasts(Module& module) {
  for (Computation* computation : module.computations()) {
    bool any = false;
    for (Instruction* i : computation->PostOrder()) {
      if (i->opcode() != Opcode::kBitcast) continue;
      Expand(i);
      any = true;
    }
    if (any) computation->RemoveDead();
  }
}

}  // namespace tpusim::hlo
