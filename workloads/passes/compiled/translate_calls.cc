#include <string>
#include <string_view>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/rules/shape_inference.h"
#include "workloads/hlo/rules/shape_rules.h"
#include "workloads/passes/compiled/compiled.h"
#include "workloads/passes/compiled/order_edit.h"
#include "workloads/passes/compiled/reasons.h"
#include "workloads/passes/compiled/x64_calls.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// The value is the operand; only what is known of its numbers, or which bits of them a kernel
// looks at, is another matter.
constexpr std::string_view kSameValue[] = {"AssumeGatherIndicesInBound",
                                           "GatherScatterIndicesBitpacked"};

bool IsSameValue(const Instruction& i) {
  for (const std::string_view target : kSameValue) {
    if (hlo::IsCallOf(i, target)) return i.operands().size() == 1;
  }
  return false;
}

// Returns a ragged product of `rows` with the numbers of its dimensions.
Instruction* AddRaggedProduct(const Instruction& of, Instruction* rows, Instruction* other,
                              Instruction* sizes, bool sums_groups, int64_t summed) {
  Instruction* product =
      of.parent()->Add(Opcode::kRaggedDot, of.shape(), {rows, other, sizes}, of.name(), &of);
  auto& numbers = *product->mutable_attrs().mutable_ragged_dot_dimension_numbers();
  numbers.add_lhs_ragged_dimensions(0);
  if (!sums_groups) numbers.add_rhs_group_dimensions(0);
  numbers.mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(sums_groups ? 0 : 1);
  numbers.mutable_dot_dimension_numbers()->add_rhs_contracting_dimensions(summed);
  return product;
}

// The kernel that the compiler adds to a module for a ragged product (`ragged-dot-none`): what
// another made of the sizes of the groups (`ragged-dot-metadata`), the rows, and a matrix for each
// group. Its body is MLIR that runs a product per block of rows, so that it is the product itself
// whose windows and passes are priced. Null: it is something else.
Instruction* RaggedProductOf(const Instruction& call) {
  if (!call.name().starts_with("ragged-dot") || call.operands().size() < 2) return nullptr;
  const Instruction* metadata = call.operand(0);
  if (metadata->opcode() != Opcode::kGetTupleElement) return nullptr;
  metadata = metadata->operand(0);
  if (!metadata->name().starts_with("ragged-dot-metadata") || metadata->operands().size() != 1) {
    return nullptr;
  }
  Instruction *matrices = call.operands().back(), *rows = call.operand(call.operands().size() - 2);
  Instruction* sizes = metadata->operand(0);
  const hlo::Shape &left = rows->shape(), &right = matrices->shape(), &result = call.shape();
  if (left.rank() != 2 || right.rank() != left.rank() + 1 || result.rank() != 2 ||
      sizes->shape().rank() != 1 || sizes->shape().dims[0] != right.dims[0]) {
    return nullptr;
  }
  // Either dimension of the matrices may be the one that is summed over.
  const auto sums = [&](int64_t summed, int64_t kept) {
    return right.dims[summed] == left.dims[1] && right.dims[kept] == result.dims[1];
  };
  if (left.dims[0] != result.dims[0] || (!sums(1, 2) && !sums(2, 1))) return nullptr;
  const int64_t summed = sums(1, 2) ? 1 : 2;
  return AddRaggedProduct(call, rows, matrices, sizes, /*sums_groups=*/false, summed);
}

// The compiler notes of a kernel that it skips blocks in which a group has no rows.
bool SkipsBlocks(const Instruction& fusion) {
  constexpr std::string_view kSkips = "ITERATION_SKIPPER_MODE_GROUP_STARTS";
  return fusion.opcode() == Opcode::kFusion &&
         fusion.attrs().backend_config().find(kSkips) != std::string::npos;
}

