#include "workloads/mosaic/conditions.h"

#include <algorithm>
#include <map>

namespace tpusim::mosaic {
namespace {

Cubes Joined(Cubes one, const Cubes& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

}  // namespace

Cubes Always() { return {Cube{}}; }

Reach Everything() { return {{-kInfinity, kInfinity}}; }

Reach Intersection(const Reach& one, const Reach& other) {
  Reach result;
  for (const auto& [a, b] : one) {
    for (const auto& [c, d] : other) {
      const double low = std::max(a, c), high = std::min(b, d);
      if (low <= high) result.emplace_back(low, high);
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

Reach Complement(const Reach& reach) {
  Reach gaps;
  double low = -kInfinity;
  for (const auto& [start, end] : reach) {
    if (low < start) gaps.emplace_back(low, start - 1);
    low = end + 1;
  }
  if (low < kInfinity) gaps.emplace_back(low, kInfinity);
  return gaps;
}

Reach ReachOf(std::string_view comparison) {
  if (comparison == "eq") return {{0, 0}};
  if (comparison == "ne") return {{-kInfinity, -1}, {1, kInfinity}};
  if (comparison == "lt") return {{-kInfinity, -1}};
  if (comparison == "le") return {{-kInfinity, 0}};
  if (comparison == "gt") return {{1, kInfinity}};
  return {{0, kInfinity}};
}

Reach Negated(const Reach& reach) {
  Reach result;
  for (const auto& [low, high] : reach) result.emplace_back(-high, -low);
  std::sort(result.begin(), result.end());
  return result;
}

Cubes Both(const Cubes& one, const Cubes& other) {
  Cubes result;
  for (const Cube& a : one) {
    for (const Cube& b : other) {
      std::map<Form, Reach> forms(a.begin(), a.end());
      bool possible = true;
      for (const auto& [form, reach] : b) {
        const auto [it, fresh] = forms.try_emplace(form, reach);
        if (!fresh) it->second = Intersection(it->second, reach);
        possible = possible && !it->second.empty();
      }
      if (possible) result.emplace_back(forms.begin(), forms.end());
    }
  }
  return result;
}

std::optional<Predicate> Combined(std::string_view name, const Predicate& one,
                                  const Predicate& other) {
  if (name == "and") {
    return Predicate{Both(one.yes, other.yes), Joined(one.no, Both(one.yes, other.no))};
  }
  if (name == "or") {
    return Predicate{Joined(one.yes, Both(one.no, other.yes)), Both(one.no, other.no)};
  }
  if (name == "xor") {
    return Predicate{Joined(Both(one.yes, other.no), Both(one.no, other.yes)),
                     Joined(Both(one.yes, other.yes), Both(one.no, other.no))};
  }
  return std::nullopt;
}

Predicate Chosen(const Predicate& which, const Predicate& if_true, const Predicate& if_false) {
  return {Joined(Both(which.no, if_false.yes), Both(which.yes, if_true.yes)),
          Joined(Both(which.no, if_false.no), Both(which.yes, if_true.no))};
}

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

Predicate Within(const Linear& integer, const Reach& reach) {
  Form form = integer.form;
  Reach inside;
  for (const auto& [low, high] : reach) {
    const auto constant = static_cast<double>(integer.constant);
    inside.emplace_back(low - constant, high - constant);
  }
  if (form.empty()) {
    const bool holds = !Intersection(inside, {{0, 0}}).empty();
    return holds ? Predicate{Always(), Never()} : Predicate{Never(), Always()};
  }
  if (form[0].second < 0) {  // So that a - b and b - a are one form.
    for (auto& [atom, factor] : form) factor = Minus(factor);
    inside = Negated(inside);
  }
  const Reach outside = Complement(inside);
  Predicate result{{Cube{{form, inside}}}, {}};
  if (!outside.empty()) result.no.push_back(Cube{{form, outside}});
  return result;
}

}  // namespace tpusim::mosaic
