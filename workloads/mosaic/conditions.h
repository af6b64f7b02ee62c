// Integers and booleans of a kernel that data decide, as far as they are known to be equal.
//
// An integer is a constant and multiples of atoms (a load, a minimum, anything without a rule of
// its own). A boolean is an atom or its opposite: `i < n`, `n > i`, `n <= i` and `~(i < n)` are one
// atom, the last two its opposite. A boolean that is made of several is an atom of its own. So
// branches on equal and opposite conditions are known, and others are taken to be independent.
#ifndef TPUSIM_WORKLOADS_MOSAIC_CONDITIONS_H_
#define TPUSIM_WORKLOADS_MOSAIC_CONDITIONS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace tpusim::mosaic {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Multiples of atoms, by the atom's number.
using Form = std::vector<std::pair<int, int64_t>>;

struct Linear {
  Form form;
  int64_t constant = 0;
};

// The atom that is true.
inline constexpr int kTrueAtom = 0;

// An atom that holds, or does not.
struct Literal {
  int atom = kTrueAtom;
  bool holds = true;

  Literal operator!() const { return {atom, !holds}; }
  bool IsConstant() const { return atom == kTrueAtom; }
  friend auto operator<=>(const Literal&, const Literal&) = default;
};

// Literals that all hold when something happens, in the order of atoms, none of them constant.
// Empty: it always happens.
using When = std::vector<Literal>;

// The other sign; numbers wrap around.
inline int64_t Minus(int64_t value) {
  return static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(value));
}

// a * left + b * right.
Linear Sum(const Linear& left, int64_t a, const Linear& right, int64_t b);

// Returns when another literal holds, too; nullopt: never.
std::optional<When> Both(When when, Literal also);
// Return the literal that is true if both hold, and if just one does; nullopt: it is another atom.
std::optional<Literal> And(Literal one, Literal other);
std::optional<Literal> Xor(Literal one, Literal other);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_CONDITIONS_H_
