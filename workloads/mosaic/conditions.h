// When something happens in a kernel: statements about integers, combined.
//
// An integer is a constant and multiples of atoms (a load, a minimum, anything without a rule of
// its own). A comparison of two of them says in which intervals the difference of both lies. A
// boolean is such statements combined: two lists of cubes, one for true and one for false. A cube
// is a conjunction, an interval or several for each linear form in it; those of both lists together
// exclude each other and leave nothing out. `i < n`, `n <= i` and `~(i < n)` are thus statements
// about the same form, i - n, and known to be equal or complements.
#ifndef TPUSIM_WORKLOADS_MOSAIC_CONDITIONS_H_
#define TPUSIM_WORKLOADS_MOSAIC_CONDITIONS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tpusim::mosaic {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Multiples of atoms, by the atom's number.
using Form = std::vector<std::pair<int, int64_t>>;
// Closed intervals of integers that do not overlap, in order; ends may be infinite.
using Reach = std::vector<std::pair<double, double>>;
// Statements that all hold, sorted by form, each form once.
using Cube = std::vector<std::pair<Form, Reach>>;
// One of these holds; they exclude each other. One without statements is true, none is false.
using Cubes = std::vector<Cube>;

struct Linear {
  Form form;
  int64_t constant = 0;
};

struct Predicate {
  Cubes yes, no;
};

using Symbol = std::variant<Linear, Predicate>;

// The other sign; numbers wrap around.
inline int64_t Minus(int64_t value) {
  return static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(value));
}

Cubes Always();
inline Cubes Never() { return {}; }
inline bool IsAlways(const Cubes& cubes) { return cubes.size() == 1 && cubes[0].empty(); }

Reach Everything();
Reach Intersection(const Reach& one, const Reach& other);
Reach Complement(const Reach& reach);
// The differences of the operands that make a comparison true: "eq", "ne", "lt", "le", "gt", "ge".
Reach ReachOf(std::string_view comparison);
// Returns the intervals of all integers with the other sign.
Reach Negated(const Reach& reach);

// When one cube of either list holds.
Cubes Both(const Cubes& one, const Cubes& other);
// Booleans made of booleans: "and", "or", "xor". nullopt: there is no rule.
std::optional<Predicate> Combined(std::string_view name, const Predicate& one,
                                  const Predicate& other);
Predicate Chosen(const Predicate& which, const Predicate& if_true, const Predicate& if_false);

// a * left + b * right.
Linear Sum(const Linear& left, int64_t a, const Linear& right, int64_t b);
// Whether an integer lies in these intervals.
Predicate Within(const Linear& integer, const Reach& reach);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_CONDITIONS_H_
