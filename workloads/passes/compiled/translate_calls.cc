#include <string_view>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/compiled/compiled.h"
#include "workloads/passes/compiled/order_edit.h"
#include "workloads/passes/pipeline/reasons.h"

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

// The operation that a call is; null: the call stays.
Instruction* OperationOf(const Instruction& call) {
  Computation* computation = call.parent();
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

}  // namespace

absl::StatusOr<bool> TranslateCalls(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : module.computations()) {
    OrderEdit order(computation);
    for (Instruction* call : hlo::Walk(computation->PostOrder())) {
      if (call->opcode() != Opcode::kCustomCall) continue;
      Instruction* value = IsSameValue(*call) ? call->operand(0) : OperationOf(*call);
      if (value == nullptr || value->shape().dims != call->shape().dims) continue;
      context.records.Add(reasons::kCallTranslated, call->name(),
                          {{"target", call->attrs().custom_call_target()}});
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
