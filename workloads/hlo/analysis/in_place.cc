#include "workloads/hlo/analysis/in_place.h"

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {

const Instruction* WithoutBitcasts(const Instruction* value) {
  while (value->opcode() == Opcode::kBitcast) value = value->operand(0);
  return value;
}

namespace {

// The results that a custom call states to alias operands (output_operand_aliasing), written as a
// whole. Arrays in nested tuples have buffers of their own here.
std::vector<InPlaceResult> ResultsOfCustomCall(const Instruction& i) {
  std::vector<InPlaceResult> results;
  for (const auto& alias : i.attrs().output_operand_aliasing()) {
    const int64_t operand = alias.operand_index();
    if (alias.output_shape_index_size() > 1 || !i.operand(operand)->shape().IsArray()) continue;
    const int64_t element = alias.output_shape_index_size() == 0 ? 0 : alias.output_shape_index(0);
    int64_t leaf = 0;
    for (int64_t n = 0; n < element; ++n) {
      leaf += static_cast<int64_t>(Leaves(i.shape().tuple[n]).size());
    }
    results.push_back({leaf, operand, &i, operand});
  }
  return results;
}

// The results of one dynamic-update-slice, scatter or custom call that it updates in place.
std::vector<InPlaceResult> ResultsOfUpdate(const Instruction& i) {
  if (i.opcode() == Opcode::kDynamicUpdateSlice) return {{0, 0, &i, 1}};
  if (i.opcode() == Opcode::kCustomCall) return ResultsOfCustomCall(i);
  std::vector<InPlaceResult> results;
  if (i.opcode() != Opcode::kScatter) return results;
  // Arrays, indices, updates.
  const auto arrays = static_cast<int64_t>(i.operands().size() / 2);
  for (int64_t n = 0; n < arrays; ++n) results.push_back({n, n, &i, arrays + 1 + n});
  return results;
}

// Whether arrays of these shapes can share a buffer; bitcasts may give them other dimensions.
bool SameBuffer(const Shape& a, const Shape& b) {
  return a.element_type == b.element_type && a.ElementCount() == b.ElementCount() &&
         a.layout.memory_space == b.layout.memory_space;
}

}  // namespace

std::vector<InPlaceResult> InPlaceResults(const Instruction& i) {
  if (i.opcode() != Opcode::kFusion) return ResultsOfUpdate(i);
  std::vector<InPlaceResult> results;
  const Instruction* root = i.called()[0]->root();
  const bool several = root->opcode() == Opcode::kTuple;
  const size_t made = several ? root->operands().size() : 1;
  int64_t leaf = 0;
  std::vector<bool> taken(i.operands().size(), false);
  const std::vector<const Shape*> leaves = Leaves(i.shape());
  for (size_t n = 0; n < made; ++n) {
    const Instruction* value = several ? root->operand(n) : root;
    for (const InPlaceResult& of : ResultsOfUpdate(*WithoutBitcasts(value))) {
      const Instruction* updated = WithoutBitcasts(of.update->operand(of.operand));
      if (updated->opcode() != Opcode::kParameter) continue;
      const int64_t operand = updated->attrs().parameter_number();
      if (taken[operand] || !SameBuffer(i.operand(operand)->shape(), *leaves[leaf + of.leaf])) {
        continue;
      }
      taken[operand] = true;
      results.push_back({leaf + of.leaf, operand, of.update, of.update_operand});
    }
    leaf += static_cast<int64_t>(Leaves(value->shape()).size());
  }
  return results;
}

}  // namespace tpusim::hlo
