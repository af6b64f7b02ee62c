// Elementwise operations, and calls of scalar computations made of them.
//
// How many operations of the VALUs and of the transcendental unit one register takes is what the
// TPU compiler schedules for the operation by itself: counted in the bundles that libtpu 0.0.42
// writes (--xla_jf_dump_llo_text) for f32 and s32 arrays, on v5e and on v6e
// (validation/kernels/schedules.json). Before v6e what the transcendental unit gives is refined on
// the VALUs (compiler.transcendentals_refined): a quotient takes 14 operations there and 2 from v6e
// on. Sine and cosine reduce their argument in integers, exactly, however large it is, which is
// most of what they do. Integers are divided bit by bit, but for constant divisors.
//
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <string>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/vector_cost.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

VectorWork Valu(double valu, double eup = 0) {
  VectorWork work;
  work.valu = valu;
  work.eup = eup;
  return work;
}

// Operations per register of a function, with a transcendental unit whose results are refined, and
// with one whose results are exact.
struct Function {
  Opcode opcode;
  double valu, eup;
  double exact_valu, exact_eup;
};
constexpr Function kFunctions[] = {
    {Opcode::kExponential, 2, 1, 2, 1},
    {Opcode::kTanh, 1, 1, 1, 1},
    {Opcode::kLog, 2, 1, 2, 1},
    {Opcode::kLogistic, 16, 2, 4, 2},
    {Opcode::kExponentialMinusOne, 9, 1, 8, 2},
    {Opcode::kLogPlusOne, 9, 1, 9, 1},
    {Opcode::kSqrt, 12, 1, 7, 1},
    {Opcode::kRsqrt, 9, 1, 1, 1},
    {Opcode::kCbrt, 17, 2, 10, 2},
    {Opcode::kDivide, 14, 1, 2, 1},
    {Opcode::kRemainder, 23, 1, 12, 1},
    {Opcode::kPower, 84, 1, 41, 2},
    {Opcode::kAtan2, 56, 1, 43, 1},
    {Opcode::kErf, 38, 1, 1, 1},
    {Opcode::kSinh, 35, 4, 23, 5},
    {Opcode::kCosh, 7, 2, 7, 2},
    {Opcode::kSine, 148, 0, 96, 2},
    {Opcode::kCosine, 147, 0, 95, 2},
    {Opcode::kTan, 169, 1, 105, 3},
    {Opcode::kAcos, 71, 2, 54, 2},
    {Opcode::kAcosh, 42, 4, 32, 4},
    {Opcode::kAsin, 73, 2, 55, 2},
    {Opcode::kAsinh, 53, 4, 36, 4},
    {Opcode::kAtanh, 23, 2, 23, 2},
};

// Of 32-bit elements.
std::optional<VectorWork> WordCost(Opcode op, bool exact) {
  using enum Opcode;
  const auto is = [op](std::initializer_list<Opcode> any) {
    return std::ranges::find(any, op) != any.end();
  };
  if (is({kAbs,
          kAdd,
          kSubtract,
          kMultiply,
          kMaximum,
          kMinimum,
          kNegate,
          kAnd,
          kOr,
          kXor,
          kNot,
          kShiftLeft,
          kShiftRightArithmetic,
          kShiftRightLogical,
          kCompare,
          kSelect,
          kConvert,
          kBitcastConvert,
          kIsFinite,
          kComplex,
          kReal,
          kImag,
          kCopy,
          kPopcnt,
          kCountLeadingZeros,
          kClamp,
          kFloor,
          kCeil})) {
    return Valu(1);
  }
  if (op == kMulhi) return Valu(6);
  if (op == kSign) return Valu(7);
  if (op == kRoundNearestAfz) return Valu(exact ? 1 : 6);
  if (op == kRoundNearestEven) return Valu(8);
  if (op == kReducePrecision) return Valu(14);
  if (op == kStochasticConvert) return Valu(4);
  const auto* function = std::ranges::find(kFunctions, op, &Function::opcode);
  if (function == std::end(kFunctions)) return std::nullopt;
  return exact ? Valu(function->exact_valu, function->exact_eup)
               : Valu(function->valu, function->eup);
}

bool IsConstant(const Instruction& i) {
  const bool spread = i.opcode() == Opcode::kBroadcast || i.opcode() == Opcode::kBitcast;
  return i.opcode() == Opcode::kConstant || (spread && IsConstant(*i.operand(0)));
}

// Whether another instruction of the same kernel has its sine.
bool IsBesideSine(const Instruction& cosine) {
  const Instruction& angle = *cosine.operand(0);
  return cosine.parent() != cosine.parent()->parent()->entry() &&
         std::ranges::any_of(angle.users(), [&](const Instruction* user) {
           return user->opcode() == Opcode::kSine && user->parent() == cosine.parent();
         });
}

// Narrow floats are computed on as words: what widens them is their unpacking, and where a kernel
// ends their packing, which the kernel counts (RepackWork, UnpackWork).
bool IsRepacked(const Instruction& convert) {
  const PrimitiveType from = convert.operand(0)->shape().element_type;
  const PrimitiveType to = convert.shape().element_type;
  const auto narrow = [](PrimitiveType type) {
    return type == PrimitiveType::kBf16 || type == PrimitiveType::kF16;
  };
  if (narrow(from)) return to == PrimitiveType::kF32;
  if (!narrow(to) || from != PrimitiveType::kF32) return false;
  return &convert == convert.parent()->root() ||
         std::ranges::all_of(convert.users(), [](const Instruction* user) {
           return user->opcode() == Opcode::kTuple || user->opcode() == Opcode::kBitcast;
         });
}

