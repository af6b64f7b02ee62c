#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/compiled/compiled.h"
#include "workloads/passes/compiled/order_edit.h"
#include "workloads/passes/compiled/reasons.h"
#include "workloads/passes/compiled/start_of.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr std::string_view kPrepareStart = "PrepareAsyncCallStart";
constexpr std::string_view kPrepareDone = "PrepareAsyncCallDone";

// The one operation that a computation executes, with the operands of the call that its operands
// are.
struct Executed {
  const Instruction* operation = nullptr;
  std::vector<int64_t> operands;
};

// Past calls, asynchronous or not, of computations that do no more than call another. Nothing: it
// is not one operation of the operands.
std::optional<Executed> ExecutedBy(const Computation& called) {
  const Instruction* root = called.root();
  const Instruction* calls = nullptr;
  if (root->opcode() == Opcode::kAsyncDone) calls = &hlo::StartOf(*root);
  if (root->opcode() == Opcode::kCall) calls = root;
  if (root->opcode() == Opcode::kParameter) return std::nullopt;  // it hands an operand on
  std::optional<Executed> executed;
  if (calls != nullptr) {
    executed = ExecutedBy(*calls->called()[0]);
  } else {
    executed = Executed{root, {}};
    for (size_t n = 0; n < root->operands().size(); ++n) {
      executed->operands.push_back(static_cast<int64_t>(n));
    }
    calls = root;
  }
  if (!executed) return std::nullopt;
  for (int64_t& operand : executed->operands) {
    const Instruction* value = calls->operand(operand);
    if (value->opcode() != Opcode::kParameter) return std::nullopt;
    operand = value->attrs().parameter_number();
  }
  return executed;
}

absl::Status UnwrapCall(Instruction* start, const PassContext& context, OrderEdit& order) {
  Computation* computation = start->parent();
  Instruction* done = hlo::DoneOf(*start);
  const std::optional<Executed> executed = ExecutedBy(*start->called()[0]);
  if (!executed || done == nullptr) {
    return NoRule(fmt::format("no rule for {}: a SparseCore is to run more than one operation",
                              start->Describe()));
  }
  std::vector<Instruction*> operands;
  for (const int64_t n : executed->operands) operands.push_back(start->operand(n));
  const Instruction& operation = *executed->operation;
  Instruction* result = nullptr;
  if (hlo::IsCollective(operation.opcode())) {
    Instruction* begin = StartOf(operation, operands, done->shape(), computation);
    begin->mutable_attrs().set_async_execution_thread(std::string(hlo::kSparseCoreThread));
    order.Insert(start, begin);
    start->MoveControlTo(begin, begin);
    result =
        computation->Add(Opcode::kAsyncDone, done->shape(), {begin}, operation.name() + "-done");
    context.records.Add(reasons::kOffLoad, operation.name());
  } else {
    result =
        computation->Add(operation.opcode(), done->shape(), operands, operation.name(), &operation);
    result->set_called(operation.called());
    start->MoveControlTo(result, result);
    context.records.Add(reasons::kOffLoadKept, operation.name());
  }
  *result->mutable_attrs().mutable_metadata() = done->attrs().metadata();
  order.Insert(done, result);
  done->MoveControlTo(result, result);
  done->ReplaceAllUsesWith(result);
  computation->Remove(done);
  computation->Remove(start);
  return absl::OkStatus();
}

absl::StatusOr<bool> UnwrapCalls(Computation* computation, OrderEdit& order,
                                 const PassContext& context) {
  bool changed = false;
  for (Instruction* i : hlo::Walk(computation->PostOrder())) {
    if (i->opcode() != Opcode::kAsyncStart || !hlo::IsOffLoaded(*i)) continue;
    RETURN_IF_ERROR(UnwrapCall(i, context, order));
    changed = true;
  }
  for (const std::string_view target : {kPrepareDone, kPrepareStart}) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      if (!hlo::IsCallOf(*i, target) || !i->users().empty() || i->has_control_edges()) continue;
      computation->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> UnwrapOffLoads(hlo::Module& module, const PassContext& context) {
  return EditOrdered(module, [&](Computation* computation, OrderEdit& order) {
    return UnwrapCalls(computation, order, context);
  });
}

}  // namespace tpusim::passes
