#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/rules/host_callback.h"
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

// Looks through elements of tuples that the computation itself makes.
const Instruction* PastTuples(const Instruction* value) {
  while (value->opcode() == Opcode::kGetTupleElement &&
         value->operand(0)->opcode() == Opcode::kTuple) {
    value = value->operand(0)->operand(value->attrs().tuple_index());
  }
  return value;
}

// Past calls, asynchronous or not, of computations that do no more than call another. Nothing: it
// is not one operation of the operands.
std::optional<Executed> ExecutedBy(const Computation& called) {
  const Instruction* root = PastTuples(called.root());
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
    const Instruction* value = PastTuples(calls->operand(operand));
    if (value->opcode() != Opcode::kParameter) return std::nullopt;
    operand = value->attrs().parameter_number();
  }
  return executed;
}

// Halves of a call of a computation, and calls that wait for it.
bool IsAsyncWrapper(const Instruction& i) {
  return i.opcode() == Opcode::kAsyncStart || i.opcode() == Opcode::kAsyncDone ||
         i.opcode() == Opcode::kCall;
}

// The value of a computation's result where its operations are executed one after the other, right
// before `place`.
Instruction* ExecuteBefore(const Computation& called, const std::vector<Instruction*>& operands,
                           const Instruction* place, OrderEdit& order) {
  std::unordered_map<const Instruction*, Instruction*> made;
  for (const Instruction* i : called.Order()) {
    Instruction*& value = made[i];
    if (i->opcode() == Opcode::kParameter) {
      value = operands[i->attrs().parameter_number()];
      continue;
    }
    std::vector<Instruction*> inputs;
    for (const Instruction* operand : i->operands()) inputs.push_back(made.at(operand));
    if (IsAsyncWrapper(*i)) {
      // An inner call of the same core: its operations are executed here as well.
      value = i->opcode() == Opcode::kAsyncDone
                  ? inputs[0]
                  : ExecuteBefore(*i->called()[0], inputs, place, order);
      continue;
    }
    value = place->parent()->Add(i->opcode(), i->shape(), std::move(inputs), i->name(), i);
    value->set_called(i->called());
    order.Insert(place, value);
  }
  return made.at(called.root());
}

// Several operations of a SparseCore run on the TensorCore, where the call is waited for.
absl::Status ExecuteHere(Instruction* start, Instruction* done, const PassContext& context,
                         OrderEdit& order) {
  Computation* computation = start->parent();
  if (start->has_control_edges() || done->has_control_edges()) {
    return NoRule(fmt::format("no rule for {}: a SparseCore is to run more than one operation, in "
                              "an order with others that is stated",
                              start->Describe()));
  }
  const std::vector<Instruction*> operands(start->operands().begin(), start->operands().end());
  Instruction* result = ExecuteBefore(*start->called()[0], operands, done, order);
  context.records.Add(reasons::kOffLoadKept, start->name());
  done->ReplaceAllUsesWith(result);
  computation->Remove(done);
  computation->Remove(start);
  return absl::OkStatus();
}

absl::Status UnwrapCall(Instruction* start, const PassContext& context, OrderEdit& order) {
  Computation* computation = start->parent();
  Instruction* done = hlo::DoneOf(*start);
  const std::optional<Executed> executed = ExecutedBy(*start->called()[0]);
  if (done == nullptr) {
    return NoRule(fmt::format("no rule for {}: nothing waits for it", start->Describe()));
  }
  if (!executed) return ExecuteHere(start, done, context, order);
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

// The host begins with its call when the operands are there: it is one operation, where it is waited
// for. What it executes is no business of the device.
void UnwrapHostCall(Instruction* start, Instruction* done, OrderEdit& order) {
  Computation* computation = start->parent();
  const Instruction& call = hlo::WrappedBy(*start);
  const std::vector<Instruction*> operands(start->operands().begin(), start->operands().end());
  Instruction* result =
      computation->Add(Opcode::kCustomCall, done->shape(), operands, start->name(), &call);
  order.Insert(done, result);
  start->MoveControlTo(result, result);
  done->MoveControlTo(result, result);
  done->ReplaceAllUsesWith(result);
  computation->Remove(done);
  computation->Remove(start);
}

bool IsHostCall(const Instruction& start) {
  return start.opcode() == Opcode::kAsyncStart && start.called().size() == 1 &&
         hlo::IsCallOf(hlo::WrappedBy(start), hlo::kHostExecute);
}

absl::StatusOr<bool> UnwrapCalls(Computation* computation, OrderEdit& order,
                                 const PassContext& context) {
  bool changed = false;
  for (Instruction* i : hlo::Walk(computation->PostOrder())) {
    if (IsHostCall(*i) && hlo::DoneOf(*i) != nullptr) {
      UnwrapHostCall(i, hlo::DoneOf(*i), order);
      changed = true;
      continue;
    }
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
