#include "workloads/hlo/transforms/join_async.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/forward_tuples.h"

namespace tpusim::hlo {
namespace {

// "all-gather-start" is the first half of "all-gather".
std::optional<Opcode> WholeOf(Opcode start) {
  constexpr std::string_view kSuffix = "-start";
  const std::string_view name = OpcodeName(start);
  if (!IsAsyncStart(start) || !name.ends_with(kSuffix)) return std::nullopt;
  return OpcodeFromName(name.substr(0, name.size() - kSuffix.size()));
}

// The start that `done` waits for, updates on the way passed over; null if it is no done.
const Instruction* JoinableStartOf(const Instruction& done) {
  if (!IsAsyncDone(done.opcode())) return nullptr;
  const Instruction* start = done.operand(0);
  while (start->opcode() == Opcode::kAsyncUpdate && !start->has_control_edges()) {
    start = start->operand(0);
  }
  return IsAsyncStart(start->opcode()) ? start : nullptr;
}

bool RunsOnTensorCore(const Instruction& start) {
  if (start.opcode() != Opcode::kAsyncStart) return false;
  const std::string& thread = start.attrs().async_execution_thread();
  if (!thread.empty() && thread != "main") return false;
  const Opcode opcode = WrappedBy(start).opcode();
  return !IsCollective(opcode) && opcode != Opcode::kCopy && opcode != Opcode::kSlice &&
         opcode != Opcode::kDynamicSlice && opcode != Opcode::kDynamicUpdateSlice;
}

bool IsAny(const Instruction&) { return true; }

// Returns an operation that does the work of both halves; null if there is none.
Instruction* Join(const Instruction& done, bool joins(const Instruction& start)) {
  const Instruction* start = JoinableStartOf(done);
  if (start == nullptr || !joins(*start)) return nullptr;
  if (start->has_control_edges() || done.has_control_edges()) return nullptr;
  const bool wraps = start->opcode() == Opcode::kAsyncStart;
  const std::optional<Opcode> opcode = wraps ? Opcode::kCall : WholeOf(start->opcode());
  if (!opcode.has_value()) return nullptr;
  Instruction* whole =
      done.parent()->Add(*opcode, done.shape(), start->operands(), OpcodeName(*opcode));
  whole->set_called(start->called());
  if (!wraps) whole->mutable_attrs() = start->attrs();
  return whole;
}

int64_t JoinAll(Module& module, bool joins(const Instruction& start)) {
  int64_t count = 0;
  std::unordered_set<const Instruction*> wrapped;  // looked up, never iterated
  for (Computation* computation : module.computations()) {
    for (Instruction* done : computation->PostOrder()) {
      Instruction* whole = Join(*done, joins);
      if (whole == nullptr) continue;
      if (whole->opcode() == Opcode::kCall) wrapped.insert(whole);
      done->ReplaceAllUsesWith(whole);
      ++count;
    }
    if (count > 0) computation->RemoveDead();
  }
  if (wrapped.empty()) return count;
  module.InlineCalls([&](const Instruction& call) { return wrapped.contains(&call); });
  ForwardAllTuples(module);
  return count;
}

}  // namespace

int64_t JoinAsync(Module& module) { return JoinAll(module, IsAny); }

int64_t JoinAsyncCompute(Module& module) { return JoinAll(module, RunsOnTensorCore); }

}  // namespace tpusim::hlo
