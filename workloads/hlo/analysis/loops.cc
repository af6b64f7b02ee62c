#include "workloads/hlo/analysis/loops.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workloads/hlo/analysis/limits.h"
#include "workloads/hlo/analysis/underlying.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/integer_arithmetic.h"

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

// Counts the iterations k = 0, 1, ... before the first for which `value`(k) <direction> 0 is false.
// nullopt: it is always true.
std::optional<int64_t> CountWhile(const Affine& value, const std::string& direction) {
  __extension__ typedef __int128 Wide;  // differences of any two values fit
  const Wide step = value.scale, start = value.offset;
  const bool up = direction == "LT" || direction == "LE";
  const bool down = direction == "GT" || direction == "GE";
  const Wide size = step > 0 ? step : -step;
  Wide count = 0;
  if (up || down) {
    const Wide distance = up ? -start : start;
    const bool inclusive = direction == "LE" || direction == "GE";
    if (distance < 0 || (distance == 0 && !inclusive)) return 0;
    if (step == 0 || up != (step > 0)) return std::nullopt;  // runs away from its limit
    count = inclusive ? distance / size + 1 : (distance + size - 1) / size;
  } else if (direction == "NE") {
    const Wide distance = step > 0 ? -start : start;
    if (start == 0) return 0;
    if (step == 0 || distance < 0 || distance % size != 0) return std::nullopt;
    count = distance / size;
  } else if (direction == "EQ") {
    if (step == 0 && start == 0) return std::nullopt;
    count = start == 0 ? 1 : 0;
  } else {
    return std::nullopt;
  }
  if (count > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return static_cast<int64_t>(count);
}

// Each returns nullopt where a number does not fit.
std::optional<Affine> Sum(const Affine& a, const Affine& b, int64_t sign) {
  Affine sum;
  if (__builtin_mul_overflow(b.scale, sign, &sum.scale) ||
      __builtin_mul_overflow(b.offset, sign, &sum.offset) ||
      __builtin_add_overflow(a.scale, sum.scale, &sum.scale) ||
      __builtin_add_overflow(a.offset, sum.offset, &sum.offset)) {
    return std::nullopt;
  }
  return sum;
}

std::optional<Affine> Scaled(const Affine& a, int64_t by) {
  Affine scaled;
  if (__builtin_mul_overflow(a.scale, by, &scaled.scale) ||
      __builtin_mul_overflow(a.offset, by, &scaled.offset)) {
    return std::nullopt;
  }
  return scaled;
}

// Whether all values are numbers of the type, so that none wraps around.
bool StaysWithin(PrimitiveType type, const Affine& a, int64_t trips) {
  int64_t last = 0;
  if (__builtin_mul_overflow(a.scale, trips - 1, &last) ||
      __builtin_add_overflow(last, a.offset, &last)) {
    return false;
  }
  const auto fits = [type](int64_t v) {
    return v >= 0 || IsSignedIntegral(type) ? WrapInteger(type, static_cast<uint64_t>(v)) == v
                                            : false;
  };
  return fits(a.offset) && fits(last);
}

}  // namespace

// Follows an integer of the body or the condition to what iterations carry.
class IndexFollower {
 public:
  // The value of a carried element; nullopt: it is unknown.
  using Carried = std::function<std::optional<Affine>(int64_t element)>;

  IndexFollower(const LoopFacts& loop, Carried carried, bool in_range)
      : loop_(loop), carried_(std::move(carried)), in_range_(in_range && loop.trips_) {}

  std::optional<Affine> Of(const Instruction* value) {
    if (++steps_ > limits::kIndexOperations.most()) {
      limits::kIndexOperations.Reached();
      return std::nullopt;
    }
    const std::optional<Affine> affine = Compute(value);
    if (!affine || !in_range_) return affine;
    return StaysWithin(value->shape().element_type, *affine, *loop_.trips_) ? affine : std::nullopt;
  }

