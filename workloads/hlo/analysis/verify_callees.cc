#include "workloads/hlo/analysis/verify_callees.h"

#include <cstdint>
#include <optional>
#include <string>

#include "configs/status_macros.h"
#include "fmt/format.h"

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
    default:
      if (CombinesAcrossDevices(i.opcode())) return Callee{1, 2};
      return std::nullopt;
  }
}

absl::Status CheckCounts(const Instruction& i) {
  const auto rule = CalleeRule(i);
  if (!rule.has_value()) return absl::OkStatus();
  const int64_t count = static_cast<int64_t>(i.called().size());
  if (count != rule->computations || count == 0) {
    return UserError(fmt::format("{} called computations, not {}", count, rule->computations));
  }
  for (const Computation* called : i.called()) {
    const int64_t own = called->num_parameters();
    if (own != rule->parameters) {
      return UserError(
          fmt::format("{} has {} parameters, not {}", called->name(), own, rule->parameters));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPassed(const Instruction& parameter, const Shape& shape) {
  if (SameDims(parameter.shape(), shape)) return absl::OkStatus();
  return UserError(fmt::format("parameter {} of {} is {}, but gets {}",
                               parameter.attrs().parameter_number(), parameter.parent()->name(),
                               parameter.shape().ToString(), shape.ToString()));
}

absl::Status CheckResult(const Computation& called, const Shape& shape) {
  if (SameDims(called.root()->shape(), shape)) return absl::OkStatus();
  return UserError(fmt::format("{} returns {}, not {}", called.name(),
                               called.root()->shape().ToString(), shape.ToString()));
}

using Types = std::vector<PrimitiveType>;

// Equal, or both floating: XLA lets a reducer compute in another precision.
bool Compatible(PrimitiveType a, PrimitiveType b) {
  return a == b || (IsFloating(a) && IsFloating(b));
}

absl::Status CheckScalar(const Shape& shape, PrimitiveType type, const std::string& what) {
  if (shape.IsScalar() && Compatible(shape.element_type, type)) return absl::OkStatus();
  return UserError(
      fmt::format("{} is {}, not {}[]", what, shape.ToString(), PrimitiveTypeName(type)));
}

// A computation over scalars: its parameters, and its one result or the tuple of
// them.
absl::Status CheckScalarCallee(const Computation& called, const Types& wanted,
                               const Types& results) {
  for (size_t n = 0; n < wanted.size(); ++n) {
    RETURN_IF_ERROR(CheckScalar(called.parameter(static_cast<int64_t>(n))->shape(), wanted[n],
                                fmt::format("parameter {} of {}", n, called.name())));
  }
  const Shape& root = called.root()->shape();
  if (results.size() == 1) {
    return CheckScalar(root, results[0], "the result of " + called.name());
  }
  if (!root.IsTuple() || root.tuple.size() != results.size()) {
    return UserError(fmt::format("{} returns {}, not {} scalars", called.name(), root.ToString(),
                                 results.size()));
  }
  for (size_t n = 0; n < results.size(); ++n) {
    RETURN_IF_ERROR(
        CheckScalar(root.tuple[n], results[n], fmt::format("result {} of {}", n, called.name())));
  }
  return absl::OkStatus();
}

Types TypesOf(const Instruction& i, size_t first, size_t count) {
  Types types;
  for (size_t n = first; n < first + count; ++n) {
    types.push_back(i.operand(n)->shape().element_type);
  }
  return types;
}

Types Joined(Types a, const Types& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Computations that are applied to elements.
absl::Status CheckScalarCallees(const Instruction& i) {
  const size_t n = i.operands().size();
  const auto check = [&](size_t callee, const Types& wanted, const Types& results) {
    return CheckScalarCallee(*i.called()[callee], wanted, results);
  };
  switch (i.opcode()) {
    case Opcode::kReduce:
    case Opcode::kReduceWindow: {
      if (n % 2 != 0) return UserError(fmt::format("{} operands", n));
      const Types accumulators = TypesOf(i, n / 2, n / 2);
      return check(0, Joined(accumulators, TypesOf(i, 0, n / 2)), accumulators);
    }
    case Opcode::kScatter: {
      if (n % 2 == 0) return UserError(fmt::format("{} operands", n));
      const Types arrays = TypesOf(i, 0, n / 2);
      return check(0, Joined(arrays, TypesOf(i, n / 2 + 1, n / 2)), arrays);
    }
    case Opcode::kSort: {
      Types pairs;
      for (PrimitiveType type : TypesOf(i, 0, n)) pairs.insert(pairs.end(), 2, type);
      return check(0, pairs, {PrimitiveType::kPred});
    }
    case Opcode::kMap:
      return check(0, TypesOf(i, 0, n), {i.shape().element_type});
    case Opcode::kSelectAndScatter: {
      const PrimitiveType type = i.operand(0)->shape().element_type;
      RETURN_IF_ERROR(check(0, {type, type}, {PrimitiveType::kPred}));
      return check(1, {type, type}, {type});
    }
    default: {
      if (!CombinesAcrossDevices(i.opcode())) return absl::OkStatus();
      const PrimitiveType type = i.operand(0)->shape().element_type;
      return check(0, {type, type}, {type});
    }
  }
}

// Shapes that cross into and out of called computations.
absl::Status CheckControlFlow(const Instruction& i) {
  const auto parameter = [&](size_t callee, size_t number) -> const Instruction& {
    return *i.called()[callee]->parameter(static_cast<int64_t>(number));
  };
  switch (i.opcode()) {
    case Opcode::kWhile:
      RETURN_IF_ERROR(CheckPassed(parameter(0, 0), i.operand(0)->shape()));
      RETURN_IF_ERROR(CheckPassed(parameter(1, 0), i.operand(0)->shape()));
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
        RETURN_IF_ERROR(CheckPassed(parameter(b, 0), i.operand(b + 1)->shape()));
        RETURN_IF_ERROR(CheckResult(*i.called()[b], i.shape()));
      }
      return absl::OkStatus();
    }
    case Opcode::kCall:
    case Opcode::kFusion:
    case Opcode::kAsyncStart:
      for (size_t n = 0; n < i.operands().size(); ++n) {
        RETURN_IF_ERROR(CheckPassed(parameter(0, n), i.operand(n)->shape()));
      }
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

}  // namespace

absl::Status CheckCallees(const Instruction& i) {
  RETURN_IF_ERROR(CheckCounts(i));
  RETURN_IF_ERROR(CheckScalarCallees(i));
  return CheckControlFlow(i);
}

}  // namespace tpusim::hlo
