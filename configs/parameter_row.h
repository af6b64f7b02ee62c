// TPUSIM_PARAMETER binds a row of a table of parameters to a member of ChipParams, for the files
// that hold such tables (chip_schema.cc, policy_schema.cc).
#ifndef TPUSIM_CONFIGS_PARAMETER_ROW_H_
#define TPUSIM_CONFIGS_PARAMETER_ROW_H_

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "configs/chip_schema.h"

namespace tpusim::configs {

// Members hold units as types; JSON holds plain numbers in the unit of the row.
inline double ToNumber(Picoseconds v) { return ToNanoseconds(v); }
template <typename T>
double ToNumber(T v) {  // numbers, true and false, words of a list
  return static_cast<double>(v);
}
template <typename Tag, typename Rep>
double ToNumber(Quantity<Tag, Rep> v) {
  return static_cast<double>(v.value());
}

inline void FromNumber(double number, double* v) { *v = number; }
inline void FromNumber(double number, Picoseconds* v) {
  *v = Picoseconds(std::llround(number * 1e3));
}
template <typename T>
void FromNumber(double number, T* v) {
  *v = static_cast<T>(std::llround(number));
}
template <typename Tag, typename Rep>
void FromNumber(double number, Quantity<Tag, Rep>* v) {
  if constexpr (std::is_integral_v<Rep>) {
    *v = Quantity<Tag, Rep>(std::llround(number));
  } else {
    *v = Quantity<Tag, Rep>(number);
  }
}

template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T> || std::is_enum_v<T> || std::is_same_v<T, Bytes>;

struct ValueRange {
  double minimum;
  double maximum;
};
inline constexpr ValueRange kCount = {1, 1 << 20};
inline constexpr ValueRange kCountOrNone = {0, 1 << 20};
inline constexpr ValueRange kBytesOrNone = {0, 1e15};

// The work that reads the parameter stands at the end, unless every program does.
#define TPUSIM_PARAMETER(path, unit, range, member, description, ...)                  \
  Parameter {                                                                          \
    path, unit, description, range.minimum, range.maximum,                             \
        kIsInteger<std::remove_cvref_t<decltype(std::declval<ChipParams&>().member)>>, \
        [](const ChipParams& c) { return ToNumber(c.member); },                        \
        [](ChipParams& c, double number) { FromNumber(number, &c.member); }, {         \
      __VA_ARGS__                                                                      \
    }                                                                                  \
  }

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_PARAMETER_ROW_H_
