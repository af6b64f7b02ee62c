#include "workloads/kernels/view/whole_rows.h"

#include <algorithm>

#include "configs/vector_register.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/view/kernel_view.h"

namespace tpusim::kernels {

using hlo::Instruction;
using hlo::Opcode;

namespace {

int64_t RowLength(const Instruction& reduction) {
  return reduction.operand(0)->shape().dims[hlo::Dimensions(reduction)[0]];
}

}  // namespace

const Instruction* ReductionSpreadBy(const Instruction& instruction,
                                     const configs::Policy& policy) {
  if (instruction.opcode() != Opcode::kBroadcast) return nullptr;
  const Instruction& reduction = *instruction.operand(0);
  if (reduction.opcode() != Opcode::kReduce || !reduction.shape().IsArray()) return nullptr;
  const std::vector<int64_t>& rows = reduction.operand(0)->shape().dims;
  if (static_cast<int64_t>(rows.size()) < policy.whole_row_least_rank ||
      instruction.shape().dims != rows) {
    return nullptr;
  }
  const std::vector<int64_t> reduced = hlo::Dimensions(reduction);
  if (reduced.size() != 1 || rows[reduced[0]] > policy.whole_row_most_elements) return nullptr;
  const std::vector<int64_t> kept = hlo::Dimensions(instruction);
  if (std::find(kept.begin(), kept.end(), reduced[0]) != kept.end()) return nullptr;
  return std::is_sorted(kept.begin(), kept.end()) ? &reduction : nullptr;
}

std::vector<const Instruction*> ReductionsSpreadIn(const std::vector<const Instruction*>& members,
                                                   const configs::Policy& policy) {
  std::vector<const Instruction*> reductions;
  for (const Instruction* m : members) {
    const Instruction* reduction = ReductionSpreadBy(*m, policy);
    if (reduction == nullptr) continue;
    if (std::find(members.begin(), members.end(), reduction) != members.end()) {
      reductions.push_back(reduction);
    }
  }
  return reductions;
}

int OperandAlongRows(const Instruction& dot, const Instruction& reduction,
                     const configs::Policy& policy) {
  if (dot.opcode() != Opcode::kDot ||
      RowLength(reduction) > policy.whole_row_of_product_most_elements ||
      dot.shape().dims != reduction.operand(0)->shape().dims) {
    return -1;
  }
  const hlo::DotDims dims = hlo::GetDotDims(dot);
  const auto batch = static_cast<int64_t>(dims.lhs_batch.size());
  const auto contracted = static_cast<int64_t>(dims.lhs_contracting.size());
  const int64_t lhs_end = dot.operand(0)->shape().rank() - contracted;
  const int64_t row = hlo::Dimensions(reduction)[0];
  if (row < batch) return -1;
  return row < lhs_end ? 0 : 1;
}

int64_t RowRegisters(const target::Target& target, const Instruction& reduction) {
  hlo::Shape block = reduction.operand(0)->shape();
  const int64_t row = hlo::Dimensions(reduction)[0];
  for (int64_t d = 0; d < block.rank(); ++d) {
    if (d != row) block.dims[d] = 1;
  }
  return VectorRegisters(target, block);
}

Bytes RowBytes(const target::Target& target, const Instruction& reduction) {
  return Bytes(RowRegisters(target, reduction) * configs::RegisterBytes(target.chip().vpu));
}

}  // namespace tpusim::kernels
