#include "workloads/mosaic/conditions.h"

#include <algorithm>
#include <map>

namespace tpusim::mosaic {

Linear Sum(const Linear& left, int64_t a, const Linear& right, int64_t b) {
  // Kernels count in 32 bits: what wraps around here makes no sense anyway.
  const auto product = [](int64_t x, int64_t y) {
    return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  };
  const auto sum = [](int64_t x, int64_t y) {
    return static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  };
  std::map<int, int64_t> atoms;
  for (const auto& [atom, factor] : left.form) atoms[atom] = product(a, factor);
  for (const auto& [atom, factor] : right.form) {
    atoms[atom] = sum(atoms[atom], product(b, factor));
  }
  Linear result{{}, sum(product(a, left.constant), product(b, right.constant))};
  for (const auto& [atom, factor] : atoms) {
    if (factor != 0) result.form.emplace_back(atom, factor);
  }
  return result;
}

std::optional<When> Both(When when, Literal also) {
  if (also.IsConstant()) return also.holds ? std::optional(std::move(when)) : std::nullopt;
  const auto at = std::ranges::lower_bound(when, also.atom, {}, &Literal::atom);
  if (at == when.end() || at->atom != also.atom) {
    when.insert(at, also);
  } else if (*at != also) {
    return std::nullopt;
  }
  return when;
}

std::optional<Literal> And(Literal one, Literal other) {
  if (one.atom == other.atom) return one.holds == other.holds ? one : Literal{kTrueAtom, false};
  if (one.IsConstant()) return one.holds ? other : one;
  if (other.IsConstant()) return other.holds ? one : other;
  return std::nullopt;
}

std::optional<Literal> Xor(Literal one, Literal other) {
  if (one.atom == other.atom) return Literal{kTrueAtom, one.holds != other.holds};
  if (one.IsConstant()) return one.holds ? !other : other;
  if (other.IsConstant()) return other.holds ? !one : one;
  return std::nullopt;
}

}  // namespace tpusim::mosaic