// The other form that the compiler has for a ragged product: one for each group, of all rows, and a
// mask of the rows that are its own, [groups, rows]. Without the note that its kernel skips blocks
// it is a dense product. Null: it is something else.
Instruction* MaskedProductOf(const Instruction& fusion) {
  if (!SkipsBlocks(fusion)) return nullptr;
  const auto rank = [](const Instruction* i) -> int64_t {
    return i->shape().IsArray() ? i->shape().rank() : -1;
  };
  constexpr int64_t kOfMatrix = 2, kOfMatrices = 3;  // number: dimensions
  Instruction *mask = nullptr, *matrices = nullptr;
  std::vector<Instruction*> rows;
  for (Instruction* o : fusion.operands()) {
    if (rank(o) == kOfMatrices) matrices = o;
    if (rank(o) != kOfMatrix) continue;
    if (o->shape().element_type == hlo::PrimitiveType::kPred) {
      mask = o;
    } else {
      rows.push_back(o);
    }
  }
  if (mask == nullptr || mask->opcode() != Opcode::kFusion || mask->operands().empty() ||
      rows.empty()) {
    return nullptr;
  }
  Instruction* sizes = mask->operand(0);
  const hlo::Shape& result = fusion.shape();
  const int64_t groups = mask->shape().dims[0], all = mask->shape().dims[1];
  if (rank(sizes) != 1 || sizes->shape().dims[0] != groups || rows[0]->shape().dims[0] != all) {
    return nullptr;
  }
  if (matrices == nullptr) {
    if (rows.size() != 2 || rank(&fusion) != kOfMatrices || result.dims[0] != groups ||
        rows[1]->shape().dims[0] != all) {
      return nullptr;
    }
    const bool first = rows[0]->shape().dims[1] == result.dims[1];
    return AddRaggedProduct(fusion, rows[first ? 0 : 1], rows[first ? 1 : 0], sizes, true, 0);
  }
  if (rows.size() != 1 || rank(&fusion) != kOfMatrix || matrices->shape().dims[0] != groups) {
    return nullptr;
  }
  const bool last = matrices->shape().dims[1] == result.dims[1];
  return AddRaggedProduct(fusion, rows[0], matrices, sizes, false, last ? 2 : 1);
}

// The operation that a call means by its name, if its operands are of a kind that this takes.
Instruction* MeantBy(const Instruction& call) {
  Computation* computation = call.parent();
  if (call.opcode() == Opcode::kFusion) return MaskedProductOf(call);
  if (Instruction* product = RaggedProductOf(call); product != nullptr) return product;
  if (Instruction* operation = X64Operation(call); operation != nullptr) return operation;
  if (call.operands().size() != 1) return nullptr;
  Instruction* matrix = call.operand(0);
  if (hlo::IsCallOf(call, "Cholesky")) {
    Instruction* factor =
        computation->Add(Opcode::kCholesky, call.shape(), {matrix}, call.name(), &call);
    factor->mutable_attrs().mutable_cholesky_options()->set_lower(true);
    return factor;
  }
  if (hlo::IsCallOf(call, "InvertDiagBlocksLowerTriangular")) {
    // Against a right side as large as the matrix, that of its inverse.
    Instruction* inverse = computation->Add(Opcode::kTriangularSolve, call.shape(),
                                            {matrix, matrix}, call.name(), &call);
    auto& options = *inverse->mutable_attrs().mutable_triangular_solve_options();
    options.set_left_side(true);
    options.set_lower(true);
    options.set_transpose_a(hlo::pb::TriangularSolveOptions::NO_TRANSPOSE);
    return inverse;
  }
  return nullptr;
}

// The operation that a call is; null: the call stays.
Instruction* OperationOf(const Instruction& call) {
  Instruction* meant = MeantBy(call);
  if (meant == nullptr) return nullptr;
  const absl::StatusOr<hlo::Shape> shape = hlo::InferShape(*meant);
  if (shape.ok() && shape->dims == call.shape().dims &&
      hlo::shape_rules::Compatible(shape->element_type, call.shape().element_type)) {
    return meant;
  }
  meant->parent()->Remove(meant);
  return nullptr;
}

}  // namespace

absl::StatusOr<bool> TranslateCalls(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : module.computations()) {
    OrderEdit order(computation);
    for (Instruction* call : hlo::Walk(computation->PostOrder())) {
      if (call->opcode() != Opcode::kCustomCall && call->opcode() != Opcode::kFusion) continue;
      Instruction* value = IsSameValue(*call) ? call->operand(0) : OperationOf(*call);
      if (value == nullptr || !hlo::SameDims(value->shape(), call->shape())) {
        if (SkipsBlocks(*call)) context.records.Add(reasons::kSkipsNotRead, call->name());
        continue;
      }
      const bool masked = call->opcode() == Opcode::kFusion;
      context.records.Add(reasons::kCallTranslated, call->name(),
                          {{"target", masked ? "masked products"
                                             : call->attrs().custom_call_target()}});
      if (value != call->operand(0)) {
        order.Insert(call, value);
        call->MoveControlTo(value, value);
      } else if (call->has_control_edges()) {
        continue;
      }
      call->ReplaceAllUsesWith(value);
      computation->Remove(call);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
