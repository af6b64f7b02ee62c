#include "workloads/hlo/ir/small_float.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "configs/status_macros.h"

namespace tpusim::hlo {
namespace {

using Specials = SmallFloat::Specials;

uint32_t MagnitudeMask(const SmallFloat& format) {
  return (1u << (format.exponent_bits + format.mantissa_bits)) - 1;
}

uint32_t SignBit(const SmallFloat& format) {
  return format.specials == Specials::kPowerOfTwo
             ? 0
             : 1u << (format.exponent_bits + format.mantissa_bits);
}

uint32_t NanOf(const SmallFloat& format) {
  switch (format.specials) {
    case Specials::kIeee:  // quiet
      return ((1u << format.exponent_bits) - 1) << format.mantissa_bits |
             1u << (format.mantissa_bits - 1);
    case Specials::kNegativeZeroIsNan:
      return SignBit(format);
    case Specials::kNanOnly:
    case Specials::kPowerOfTwo:
    case Specials::kNone:  // the largest number instead
      return MagnitudeMask(format);
  }
  return 0;
}

// The pattern of the largest number.
uint32_t LargestOf(const SmallFloat& format) {
  switch (format.specials) {
    case Specials::kIeee:
      return (((1u << format.exponent_bits) - 1) << format.mantissa_bits) - 1;
    case Specials::kNanOnly:
    case Specials::kPowerOfTwo:
      return MagnitudeMask(format) - 1;
    case Specials::kNegativeZeroIsNan:
    case Specials::kNone:
      return MagnitudeMask(format);
  }
  return 0;
}

double Magnitude(uint32_t bits, const SmallFloat& format) {
  const uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const auto exponent = static_cast<int>(bits >> format.mantissa_bits);
  const double fraction = std::ldexp(mantissa, -format.mantissa_bits);
  if (exponent == 0 && format.specials != Specials::kPowerOfTwo) {
    return std::ldexp(fraction, 1 - format.bias);
  }
  return std::ldexp(1 + fraction, exponent - format.bias);
}

// A type, and where a literal has its elements.
struct StoredFloat {
  PrimitiveType type;
  SmallFloat format;
  const std::string& (pb::LiteralProto::*bytes)() const;
  std::string* (pb::LiteralProto::*mutable_bytes)();
};

using Literal = pb::LiteralProto;
using enum PrimitiveType;
constexpr auto kIeee = Specials::kIeee, kNanOnly = Specials::kNanOnly, kNone = Specials::kNone,
               kFnuz = Specials::kNegativeZeroIsNan, kPowerOfTwo = Specials::kPowerOfTwo;
// clang-format off
constexpr StoredFloat kStoredFloats[] = {
    {kF16, {5, 10, 15, kIeee}, &Literal::f16s, &Literal::mutable_f16s},
    {kBf16, {8, 7, 127, kIeee}, &Literal::bf16s, &Literal::mutable_bf16s},
    {kF8E5M2, {5, 2, 15, kIeee}, &Literal::f8e5m2s, &Literal::mutable_f8e5m2s},
    {kF8E4M3, {4, 3, 7, kIeee}, &Literal::f8e4m3s, &Literal::mutable_f8e4m3s},
    {kF8E3M4, {3, 4, 3, kIeee}, &Literal::f8e3m4s, &Literal::mutable_f8e3m4s},
    {kF8E4M3Fn, {4, 3, 7, kNanOnly}, &Literal::f8e4m3fns, &Literal::mutable_f8e4m3fns},
    {kF8E5M2Fnuz, {5, 2, 16, kFnuz}, &Literal::f8e5m2fnuzs, &Literal::mutable_f8e5m2fnuzs},
    {kF8E4M3Fnuz, {4, 3, 8, kFnuz}, &Literal::f8e4m3fnuzs, &Literal::mutable_f8e4m3fnuzs},
    {kF8E4M3B11Fnuz, {4, 3, 11, kFnuz}, &Literal::f8e4m3b11fnuzs, &Literal::mutable_f8e4m3b11fnuzs},
    {kF4E2M1Fn, {2, 1, 1, kNone}, &Literal::f4e2m1fns, &Literal::mutable_f4e2m1fns},
    {kF6E3M2Fn, {3, 2, 3, kNone}, &Literal::f6e3m2fns, &Literal::mutable_f6e3m2fns},
    {kF6E2M3Fn, {2, 3, 1, kNone}, &Literal::f6e2m3fns, &Literal::mutable_f6e2m3fns},
    {kF8E8M0Fnu, {8, 0, 127, kPowerOfTwo}, &Literal::f8e8m0fnus, &Literal::mutable_f8e8m0fnus},
};
// clang-format on

const StoredFloat* StoredFloatOf(PrimitiveType type) {
  for (const StoredFloat& row : kStoredFloats) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

int BytesOf(const SmallFloat& format) {
  return format.exponent_bits + format.mantissa_bits + 1 > 8 &&
                 format.specials != Specials::kPowerOfTwo
             ? 2
             : 1;
}

}  // namespace

std::optional<SmallFloat> SmallFloatOf(PrimitiveType type) {
  const StoredFloat* row = StoredFloatOf(type);
  return row == nullptr ? std::nullopt : std::optional(row->format);
}

double DecodeSmallFloat(uint32_t bits, const SmallFloat& format) {
  const uint32_t magnitude = bits & MagnitudeMask(format);
  const bool is_negative = (bits & SignBit(format)) != 0;
  const double sign = is_negative ? -1 : 1;
  if (magnitude > LargestOf(format)) {
    const uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
    if (format.specials == Specials::kIeee && magnitude == infinity) {
      return sign * std::numeric_limits<double>::infinity();
    }
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (format.specials == Specials::kNegativeZeroIsNan && is_negative && magnitude == 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sign * Magnitude(magnitude, format);
}

uint32_t EncodeSmallFloat(double value, const SmallFloat& format) {
  uint32_t sign = std::signbit(value) ? SignBit(format) : 0;
  if (std::isnan(value)) return NanOf(format) | sign;
  if (format.specials == Specials::kPowerOfTwo && value <= 0) return value < 0 ? NanOf(format) : 0;
  const double size = std::fabs(value);
  uint32_t magnitude = LargestOf(format) + 1;
  if (std::isfinite(size)) {
    const int least = format.specials == Specials::kPowerOfTwo ? -format.bias : 1 - format.bias;
    const int exponent = size == 0 ? least : std::max(std::ilogb(size), least);
    // In units of the last place; nearbyint rounds halves to even. A carry out of the mantissa
    // runs into the exponent, as it should. A number without the leading one has exponent 0.
    const double units = std::nearbyint(std::ldexp(size, format.mantissa_bits - exponent));
    const double pattern = std::ldexp(exponent - least, format.mantissa_bits) + units -
                           (format.specials == Specials::kPowerOfTwo ? 1 : 0);
    if (pattern <= LargestOf(format)) magnitude = static_cast<uint32_t>(std::max(0.0, pattern));
  }
  if (magnitude > LargestOf(format)) {
    if (format.specials == Specials::kIeee) return sign | magnitude;
    if (format.specials == Specials::kNone) return sign | LargestOf(format);
    return NanOf(format);
  }
  if (format.specials == Specials::kNegativeZeroIsNan && magnitude == 0) sign = 0;
  return sign | magnitude;
}

void AppendSmallFloat(PrimitiveType type, double value, pb::LiteralProto* literal) {
  const StoredFloat* row = StoredFloatOf(type);
  TPUSIM_CHECK(row != nullptr, "a literal of small floats of another type");
  const uint32_t bits = EncodeSmallFloat(value, row->format);
  std::string& bytes = *(literal->*row->mutable_bytes)();
  for (int i = 0; i < BytesOf(row->format); ++i) {
    bytes.push_back(static_cast<char>(bits >> (8 * i) & 0xff));  // little endian
  }
}

std::optional<std::vector<double>> SmallFloats(const pb::LiteralProto& literal) {
  const StoredFloat* row =
      StoredFloatOf(static_cast<PrimitiveType>(literal.shape().element_type()));
  if (row == nullptr) return std::nullopt;
  const std::string& bytes = (literal.*row->bytes)();
  const size_t width = BytesOf(row->format);
  std::vector<double> values;
  values.reserve(bytes.size() / width);
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    uint32_t bits = 0;
    for (size_t i = 0; i < width; ++i) {
      bits |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
    }
    values.push_back(DecodeSmallFloat(bits, row->format));
  }
  return values;
}

}  // namespace tpusim::hlo
