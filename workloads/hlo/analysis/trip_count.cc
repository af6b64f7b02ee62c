// How often a while loop runs, where its own text says so.
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "workloads/hlo/analysis/limits.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/cost.h"

namespace tpusim::hlo {
namespace {

// {"known_trip_count":{"n":"8"}} as JSON (64-bit integers are strings there), or
// WhileLoopBackendConfig.
std::optional<int64_t> KnownTripCount(const Instruction& loop) {
  const std::string& config = loop.attrs().backend_config();
  if (config.empty()) return std::nullopt;
  const auto json = nlohmann::json::parse(config, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) {
    const auto known = json.find("known_trip_count");
    if (known == json.end() || !known->is_object()) return std::nullopt;
    const auto n = known->find("n");
    if (n == known->end()) return std::nullopt;
    if (n->is_number_integer()) return n->get<int64_t>();
    if (!n->is_string()) return std::nullopt;
    const std::string& text = n->get_ref<const std::string&>();
    if (text.empty() || text.size() > 18 ||
        text.find_first_not_of("0123456789") != std::string::npos) {
      return std::nullopt;
    }
    return std::stoll(text);
  }
  pb::WhileLoopBackendConfig proto;
  if (proto.ParseFromString(config) && proto.has_known_trip_count() &&
      proto.GetReflection()->GetUnknownFields(proto).empty()) {
    return proto.known_trip_count().n();
  }
  return std::nullopt;
}

const Instruction* SkipCopies(const Instruction* i) {
  while (i->opcode() == Opcode::kCopy || i->opcode() == Opcode::kBitcast ||
         i->opcode() == Opcode::kReshape) {
    i = i->operand(0);
  }
  return i;
}

// The index if `i` is an element of the tuple that its computation is given.
std::optional<int64_t> CarryIndex(const Instruction* i) {
  i = SkipCopies(i);
  if (i->opcode() != Opcode::kGetTupleElement) return std::nullopt;
  if (SkipCopies(i->operand(0))->opcode() != Opcode::kParameter) return std::nullopt;
  return i->attrs().tuple_index();
}

const Instruction* TupleOperand(const Instruction* tuple, int64_t index) {
  tuple = SkipCopies(tuple);
  while (tuple->opcode() == Opcode::kOptBarrier) tuple = SkipCopies(tuple->operand(0));
  if (tuple->opcode() != Opcode::kTuple || index < 0 ||
      index >= static_cast<int64_t>(tuple->operands().size())) {
    return nullptr;
  }
  return tuple->operand(index);
}

// The loop's body gives element `index` on as it was.
bool IsInvariant(const Instruction& loop, int64_t index) {
  const Instruction* next = TupleOperand(loop.called()[0]->root(), index);
  return next != nullptr && CarryIndex(next) == index;
}

// The only instruction that calls `computation`, if there is one.
const Instruction* OnlyCaller(const Computation& computation) {
  const Instruction* caller = nullptr;
  for (const Computation* other : computation.parent()->computations()) {
    for (const Instruction* i : other->instructions()) {
      for (const Computation* called : i->called()) {
        if (called != &computation) continue;
        if (caller != nullptr && caller != i) return nullptr;
        caller = i;
      }
    }
  }
  return caller;
}

// The value of an integer scalar that does not depend on data.
std::optional<int64_t> ConstantValue(const Instruction* i) {
  for (int64_t depth = 0; depth < limits::kConstantCarries.most(); ++depth) {
    i = SkipCopies(i);
    if (const auto value = ScalarIntConstant(*i)) return value;
    if (i->opcode() == Opcode::kParameter) {
      const Instruction* caller = OnlyCaller(*i->parent());
      const int64_t number = i->attrs().parameter_number();
      if (caller == nullptr || number >= static_cast<int64_t>(caller->operands().size()) ||
          (caller->opcode() != Opcode::kCall && caller->opcode() != Opcode::kFusion)) {
        return std::nullopt;
      }
      i = caller->operand(number);
      continue;
    }
    if (i->opcode() != Opcode::kGetTupleElement) return std::nullopt;
    const int64_t index = i->attrs().tuple_index();
    if (const Instruction* element = TupleOperand(i->operand(0), index)) {
      i = element;
      continue;
    }
    if (!CarryIndex(i).has_value()) return std::nullopt;
    const Instruction* caller = OnlyCaller(*i->parent());
    if (caller == nullptr || caller->opcode() != Opcode::kWhile || !IsInvariant(*caller, index)) {
      return std::nullopt;
    }
    i = TupleOperand(caller->operand(0), index);
    if (i == nullptr) return std::nullopt;
  }
  limits::kConstantCarries.Reached();
  return std::nullopt;
}

// A binary operation, also if it is the root of a fusion of scalars: its operands
// outside of the fusion.
struct Binary {
  const Instruction* op = nullptr;
  const Instruction *a = nullptr, *b = nullptr;
};
std::optional<Binary> BinaryOf(const Instruction* i) {
  i = SkipCopies(i);
  if (i->opcode() != Opcode::kFusion) {
    if (i->operands().size() != 2) return std::nullopt;
    return Binary{i, i->operand(0), i->operand(1)};
  }
  const Instruction* root = SkipCopies(i->called()[0]->root());
  if (root->operands().size() != 2) return std::nullopt;
  const auto outside = [&](const Instruction* inner) {
    inner = SkipCopies(inner);
    return inner->opcode() == Opcode::kParameter ? i->operand(inner->attrs().parameter_number())
                                                 : inner;
  };
  return Binary{root, outside(root->operand(0)), outside(root->operand(1))};
}

std::string Mirrored(const std::string& direction) {
  if (direction == "LT") return "GT";
  if (direction == "GT") return "LT";
  if (direction == "LE") return "GE";
  if (direction == "GE") return "LE";
  return direction;
}

// Iterations of `for (v = start; v <direction> limit; v += step)`.
std::optional<int64_t> Count(int64_t start, int64_t limit, int64_t step,
                             const std::string& direction) {
  __extension__ typedef __int128 Wide;  // differences of any two values fit
  if (step == 0) return std::nullopt;
  const bool up = direction == "LT" || direction == "LE";
  const bool down = direction == "GT" || direction == "GE";
  const Wide size = step > 0 ? Wide{step} : -Wide{step};
  Wide count = 0;
  if (up || down) {
    const Wide distance = up ? Wide{limit} - start : Wide{start} - limit;
    const bool inclusive = direction == "LE" || direction == "GE";
    if (distance < 0 || (distance == 0 && !inclusive)) return 0;
    if (up != (step > 0)) return std::nullopt;  // runs away from its limit
    count = inclusive ? distance / size + 1 : (distance + size - 1) / size;
  } else if (direction == "NE") {
    const Wide distance = step > 0 ? Wide{limit} - start : Wide{start} - limit;
    if (distance < 0 || distance % size != 0) return std::nullopt;
    count = distance / size;
  } else if (direction == "EQ") {
    count = start == limit ? 1 : 0;
  } else {
    return std::nullopt;
  }
  if (count > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return static_cast<int64_t>(count);
}

// What one iteration adds to element `index`.
std::optional<int64_t> StepOf(const Computation& body, int64_t index) {
  const Instruction* next = TupleOperand(body.root(), index);
  if (next == nullptr) return std::nullopt;
  const auto binary = BinaryOf(next);
  if (!binary.has_value()) return std::nullopt;
  const bool a_is_variable = CarryIndex(binary->a) == index;
  const bool b_is_variable = CarryIndex(binary->b) == index;
  if (binary->op->opcode() == Opcode::kAdd && a_is_variable != b_is_variable) {
    return ConstantValue(a_is_variable ? binary->b : binary->a);
  }
  if (binary->op->opcode() == Opcode::kSubtract && a_is_variable && !b_is_variable) {
    const auto step = ConstantValue(binary->b);
    if (step.has_value() && *step != std::numeric_limits<int64_t>::min()) return -*step;
  }
  return std::nullopt;
}

// The carried scalar that a loop counts by, and against what.
struct Counter {
  int64_t index = 0;
  int64_t step = 0;
  const Instruction* limit = nullptr;
  std::string direction;  // of `variable <direction> limit`
};

std::optional<Counter> CounterOf(const Instruction& loop) {
  if (loop.opcode() != Opcode::kWhile || loop.called().size() != 2) return std::nullopt;
  const auto compare = BinaryOf(loop.called()[1]->root());
  if (!compare.has_value() || compare->op->opcode() != Opcode::kCompare) return std::nullopt;
  const std::string& direction = compare->op->attrs().comparison_direction();
  // The side that the body steps is the variable, the other one the limit.
  for (const bool variable_is_a : {true, false}) {
    const auto index = CarryIndex(variable_is_a ? compare->a : compare->b);
    if (!index.has_value()) continue;
    const auto step = StepOf(*loop.called()[0], *index);
    if (!step.has_value()) continue;
    return Counter{*index, *step, variable_is_a ? compare->b : compare->a,
                   variable_is_a ? direction : Mirrored(direction)};
  }
  return std::nullopt;
}

std::optional<int64_t> StartOf(const Instruction& loop, int64_t index) {
  const Instruction* initial = TupleOperand(loop.operand(0), index);
  return initial == nullptr ? std::nullopt : ConstantValue(initial);
}

}  // namespace

std::optional<int64_t> TripCount(const Instruction& loop) {
  if (loop.opcode() != Opcode::kWhile || loop.called().size() != 2) return std::nullopt;
  if (const auto known = KnownTripCount(loop); known.has_value() && *known >= 0) return known;
  const auto counter = CounterOf(loop);
  if (!counter.has_value()) return std::nullopt;
  // A limit that is carried through the loop must not change on the way.
  std::optional<int64_t> limit;
  if (const auto carried = CarryIndex(counter->limit)) {
    if (IsInvariant(loop, *carried)) limit = StartOf(loop, *carried);
  } else {
    limit = ConstantValue(counter->limit);
  }
  const auto start = StartOf(loop, counter->index);
  if (!limit.has_value() || !start.has_value()) return std::nullopt;
  return Count(*start, *limit, counter->step, counter->direction);
}

std::optional<LoopCounter> CounterWithStart(const Instruction& loop) {
  const auto counter = CounterOf(loop);
  if (!counter.has_value() || counter->step == 0) return std::nullopt;
  const auto start = StartOf(loop, counter->index);
  if (!start.has_value()) return std::nullopt;
  return LoopCounter{counter->index, *start, counter->step};
}

}  // namespace tpusim::hlo