  // Counts how often a condition is true before it is false. nullopt: it does not compare such
  // integers. Reads both sides in any case.
  std::optional<int64_t> CountOf(const Instruction* condition) {
    condition = Underlying(condition);
    if (condition->opcode() == Opcode::kFusion) {
      return InFusion(&IndexFollower::CountOf, *condition);
    }
    if (condition->opcode() != Opcode::kCompare) return std::nullopt;
    const auto a = Of(condition->operand(0)), b = Of(condition->operand(1));
    const auto difference = a && b ? Sum(*a, *b, -1) : std::nullopt;
    if (!difference) return std::nullopt;
    return CountWhile(*difference, condition->attrs().comparison_direction());
  }

 private:
  template <typename Result>
  Result InFusion(Result (IndexFollower::*follow)(const Instruction*), const Instruction& fusion) {
    fusions_.push_back(&fusion);
    const Result result = (this->*follow)(fusion.called()[0]->root());
    fusions_.pop_back();
    return result;
  }

  std::optional<Affine> Compute(const Instruction* value) {
    value = Underlying(value);
    const Shape& shape = value->shape();
    if (!shape.IsArray() || shape.ElementCount() != 1 || !IsWholeNumber(shape.element_type)) {
      return std::nullopt;
    }
    const auto element = [&] {
      for (const Computation* called : loop_.loop_.called()) {
        if (const int64_t n = CarriedElement(*value, *called); n >= 0) return n;
      }
      return int64_t{-1};
    };
    if (const int64_t n = element(); n >= 0) return carried_(n);
    switch (value->opcode()) {
      case Opcode::kFusion:
        return InFusion(&IndexFollower::Of, *value);
      case Opcode::kParameter:
        return OfParameter(*value);
      case Opcode::kConvert:  // to fewer bits it may wrap around
        if (!in_range_ && BitWidth(shape.element_type) <
                              BitWidth(value->operand(0)->shape().element_type)) {
          return std::nullopt;
        }
        return Of(value->operand(0));
      case Opcode::kReshape:
      case Opcode::kBitcast:
        return Of(value->operand(0));
      case Opcode::kAdd:
      case Opcode::kSubtract: {
        const auto a = Of(value->operand(0)), b = Of(value->operand(1));
        const int64_t sign = value->opcode() == Opcode::kAdd ? 1 : -1;
        return a && b ? Sum(*a, *b, sign) : std::nullopt;
      }
      case Opcode::kMultiply: {
        const auto a = Of(value->operand(0)), b = Of(value->operand(1));
        if (!a || !b || (a->scale != 0 && b->scale != 0)) return std::nullopt;
        return a->scale != 0 ? Scaled(*a, b->offset) : Scaled(*b, a->offset);
      }
      case Opcode::kSelect:
        if (const auto affine = OfSelect(*value)) return affine;
        return OfConstant(*value);
      default:
        return OfConstant(*value);
    }
  }

  std::optional<Affine> OfConstant(const Instruction& value) {
    const auto known =
        fusions_.empty() ? loop_.values_.ScalarOf(value) : ScalarIntConstant(value);
    return known ? std::optional(Affine{0, *known}) : std::nullopt;
  }

  std::optional<Affine> OfParameter(const Instruction& parameter) {
    if (fusions_.empty() || parameter.parent() != fusions_.back()->called()[0]) return std::nullopt;
    const Instruction* fusion = fusions_.back();
    fusions_.pop_back();  // its operands are outside
    const auto number = static_cast<size_t>(parameter.attrs().parameter_number());
    const auto affine = Of(fusion->operand(number));
    fusions_.push_back(fusion);
    return affine;
  }

