// Elementwise operations, and calls of scalar computations made of them.
//
// An operation costs what its row says (configs/instructions.h), for every register of results.
// Sine and cosine reduce their argument in integers, exactly, however large it is, which is most of
// what they do. Integers are divided bit by bit, but for constant divisors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <string>

#include "configs/instructions.h"
#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/vector_work/vector_cost.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

VectorWork WorkOf(const configs::InstructionCost& cost) {
  VectorWork work;
  work.valu = cost.valu;
  work.eup = cost.eup;
  work.xlu = cost.xlu;
  work.scalar = cost.scalar;
  return work;
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
  if (op == kMultiply || op == kDivide) return 3;  // number: products of reals, as above
  constexpr Opcode kPerComponent[] = {kAdd,  kSubtract, kNegate,  kComplex, kReal,
                                      kImag, kSelect,   kCompare, kConvert, kCopy};
  // number: products of reals, as above
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

// Returns the row of an operation; quotients that are rounded to 16 bits have one of their own.
const configs::InstructionRow* RowOf(const Instruction& i, PrimitiveType type,
                                     const configs::Instructions& instructions) {
  const bool divides = i.opcode() == Opcode::kDivide || i.opcode() == Opcode::kRemainder;
  if (divides && hlo::IsIntegral(i.shape().element_type) && IsConstant(*i.operand(1))) {
    return instructions.Find("divide-by-constant", "s32");
  }
  return instructions.Find(hlo::OpcodeName(i.opcode()),
                           IsWidened(i) ? "bf16" : hlo::PrimitiveTypeName(type));
}

}  // namespace

std::optional<VectorWork> LeastElementwiseCost(const Instruction& i, const target::Target& target) {
  if (i.opcode() == Opcode::kCosine) return WorkOf(target.instructions().At("cosine-beside-sine"));
  const bool floating = i.opcode() == Opcode::kConvert && hlo::IsFloating(i.shape().element_type) &&
                        hlo::IsFloating(i.operand(0)->shape().element_type);
  return floating ? VectorWork{} : ElementwiseCost(i, target);
}

std::optional<VectorWork> ElementwiseCost(const Instruction& i, const target::Target& target) {
  const configs::Instructions& instructions = target.instructions();
  const PrimitiveType type = ComputedType(i);
  if (i.opcode() == Opcode::kConvert && IsRepacked(i)) return VectorWork{};
  if (i.opcode() == Opcode::kCosine && IsBesideSine(i)) {
    return WorkOf(instructions.At("cosine-beside-sine"));
  }
  const configs::InstructionRow* row = RowOf(i, type, instructions);
  if (row == nullptr) return std::nullopt;
  const VectorWork work = WorkOf(row->cost);
  if (hlo::IsComplex(type)) return work * ComplexFactor(i.opcode());
  if (hlo::BitWidth(type) == 64) {  // number: bits of a type
    const bool floating = type == PrimitiveType::kF64;
    return work * instructions.At("pair-of-words", floating ? "f32" : "s32").valu;
  }
  return work;
}

// Nothing runs beside a chain of scalars: each of the operations that the same takes of
// a register waits for the one before.
isa::Block ScalarBlock(const Instruction& i, const target::Target& target) {
  const VectorWork work = ElementwiseCost(i, target).value_or(VectorWork{});
  // A division of indices is taken to be a reciprocal and its correction: what the compiler does
  // with a register bit by bit is not known of the scalar core.
  const bool divides = i.opcode() == Opcode::kDivide || i.opcode() == Opcode::kRemainder;
  const double operations = divides && hlo::IsIntegral(i.shape().element_type)
                                ? target.instructions().At("scalar-divide", "s32").scalar
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