// Real operations per component of a complex operation: a product is four
// multiplications and two additions for two components, a quotient two products
// and a reciprocal; functions are two real ones and a product.
double ComplexFactor(Opcode op) {
  using enum Opcode;
  if (op == kMultiply || op == kDivide) return 3;
  constexpr Opcode kPerComponent[] = {kAdd,  kSubtract, kNegate,  kComplex, kReal,
                                      kImag, kSelect,   kCompare, kConvert, kCopy};
  return std::ranges::find(kPerComponent, op) != std::end(kPerComponent) ? 1 : 4;
}

// The TPU compiler widens operations on bf16 to f32 where the units have no bf16, and writes down
// that it did; what they give is rounded to bf16 again.
bool IsWidened(const Instruction& i) {
  return i.attrs().backend_config().find("\"original_type\":\"BF16\"") != std::string::npos;
}

// The type that is computed on.
PrimitiveType ComputedType(const Instruction& i) {
  const bool from_operand = i.opcode() == Opcode::kCompare || i.opcode() == Opcode::kConvert;
  return from_operand && !i.operands().empty() ? i.operand(0)->shape().element_type
                                               : i.shape().element_type;
}

}  // namespace

std::optional<VectorWork> LeastElementwiseCost(const Instruction& i, const target::Target& target) {
  if (i.opcode() == Opcode::kCosine) return Valu(target.policy().cosine_beside_sine_operations);
  const bool floating = i.opcode() == Opcode::kConvert && hlo::IsFloating(i.shape().element_type) &&
                        hlo::IsFloating(i.operand(0)->shape().element_type);
  return floating ? VectorWork{} : ElementwiseCost(i, target);
}

std::optional<VectorWork> ElementwiseCost(const Instruction& i, const target::Target& target) {
  const configs::Policy& policy = target.policy();
  const PrimitiveType type = ComputedType(i);
  const bool integer = hlo::IsIntegral(i.shape().element_type);
  if (i.opcode() == Opcode::kConvert && IsRepacked(i)) return VectorWork{};
  if (i.opcode() == Opcode::kCosine && IsBesideSine(i)) {
    return Valu(policy.cosine_beside_sine_operations);
  }
  const bool divides = i.opcode() == Opcode::kDivide || i.opcode() == Opcode::kRemainder;
  // What is rounded to 16 bits needs no better quotient than the unit's.
  const bool quotient = i.opcode() == Opcode::kDivide || i.opcode() == Opcode::kLogistic;
  const bool coarse = quotient && (hlo::BitWidth(type) < 32 || IsWidened(i));
  const bool exact = !policy.transcendentals_refined || (coarse && !integer);
  std::optional<VectorWork> cost = WordCost(i.opcode(), exact);
  if (integer && divides) {
    cost = Valu(IsConstant(*i.operand(1)) ? policy.constant_division_operations
                                          : policy.integer_division_operations);
  }
  if (!cost) return cost;
  if (hlo::IsComplex(type)) return *cost * ComplexFactor(i.opcode());
  if (hlo::BitWidth(type) == 64) {
    // Two words with a carry between them; doubles are pairs of floats, with the
    // error of every operation computed beside it.
    return *cost * (type == PrimitiveType::kF64 ? 10 : 3);
  }
  return cost;
}

// Nothing runs beside a chain of scalars: each of the operations that the same takes of
// a register waits for the one before.
isa::Block ScalarBlock(const Instruction& i, const target::Target& target) {
  const VectorWork work = ElementwiseCost(i, target).value_or(VectorWork{});
  // A division of indices is taken to be a reciprocal and its correction: what the compiler does
  // with a register bit by bit is not known of the scalar core.
  const bool divides = i.opcode() == Opcode::kDivide || i.opcode() == Opcode::kRemainder;
  const double operations = divides && hlo::IsIntegral(i.shape().element_type)
                                ? target.policy().scalar_division_operations
                                : std::max(1.0, work.valu + work.eup);
  isa::Block block;
  block.scalar =
      Cycles(std::llround(operations) * static_cast<int64_t>(target.chip().vpu.latency_cycles));
  return block;
}

absl::StatusOr<VectorWork> CallCost(const hlo::Computation& computation,
                                    const target::Target& target) {
  using enum Opcode;
  constexpr Opcode kNothing[] = {kParameter, kConstant, kTuple,  kGetTupleElement,
                                 kBroadcast, kReshape,  kBitcast};
  VectorWork sum;
  for (const Instruction* i : computation.PostOrder()) {
    if (std::ranges::find(kNothing, i->opcode()) != std::end(kNothing)) continue;
    if (i->opcode() == kCall || i->opcode() == kFusion) {
      ASSIGN_OR_RETURN(const VectorWork inner, CallCost(*i->called()[0], target));
      sum += inner;
      continue;
    }
    const auto cost = ElementwiseCost(*i, target);
    if (!cost) {
      return NoRule(fmt::format("no kernel for {}: op '{}' has no rule inside a reducer",
                                i->Describe(), hlo::OpcodeName(i->opcode())));
    }
    sum += *cost;
  }
  return sum;
}

}  // namespace tpusim::kernels