  // JAX counts from the end with select(i < 0, i + n, i).
  std::optional<Affine> OfSelect(const Instruction& select) {
    const Instruction* predicate = Underlying(select.operand(0));
    if (!loop_.trips_ || predicate->opcode() != Opcode::kCompare ||
        predicate->attrs().comparison_direction() != "LT") {
      return std::nullopt;
    }
    const auto a = Of(predicate->operand(0)), b = Of(predicate->operand(1));
    const auto difference = a && b ? Sum(*a, *b, -1) : std::nullopt;
    if (!difference) return std::nullopt;
    const auto [least, most] = difference->RangeOver(*loop_.trips_);
    if (least >= 0) return Of(select.operand(2));
    return most < 0 ? Of(select.operand(1)) : std::nullopt;
  }

  const LoopFacts& loop_;
  const Carried carried_;
  const bool in_range_;
  std::vector<const Instruction*> fusions_;  // being followed, the outermost first
  int64_t steps_ = 0;
};

namespace {

// The value of an element that all iterations keep, or that each adds the same to.
std::optional<Affine> InductionOf(const LoopFacts& loop, const KnownValues& values,
                                  int64_t element) {
  const Instruction* initial = TupleElement(loop.loop().operand(0), element);
  const auto constant = [&](int64_t n) -> std::optional<Affine> {
    const Instruction* before = TupleElement(loop.loop().operand(0), n);
    if (before == nullptr || !IsInvariant(loop.loop(), n)) return std::nullopt;
    const auto known = values.ScalarOf(*before);
    return known ? std::optional(Affine{0, *known}) : std::nullopt;
  };
  const Instruction* next = TupleElement(loop.body().root(), element);
  if (initial == nullptr || next == nullptr) return std::nullopt;
  const auto start = values.ScalarOf(*initial);
  if (!start) return std::nullopt;
  const auto as_element = [&](int64_t n) {
    return n == element ? std::optional(Affine{1, 0}) : constant(n);
  };
  const auto step = IndexFollower(loop, as_element, /*in_range=*/false).Of(next);
  if (!step || step->scale != 1) return std::nullopt;
  return Affine{step->offset, *start};
}

}  // namespace

std::pair<int64_t, int64_t> Affine::RangeOver(int64_t trips) const {
  __extension__ typedef __int128 Wide;
  const Wide last = Wide{scale} * (trips - 1) + offset;
  using Limits = std::numeric_limits<int64_t>;
  const auto within =
      static_cast<int64_t>(std::clamp<Wide>(last, Limits::min(), Limits::max()));
  return std::minmax({offset, within});
}

LoopFacts::LoopFacts(const Instruction& loop, const KnownValues& values,
                     std::optional<int64_t> trips)
    : loop_(loop), values_(values) {
  if (loop.opcode() != Opcode::kWhile || loop.called().size() != 2) return;
  const auto carried = [&](int64_t element) {
    const auto induction = InductionOf(*this, values, element);
    if (induction && induction->scale != 0 && !counter_) {
      counter_ = LoopCounter{element, induction->offset, induction->scale};
    }
    return induction;
  };
  IndexFollower follower(*this, carried, /*in_range=*/false);
  const auto counted = follower.CountOf(loop.called()[1]->root());
  const auto known = KnownTripCount(loop);
  trips_ = trips ? trips : known && *known >= 0 ? known : counted;
}

std::optional<Affine> LoopFacts::AffineOf(const Instruction& value) const {
  if (!trips_ || *trips_ < 1) return std::nullopt;
  const auto carried = [&](int64_t element) { return InductionOf(*this, values_, element); };
  return IndexFollower(*this, carried, /*in_range=*/true).Of(&value);
}

const LoopFacts& ModuleLoops::Of(const Instruction& loop) {
  std::unique_ptr<LoopFacts>& known = known_[&loop];
  if (known == nullptr) known = std::make_unique<LoopFacts>(loop, values_);
  return *known;
}

std::optional<int64_t> TripCount(const Instruction& loop) {
  return LoopFacts(loop, KnownValues(*loop.parent()->parent())).trips();
}

}  // namespace tpusim::hlo
