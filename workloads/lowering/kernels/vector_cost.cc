#include "workloads/lowering/kernels/vector_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "configs/status_macros.h"
#include "workloads/hlo/opcode.h"
#include "workloads/lowering/kernels/kernel_view.h"

namespace tpusim::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Operations per vector register of results. The classes are those of the
// Pallas TPU documentation: add, subtract, multiply, min/max, select, compare,
// shifts, bit operations and casts are one VALU operation; exp, tanh, log,
// reciprocal and roots go through the transcendental unit with a few VALU
// operations around it (range reduction, a Newton step, a blend); sine and
// cosine are polynomial sequences on the VALUs.
struct PerRegister {
  double valu = 0, eup = 0, xlu = 0;
};

std::optional<PerRegister> ElementwiseCost(const Instruction& i) {
  const bool integer = hlo::IsIntegral(i.shape().element_type);
  switch (i.opcode()) {
    case Opcode::kAbs:
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kNegate:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
    case Opcode::kCompare:
    case Opcode::kSelect:
    case Opcode::kConvert:
    case Opcode::kBitcastConvert:
    case Opcode::kIsFinite:
    case Opcode::kCopy:
      return PerRegister{1, 0, 0};
    case Opcode::kMultiply:
      // A 32-bit integer product is put together from 16-bit halves.
      return PerRegister{integer ? 4.0 : 1.0, 0, 0};
    case Opcode::kClamp:
    case Opcode::kSign:
    case Opcode::kFloor:
    case Opcode::kCeil:
    case Opcode::kRoundNearestAfz:
    case Opcode::kRoundNearestEven:
      return PerRegister{2, 0, 0};
    case Opcode::kExponential:
    case Opcode::kTanh:
    case Opcode::kLog:
    case Opcode::kLogistic:
      return PerRegister{2, 1, 0};
    case Opcode::kExponentialMinusOne:
    case Opcode::kLogPlusOne:
    case Opcode::kRsqrt:
    case Opcode::kSqrt:
    case Opcode::kCbrt:
      return PerRegister{4, 1, 0};
    case Opcode::kDivide:
    case Opcode::kRemainder:
      // Reciprocal, one Newton step, multiply; integers go through floats twice.
      return PerRegister{integer ? 12.0 : 4.0, integer ? 2.0 : 1.0, 0};
    case Opcode::kPower:
    case Opcode::kAtan2:
    case Opcode::kErf:
      return PerRegister{12, 2, 0};
    case Opcode::kSine:
    case Opcode::kCosine:
    case Opcode::kTan:
      return PerRegister{24, 0, 0};
    default:
      return std::nullopt;
  }
}

// Sum (or maximum ...) over some dimensions. Every register of input is added
// once. Where the lane dimension goes, each remaining register of partial
// results needs one pass through the cross-lane unit and `sublanes` pops that
// are added up; where the sublane dimension goes, three rotate-and-add steps.
VectorWork ReduceWork(const Instruction& reduce, const passes::Target& target) {
  VectorWork work;
  const hlo::Shape& input = reduce.operand(0)->shape();
  const double in = static_cast<double>(VectorRegisters(target, input));
  work.valu = in;
  bool lanes = false, sublanes = false;
  int64_t kept_rows = 1;
  for (int64_t d = 0; d < input.rank(); ++d) {
    const auto& dims = reduce.attrs().dimensions();
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (reduced && d == input.rank() - 1) lanes = true;
    if (reduced && d == input.rank() - 2) sublanes = true;
    if (!reduced && d != input.rank() - 1) kept_rows *= input.dims[d];
  }
  const double pops = static_cast<double>(target.chip().vpu.sublanes);
  if (lanes) {
    const double partial = std::ceil(static_cast<double>(kept_rows) / pops);
    work.xlu += partial * (1 + pops);
    work.valu += partial * pops;
  } else if (sublanes) {
    const double partial = static_cast<double>(VectorRegisters(target, reduce.shape()));
    work.xlu += 3 * partial;
    work.valu += 3 * partial;
  }
  return work;
}

}  // namespace

absl::StatusOr<VectorWork> VectorWorkOf(const Instruction& i, const passes::Target& target) {
  const double registers = static_cast<double>(VectorRegisters(target, i.shape()));
  if (const auto cost = ElementwiseCost(i)) {
    return VectorWork{cost->valu * registers, cost->eup * registers, cost->xlu * registers};
  }
  switch (i.opcode()) {
    case Opcode::kConstant:
    case Opcode::kBitcast:
    case Opcode::kParameter:
    case Opcode::kDot:  // its vector work is counted with the product itself
      return VectorWork{};
    case Opcode::kIota:
      return VectorWork{registers, 0, 0};
    case Opcode::kBroadcast: {
      // A value from the lanes of one register needs a rotation to reach the
      // others; one from whole rows or a scalar is a splat.
      const auto& dims = i.attrs().dimensions();
      const bool across_lanes = i.operand(0)->shape().rank() > 0 &&
                                std::find(dims.begin(), dims.end(), i.shape().rank() - 1) ==
                                    dims.end();
      const double source = static_cast<double>(VectorRegisters(target, i.operand(0)->shape()));
      return VectorWork{across_lanes ? registers : 0, 0, across_lanes ? source : 0};
    }
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kPad:
    case Opcode::kConcatenate: {
      // Moves with a select at the seams.
      const double moved =
          i.opcode() == Opcode::kDynamicUpdateSlice
              ? static_cast<double>(VectorRegisters(target, i.operand(1)->shape()))
              : registers;
      return VectorWork{moved, 0, 0};
    }
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kReverse:
      return VectorWork{0, 0, registers};
    case Opcode::kReduce:
      return ReduceWork(i, target);
    default:
      return NoRule(fmt::format("no kernel for {}: op '{}' has no vector cost rule", i.Describe(),
                                hlo::OpcodeName(i.opcode())));
  }
}

double RepackWork(const hlo::Shape& shape, const passes::Target& target) {
  const int64_t bits = hlo::BitWidth(shape.element_type);
  if (bits >= 32 || !shape.IsArray()) return 0;
  return static_cast<double>(VectorRegisters(target, shape));
}

}  // namespace tpusim::lowering
