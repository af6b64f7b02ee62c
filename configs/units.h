// Units as types.
//
// A simulator that mixes bytes with bytes per second, or cycles with picoseconds, is wrong without
// looking wrong. Every physical figure in tpusim is a Quantity with a tag: two quantities of one
// kind add and compare, a quantity scales by a plain number, the ratio of two equal kinds is a
// plain number, and everything else needs one of the named conversions below.
//
// Decimal prefixes throughout: 1 GB is 1e9 bytes. Binary sizes say KiB, MiB.
//
// Quantities that are counted in 64 bits do not wrap around: what is beyond is the largest number
// there is, Max(). Rates and trip counts may be anything, so a time may be longer than 64 bits
// of picoseconds (106 days); then it is longer than whatever it is compared with. Nothing that
// is so long is simulated (sim/longest_step.h) or reported (lowering checks its sums).
#ifndef TPUSIM_CONFIGS_UNITS_H_
#define TPUSIM_CONFIGS_UNITS_H_

#include <bit>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tpusim {

namespace units_internal {

template <typename Rep>
constexpr Rep Sum(Rep a, Rep b) {
  if constexpr (std::is_integral_v<Rep>) {
    Rep sum = 0;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return b < 0 ? std::numeric_limits<Rep>::min() : std::numeric_limits<Rep>::max();
  } else {
    return a + b;
  }
}

template <typename Rep>
constexpr Rep Difference(Rep a, Rep b) {
  if constexpr (std::is_integral_v<Rep>) {
    Rep difference = 0;
    if (!__builtin_sub_overflow(a, b, &difference)) return difference;
    return b > 0 ? std::numeric_limits<Rep>::min() : std::numeric_limits<Rep>::max();
  } else {
    return a - b;
  }
}

template <typename Rep>
constexpr Rep Product(Rep a, Rep b) {
  if constexpr (std::is_integral_v<Rep>) {
    Rep product = 0;
    if (!__builtin_mul_overflow(a, b, &product)) return product;
    return (a < 0) != (b < 0) ? std::numeric_limits<Rep>::min() : std::numeric_limits<Rep>::max();
  } else {
    return a * b;
  }
}

}  // namespace units_internal

template <typename Tag, typename Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  explicit constexpr Quantity(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  static constexpr Quantity Max() { return Quantity(std::numeric_limits<Rep>::max()); }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    value_ = units_internal::Sum(value_, other.value_);
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ = units_internal::Difference(value_, other.value_);
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep scale) {
    return Quantity(units_internal::Product(a.value_, scale));
  }
  friend constexpr Quantity operator*(Rep scale, Quantity a) { return a * scale; }
  friend constexpr Quantity operator/(Quantity a, Rep scale) { return Quantity(a.value_ / scale); }
  // Returns a / b as a real number.
  friend constexpr double Ratio(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Rep value_ = 0;
};

using Bytes = Quantity<struct BytesTag, int64_t>;
using Cycles = Quantity<struct CyclesTag, int64_t>;
using Picoseconds = Quantity<struct PicosecondsTag, int64_t>;
using Flops = Quantity<struct FlopsTag, int64_t>;  // a count of operations, not a rate
using Hertz = Quantity<struct HertzTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

inline constexpr int64_t kKiB = 1024;
inline constexpr int64_t kMiB = 1024 * kKiB;
inline constexpr int64_t kGiB = 1024 * kMiB;

constexpr Picoseconds Nanoseconds(int64_t ns) { return Picoseconds(ns * 1000); }
constexpr Picoseconds Microseconds(int64_t us) { return Picoseconds(us * 1000 * 1000); }
constexpr double ToNanoseconds(Picoseconds t) { return static_cast<double>(t.value()) / 1e3; }
constexpr double ToMicroseconds(Picoseconds t) { return static_cast<double>(t.value()) / 1e6; }
constexpr double ToSeconds(Picoseconds t) { return static_cast<double>(t.value()) / 1e12; }

// A whole number as an integer: the nearest there is if it is beyond 64 bits, 0 if it is none.
inline int64_t ToCount(double whole) {
  constexpr double kBeyond = 9223372036854775808.0;  // 2^63
  if (whole >= kBeyond) return std::numeric_limits<int64_t>::max();
  if (whole < -kBeyond) return std::numeric_limits<int64_t>::min();
  return std::isnan(whole) ? 0 : static_cast<int64_t>(whole);
}

// Rounded to the nearest picosecond, halves up: llround and std::round disagree
// with nothing here, because all durations are non-negative.
inline Picoseconds FromSeconds(double seconds) {
  return Picoseconds(ToCount(std::floor(seconds * 1e12 + 0.5)));
}
inline Picoseconds ToTime(Cycles cycles, Hertz clock) {
  return FromSeconds(static_cast<double>(cycles.value()) / clock.value());
}
// Whole cycles that cover a duration.
inline Cycles ToCycles(Picoseconds t, Hertz clock) {
  return Cycles(ToCount(std::ceil(ToSeconds(t) * clock.value() - 1e-9)));
}
inline Picoseconds TransferTime(Bytes bytes, BytesPerSecond rate) {
  return FromSeconds(static_cast<double>(bytes.value()) / rate.value());
}
inline Picoseconds ComputeTime(Flops flops, FlopsPerSecond rate) {
  return FromSeconds(static_cast<double>(flops.value()) / rate.value());
}

// The largest number there is if the product is beyond it.
constexpr int64_t SaturatedProduct(int64_t a, int64_t b) { return units_internal::Product(a, b); }
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t a, int64_t multiple) { return CeilDiv(a, multiple) * multiple; }
constexpr int64_t CeilLog2(int64_t n) {
  return n <= 1 ? 0 : static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n - 1)));
}

}  // namespace tpusim

#endif  // TPUSIM_CONFIGS_UNITS_H_
