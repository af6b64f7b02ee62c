#include <unordered_set>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/import.h"
#include "workloads/hlo/shape_inference.h"

namespace tpusim::hlo {
namespace {

// Parameters that a called computation must have, given its caller's operands.
struct Callee {
  int64_t computations = 0;
  int64_t parameters = 0;  // of each
};

// nullopt: the opcode calls nothing, or nothing is known about what it calls.
std::optional<Callee> CalleeRule(const Instruction& i) {
  const int64_t n = static_cast<int64_t>(i.operands().size());
  switch (i.opcode()) {
    case Opcode::kWhile:
      return Callee{2, 1};
    case Opcode::kConditional:
      return Callee{n - 1, 1};
    case Opcode::kCall:
    case Opcode::kFusion:
    case Opcode::kAsyncStart:
    case Opcode::kMap:
      return Callee{1, n};
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
      return Callee{1, n};  // N inputs and N initial values: an accumulator and an element each
    case Opcode::kSort:
      return Callee{1, 2 * n};
    case Opcode::kScatter:
      return Callee{1, n - 1};
    case Opcode::kSelectAndScatter:
      return Callee{2, 2};
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
    case Opcode::kReduceScatter:
      return Callee{1, 2};
    default:
      return std::nullopt;
  }
}

absl::Status CheckCallees(const Instruction& i) {
  const auto rule = CalleeRule(i);
  if (!rule.has_value()) return absl::OkStatus();
  const int64_t count = static_cast<int64_t>(i.called().size());
  if (count != rule->computations || count == 0) {
    return UserError(fmt::format("{} called computations, not {}", count, rule->computations));
  }
  for (const Computation* called : i.called()) {
    if (called->num_parameters() != rule->parameters) {
      return UserError(fmt::format("{} has {} parameters, not {}", called->name(),
                                   called->num_parameters(), rule->parameters));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPassed(const Computation& called, int64_t number, const Shape& shape) {
  const Shape& parameter = called.parameters()[number]->shape();
  if (SameDims(parameter, shape)) return absl::OkStatus();
  return UserError(fmt::format("parameter {} of {} is {}, but gets {}", number, called.name(),
                               parameter.ToString(), shape.ToString()));
}

absl::Status CheckResult(const Computation& called, const Shape& shape) {
  if (SameDims(called.root()->shape(), shape)) return absl::OkStatus();
  return UserError(fmt::format("{} returns {}, not {}", called.name(),
                               called.root()->shape().ToString(), shape.ToString()));
}

// Shapes that cross into and out of called computations.
absl::Status CheckControlFlow(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kWhile:
      RETURN_IF_ERROR(CheckPassed(*i.called()[0], 0, i.operand(0)->shape()));
      RETURN_IF_ERROR(CheckPassed(*i.called()[1], 0, i.operand(0)->shape()));
      RETURN_IF_ERROR(CheckResult(*i.called()[0], i.operand(0)->shape()));
      return CheckResult(*i.called()[1], MakeScalarShape(PrimitiveType::kPred));
    case Opcode::kConditional: {
      const Shape& selector = i.operand(0)->shape();
      const bool is_pred = SameDims(selector, MakeScalarShape(PrimitiveType::kPred));
      if (!is_pred && !SameDims(selector, MakeScalarShape(PrimitiveType::kS32))) {
        return UserError(fmt::format("selector {} is no pred[] or s32[]", selector.ToString()));
      }
      if (is_pred && i.called().size() != 2) return UserError("a predicate selects two branches");
      for (size_t b = 0; b < i.called().size(); ++b) {
        RETURN_IF_ERROR(CheckPassed(*i.called()[b], 0, i.operand(b + 1)->shape()));
        RETURN_IF_ERROR(CheckResult(*i.called()[b], i.shape()));
      }
      return absl::OkStatus();
    }
    case Opcode::kCall:
    case Opcode::kFusion:
    case Opcode::kAsyncStart:
      for (size_t n = 0; n < i.operands().size(); ++n) {
        RETURN_IF_ERROR(
            CheckPassed(*i.called()[0], static_cast<int64_t>(n), i.operand(n)->shape()));
      }
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

// The fewest operands of a variadic opcode.
int64_t MinOperands(Opcode opcode) {
  switch (opcode) {
    case Opcode::kConditional:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
      return 2;
    case Opcode::kScatter:
      return 3;
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
    case Opcode::kAllGather:
    case Opcode::kAllGatherStart:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kReduceScatter:
    case Opcode::kConcatenate:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicReshape:
    case Opcode::kMap:
    case Opcode::kSort:
    case Opcode::kRng:
      return 1;
    default:
      return 0;
  }
}

absl::Status CheckInstruction(const Instruction& i) {
  const int arity = OpcodeArity(i.opcode());
  const int64_t count = static_cast<int64_t>(i.operands().size());
  if (arity >= 0 && count != arity) {
    return UserError(fmt::format("{} operands, not {}", count, arity));
  }
  if (count < MinOperands(i.opcode())) return UserError(fmt::format("only {} operands", count));
  RETURN_IF_ERROR(CheckCallees(i));
  RETURN_IF_ERROR(CheckControlFlow(i));
  ASSIGN_OR_RETURN(const Shape inferred, InferShape(i));
  if (!SameDims(inferred, i.shape())) {
    return UserError(fmt::format("its shape is {}, but its operands give {}", i.shape().ToString(),
                                 inferred.ToString()));
  }
  return absl::OkStatus();
}

absl::Status CheckParameters(const Computation& computation) {
  const std::vector<Instruction*> parameters = computation.parameters();
  for (size_t n = 0; n < parameters.size(); ++n) {
    if (parameters[n]->attrs().parameter_number() != static_cast<int64_t>(n)) {
      return UserError(fmt::format("computation {}: parameter {} has number {}", computation.name(),
                                   n, parameters[n]->attrs().parameter_number()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSchedule(const Computation& computation) {
  const auto& schedule = computation.schedule();
  if (schedule.empty()) return absl::OkStatus();
  std::unordered_set<const Instruction*> done;
  for (const Instruction* i : schedule) {
    const auto later = [&](const std::vector<Instruction*>& list) -> const Instruction* {
      for (const Instruction* before : list) {
        if (!done.contains(before)) return before;
      }
      return nullptr;
    };
    const Instruction* missing = later(i->operands());
    if (missing == nullptr) missing = later(i->control_predecessors());
    if (missing != nullptr) {
      return UserError(fmt::format("schedule of {}: {} comes before {}, which it needs",
                                   computation.name(), i->Describe(), missing->name()));
    }
    if (i->parent() != &computation || !done.insert(i).second) {
      return UserError(fmt::format("schedule of {}: {} is foreign or comes twice",
                                   computation.name(), i->Describe()));
    }
  }
  if (done.size() != computation.size()) {
    return UserError(fmt::format("schedule of {} has {} of {} instructions", computation.name(),
                                 done.size(), computation.size()));
  }
  return absl::OkStatus();
}

absl::Status CheckEdges(const Computation& computation,
                        const std::unordered_set<const Computation*>& known) {
  if (computation.root() == nullptr || computation.root()->parent() != &computation) {
    return UserError(fmt::format("computation {} has no root", computation.name()));
  }
  for (const Instruction* i : computation.instructions()) {
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
  std::vector<Instruction*> order;
  if (!computation.TopologicalOrder(&order)) {
    return UserError(fmt::format("instructions of {} form a cycle", computation.name()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Verify(const Module& module) {
  const std::vector<Computation*> all = module.computations();
  const std::unordered_set<const Computation*> known(all.begin(), all.end());
  if (module.entry() == nullptr || !known.contains(module.entry())) {
    return UserError(fmt::format("module {} has no entry computation", module.name()));
  }
  for (const Computation* computation : all) {
    RETURN_IF_ERROR(CheckEdges(*computation, known));
    RETURN_IF_ERROR(CheckParameters(*computation));
  }
  std::vector<Computation*> order;
  if (!module.TopologicalOrder(&order)) {
    return UserError(fmt::format("computations of module {} call each other", module.name()));
  }
  for (const Computation* computation : order) {
    for (const Instruction* i : computation->PostOrder()) {
      const absl::Status status = CheckInstruction(*i);
      if (!status.ok()) {
        return absl::Status(status.code(), fmt::format("{}, {}: {}", i->Describe(),
                                                       OpcodeName(i->opcode()), Message(status)));
      }
    }
    RETURN_IF_ERROR(CheckSchedule(*computation));
  }
  return absl::OkStatus();
}

}  // namespace tpusim::hlo
