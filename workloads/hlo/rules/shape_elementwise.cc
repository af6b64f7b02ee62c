// Result shapes and operand types of elementwise operations.
#include "fmt/format.h"
#include "workloads/hlo/rules/integer_arithmetic.h"
#include "workloads/hlo/rules/shape_rules.h"

namespace tpusim::hlo::shape_rules {
namespace {

// Types that XLA defines an operation on. Powers, minima and the like take any.
enum class Takes { kAny, kReals, kIntegers, kBits };

Takes TakesOf(Opcode op) {
  switch (op) {
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
      return Takes::kBits;
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
    case Opcode::kPopcnt:
    case Opcode::kCountLeadingZeros:
    case Opcode::kMulhi:
      return Takes::kIntegers;
    case Opcode::kPower:
      return Takes::kAny;
    case Opcode::kCeil:
    case Opcode::kFloor:
    case Opcode::kIsFinite:
    case Opcode::kRoundNearestAfz:
    case Opcode::kRoundNearestEven:
    case Opcode::kReducePrecision:
      return Takes::kReals;
    default:
      return IsTranscendental(op) ? Takes::kReals : Takes::kAny;
  }
}

bool Accepts(Takes takes, PrimitiveType type) {
  switch (takes) {
    case Takes::kReals:
      return IsFloating(type) || IsComplex(type);
    case Takes::kIntegers:
      return IsIntegral(type);
    case Takes::kBits:
      return IsIntegral(type) || type == PrimitiveType::kPred;
    default:
      return true;
  }
}

// The floating type of which a complex number has two; the type itself otherwise.
PrimitiveType PartType(PrimitiveType type) {
  switch (type) {
    case PrimitiveType::kC64:
      return PrimitiveType::kF32;
    case PrimitiveType::kC128:
      return PrimitiveType::kF64;
    default:
      return type;
  }
}

}  // namespace

Result Elementwise(const Instruction& i) {
  const Opcode op = i.opcode();
  // The scalars of select and clamp may stand for whole arrays.
  const bool may_be_scalar = op == Opcode::kSelect || op == Opcode::kClamp;
  const Shape& main = may_be_scalar ? In(i, 1) : In(i, 0);
  for (size_t n = 0; n < i.operands().size(); ++n) {
    const bool scalar_ok = may_be_scalar && n != 1 && !(op == Opcode::kSelect && n == 2);
    TPUSIM_REQUIRE(In(i, n).dims == main.dims || (scalar_ok && In(i, n).IsScalar()),
                   "operand {} has shape {}, not {}", n, In(i, n).ToString(), main.ToString());
    const PrimitiveType type = In(i, n).element_type;
    const bool is_predicate = op == Opcode::kSelect && n == 0;
    TPUSIM_REQUIRE(!is_predicate || type == PrimitiveType::kPred, "predicate of type {}",
                   PrimitiveTypeName(type));
    const bool is_random = op == Opcode::kStochasticConvert && n == 1;
    TPUSIM_REQUIRE(!is_random || (IsIntegral(type) && !IsSignedIntegral(type) &&
                                  BitWidth(type) == BitWidth(main.element_type)),
                   "random bits of type {} for {}", PrimitiveTypeName(type), main.ToString());
    TPUSIM_REQUIRE(is_predicate || is_random || Compatible(type, main.element_type),
                   "operand {} has type {}, not {}", n, PrimitiveTypeName(type),
                   PrimitiveTypeName(main.element_type));
  }
  TPUSIM_REQUIRE(Accepts(TakesOf(op), main.element_type), "is not defined for {}",
                 PrimitiveTypeName(main.element_type));
  Shape result = MakeShape(main.element_type, main.dims);
  switch (op) {
    case Opcode::kCompare: {
      const std::string& direction = i.attrs().comparison_direction();
      TPUSIM_REQUIRE(Compare(direction, 0, 0).has_value(),
                     "direction '{}' is not EQ, NE, LT, LE, GT or GE", direction);
      result.element_type = PrimitiveType::kPred;
      return result;
    }
    case Opcode::kIsFinite:
      result.element_type = PrimitiveType::kPred;
      return result;
    case Opcode::kConvert:
    case Opcode::kStochasticConvert:
      result.element_type = OwnType(i);
      return result;
    case Opcode::kComplex:
      TPUSIM_REQUIRE(
          main.element_type == PrimitiveType::kF32 || main.element_type == PrimitiveType::kF64,
          "parts of type {}", PrimitiveTypeName(main.element_type));
      result.element_type =
          main.element_type == PrimitiveType::kF32 ? PrimitiveType::kC64 : PrimitiveType::kC128;
      return result;
    case Opcode::kReal:
    case Opcode::kImag:
    case Opcode::kAbs:
      result.element_type = PartType(main.element_type);
      break;
    default:
      break;
  }
  // Precisions may change on the way.
  if (Compatible(result.element_type, OwnType(i))) result.element_type = OwnType(i);
  return result;
}

}  // namespace tpusim::hlo::shape_rules
