// Floating-point numbers of at most 16 bits, as the types of HLO name them: f8e4m3fn has a sign, 4
// bits of exponent and 3 of mantissa.
//
// What the endings say of the numbers that are none:
//
//   (none)  the largest exponent is infinity and NaN, as in IEEE 754
//   fn      finite: no infinity; NaN has all bits of exponent and mantissa set
//   fnuz    finite, and zero has no sign: NaN is what would be -0
//   fn of 4 and 6 bits  every pattern is a number
//   e8m0fnu a power of two without sign; NaN has all bits set
//
// Formats: IEEE 754-2019; OCP 8-bit Floating Point Specification 1.0 and Microscaling Formats 1.0;
// biases of fnuz as in ml_dtypes.
#ifndef TPUSIM_WORKLOADS_HLO_IR_SMALL_FLOAT_H_
#define TPUSIM_WORKLOADS_HLO_IR_SMALL_FLOAT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/hlo/hlo.pb.h"
#include "workloads/hlo/ir/shape.h"

namespace tpusim::hlo {

struct SmallFloat {
  enum class Specials { kIeee, kNanOnly, kNegativeZeroIsNan, kNone, kPowerOfTwo };
  int exponent_bits = 0, mantissa_bits = 0;
  int bias = 0;
  Specials specials = Specials::kIeee;
};

// nullopt: another type.
std::optional<SmallFloat> SmallFloatOf(PrimitiveType type);

double DecodeSmallFloat(uint32_t bits, const SmallFloat& format);
// The nearest number, halves to even. Beyond the largest one: infinity, else NaN, else that one.
uint32_t EncodeSmallFloat(double value, const SmallFloat& format);

// Elements of literals: one or two bytes each. TPUSIM_CHECK: the type is one of these.
void AppendSmallFloat(PrimitiveType type, double value, pb::LiteralProto* literal);
// nullopt: the literal is of another type.
std::optional<std::vector<double>> SmallFloats(const pb::LiteralProto& literal);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IR_SMALL_FLOAT_H_
