#include "workloads/hlo/analysis/verify.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_set>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/analysis/compiled.h"
#include "workloads/hlo/analysis/verify_callees.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/rules/shape_inference.h"

namespace tpusim::hlo {
namespace {

// Custom calls that hand their one operand on: later stages take that for granted.
bool IsIdentityCall(const Instruction& i) {
  static constexpr std::string_view kTargets[] = {"annotate_device_placement", "MoveToHost",
                                                  "MoveToDevice", "LayoutConstraint",
                                                  "xla.sdy.PropagationBarrier"};
  return i.opcode() == Opcode::kCustomCall &&
         std::ranges::find(kTargets, i.attrs().custom_call_target()) != std::end(kTargets);
}

// The element of nested tuples at `index`; null if there is none.
template <typename Index>
const Shape* ElementAt(const Shape& shape, const Index& index) {
  const Shape* at = &shape;
  for (const int64_t n : index) {
    if (!at->IsTuple() || n < 0 || n >= static_cast<int64_t>(at->tuple.size())) return nullptr;
    at = &at->tuple[n];
  }
  return at;
}

// Results that are said to be operands are as large as these.
absl::Status CheckAliases(const Instruction& i) {
  for (const auto& alias : i.attrs().output_operand_aliasing()) {
    const int64_t n = alias.operand_index();
    if (n < 0 || n >= static_cast<int64_t>(i.operands().size())) {
      return UserError(fmt::format("output_to_operand_aliasing: there is no operand {}", n));
    }
    const Shape* result = ElementAt(i.shape(), alias.output_shape_index());
    const Shape* operand = ElementAt(i.operand(n)->shape(), alias.operand_shape_index());
    if (result == nullptr || operand == nullptr || !SameDims(*result, *operand)) {
      return UserError(fmt::format(
          "output_to_operand_aliasing: operand {} and what is to take its buffer differ", n));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCustomCall(const Instruction& i) {
  RETURN_IF_ERROR(CheckAliases(i));
  const std::string& target = i.attrs().custom_call_target();
  const bool identity = IsIdentityCall(i);
  if ((identity || target == "xla.sdy.ShardingGroup") && i.operands().size() != 1) {
    return UserError(
        fmt::format("{} operands for a call of '{}', not 1", i.operands().size(), target));
  }
  if (identity && !SameDims(i.operand(0)->shape(), i.shape())) {
    return UserError(fmt::format("a call of '{}' makes {} of {}", target, i.shape().ToString(),
                                 i.operand(0)->shape().ToString()));
  }
  return absl::OkStatus();
}

// Compares like SameDims, except for the width of floating-point numbers.
bool SameButForWidth(const Shape& a, const Shape& b) {
  if (a.IsTuple() || b.IsTuple()) {
    return a.IsTuple() && b.IsTuple() &&
           std::equal(a.tuple.begin(), a.tuple.end(), b.tuple.begin(), b.tuple.end(),
                      SameButForWidth);
  }
  if (!IsFloating(a.element_type) || !IsFloating(b.element_type)) return SameDims(a, b);
  return a.dims == b.dims;
}

// "copy" of copy-start and copy-done, "async" of async-start, -update and -done.
std::string_view KindOf(const Instruction& half) {
  const std::string_view name = OpcodeName(half.opcode());
  return name.substr(0, name.rfind('-'));
}

bool IsHalf(Opcode opcode) {
  return IsAsyncStart(opcode) || IsAsyncDone(opcode) || opcode == Opcode::kAsyncUpdate;
}

// A start is waited for once, by the done of its kind, and by way of updates at most: else it would
// be in flight for ever, or begin again in the next pass of its loop before it has ended.
absl::Status CheckHalves(const Instruction& i) {
  if (!IsHalf(i.opcode())) return absl::OkStatus();
  if (!IsAsyncStart(i.opcode())) {
    const Instruction& before = *i.operand(0);
    const bool begins = IsAsyncStart(before.opcode()) || before.opcode() == Opcode::kAsyncUpdate ||
                        before.opcode() == Opcode::kSend || before.opcode() == Opcode::kRecv;
    if (!begins || KindOf(before) != KindOf(i)) {
      return UserError(fmt::format("{} begins no {}", before.name(), KindOf(i)));
    }
  }
  if (IsAsyncDone(i.opcode())) return absl::OkStatus();
  if (i.users().size() != 1) {
    return UserError(fmt::format("{} instructions use it, not one {}-done", i.users().size(),
                                 KindOf(i)));
  }
  const Instruction& next = *i.users()[0];
  if (!IsHalf(next.opcode()) || IsAsyncStart(next.opcode())) {
    return UserError(
        fmt::format("{} uses it, but no {}-done waits for it", next.name(), KindOf(i)));
  }
  return absl::OkStatus();
}

absl::Status CheckOperandCount(const Instruction& i) {
  const int arity = OpcodeArity(i.opcode());
  const int64_t count = static_cast<int64_t>(i.operands().size());
  if (arity >= 0 && count != arity) {
    return UserError(fmt::format("{} operands, not {}", count, arity));
  }
  if (count < FewestOperands(i.opcode())) return UserError(fmt::format("only {} operands", count));
  return absl::OkStatus();
}

absl::Status CheckInstruction(const Instruction& i) {
  RETURN_IF_ERROR(CheckOperandCount(i));
  if (i.opcode() == Opcode::kCustomCall) RETURN_IF_ERROR(CheckCustomCall(i));
  RETURN_IF_ERROR(CheckAnnotations(i));
  RETURN_IF_ERROR(CheckCallees(i));
  RETURN_IF_ERROR(CheckHalves(i));
  ASSIGN_OR_RETURN(const Shape inferred, InferShape(i));
  if (SameDims(inferred, i.shape())) return absl::OkStatus();
  if (SameButForWidth(inferred, i.shape()) && IsCompiled(*i.parent()->parent())) {
    return absl::OkStatus();
  }
  return UserError(fmt::format("its shape is {}, but its operands give {}", i.shape().ToString(),
                               inferred.ToString()));
}

absl::Status CheckParameters(const Computation& computation) {
  for (int64_t n = 0; n < computation.num_parameters(); ++n) {
    const int64_t number = computation.parameter(n)->attrs().parameter_number();
    if (number != n) {
      return UserError(fmt::format("computation {}: parameter {} has number {}", computation.name(),
                                   n, number));
    }
  }
  return absl::OkStatus();
}

// `done`: the instructions of the module that came, by id.
absl::Status CheckSchedule(const Computation& computation, std::vector<bool>& done) {
  const auto& schedule = computation.schedule();
  if (schedule.empty()) return absl::OkStatus();
  for (const Instruction* i : schedule) {
    if (i->parent() != &computation || done[i->id()]) {
      return UserError(fmt::format("schedule of {}: {} is foreign or comes twice",
                                   computation.name(), i->Describe()));
    }
    const auto later = [&](const std::vector<Instruction*>& list) -> const Instruction* {
      for (const Instruction* before : list) {
        if (!done[before->id()]) return before;
      }
      return nullptr;
    };
    const Instruction* missing = later(i->operands());
    if (missing == nullptr) missing = later(i->control_predecessors());
    if (missing != nullptr) {
      return UserError(fmt::format("schedule of {}: {} comes before {}, which it needs",
                                   computation.name(), i->Describe(), missing->name()));
    }
    done[i->id()] = true;
  }
  if (schedule.size() != computation.size()) {
    return UserError(fmt::format("schedule of {} has {} of {} instructions", computation.name(),
                                 schedule.size(), computation.size()));
  }
  return absl::OkStatus();
}

// A module, or what has changed of it after a change.
class Verifier {
 public:
  Verifier(const Module& module, int64_t since)
      : module_(module), since_(since), all_(module.computations()) {}

  absl::Status Run() const {
    const std::unordered_set<const Computation*> known(all_.begin(), all_.end());
    if (module_.entry() == nullptr || !known.contains(module_.entry())) {
      return UserError(fmt::format("module {} has no entry computation", module_.name()));
    }
    for (const Computation* computation : all_) {
      RETURN_IF_ERROR(CheckEdges(*computation, known));
      if (computation->ChangedSince(since_)) RETURN_IF_ERROR(CheckParameters(*computation));
    }
    std::vector<Computation*> order;
    if (!module_.TopologicalOrder(&order)) {
      return UserError(fmt::format("computations of module {} call each other", module_.name()));
    }
    std::vector<bool> done(static_cast<size_t>(module_.next_id()));
    for (const Computation* computation : order) {
      RETURN_IF_ERROR(CheckInstructions(*computation));
      if (computation->ChangedSince(since_)) RETURN_IF_ERROR(CheckSchedule(*computation, done));
    }
    return absl::OkStatus();
  }

 private:
  // Computations may be gone that an instruction calls which is as it was.
  absl::Status CheckEdges(const Computation& computation,
                          const std::unordered_set<const Computation*>& known) const {
    const bool changed = computation.ChangedSince(since_);
    const Instruction* root = computation.root();
    if (changed && (root == nullptr || root->parent() != &computation)) {
      return UserError(fmt::format("computation {} has no root", computation.name()));
    }
    const bool calls_others =
        std::ranges::any_of(computation.callees(), [&](const Computation* called) {
          return !known.contains(called);
        });
    if (!changed && !calls_others) return absl::OkStatus();
    for (const Instruction* i : computation.instructions()) {
      if (!calls_others && !i->ChangedSince(since_)) continue;
      for (const Instruction* operand : i->operands()) {
        if (operand->parent() != &computation) {
          return UserError(
              fmt::format("{} uses {} of another computation", i->Describe(), operand->name()));
        }
      }
      for (const Computation* called : i->called()) {
        if (!known.contains(called)) {
          return UserError(i->Describe() + " calls a computation of another module");
        }
      }
    }
    if (std::vector<Instruction*> order; !computation.TopologicalOrder(&order)) {
      return UserError(fmt::format("instructions of {} form a cycle", computation.name()));
    }
    return absl::OkStatus();
  }

  absl::Status CheckInstructions(const Computation& computation) const {
    const auto changed = [&](const auto* of) { return of->ChangedSince(since_); };
    const bool calls_changed = std::ranges::any_of(computation.callees(), changed);
    if (!changed(&computation) && !calls_changed) return absl::OkStatus();
    for (const Instruction* i : computation.PostOrder()) {
      // What is asked of a start is asked of its users, which may be gone.
      if (!IsHalf(i->opcode()) && !changed(i) && std::ranges::none_of(i->operands(), changed) &&
          std::ranges::none_of(i->called(), changed)) {
        continue;
      }
      const absl::Status status = CheckInstruction(*i);
      if (!status.ok()) {
        return absl::Status(status.code(), fmt::format("{}, {}: {}", i->Describe(),
                                                       OpcodeName(i->opcode()), Message(status)));
      }
    }
    return absl::OkStatus();
  }

  const Module& module_;
  const int64_t since_;
  const std::vector<Computation*> all_;
};

}  // namespace

absl::StatusOr<Shape> ImpliedShape(const Instruction& instruction) {
  RETURN_IF_ERROR(CheckOperandCount(instruction));
  RETURN_IF_ERROR(CheckCallees(instruction));
  return InferShape(instruction);
}

absl::Status Verify(const Module& module) { return Verifier(module, 0).Run(); }

absl::Status VerifyChanges(Module& module) {
  RETURN_IF_ERROR(Verifier(module, module.right_until()).Run());
  module.FoundRight();
  return absl::OkStatus();
}

}  // namespace tpusim::hlo
