#include "workloads/mosaic/scalars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "workloads/mosaic/limits.h"
#include "workloads/mosaic/scalar_rules.h"

namespace tpusim::mosaic {
namespace {

std::string TextOf(const Cubes& cubes) {
  std::string text;
  for (const Cube& cube : cubes) {
    text += "{";
    for (const auto& [form, reach] : cube) {
      for (const auto& [atom, factor] : form) text += fmt::format("{}*{} ", factor, atom);
      for (const auto& [low, high] : reach) text += fmt::format("[{},{}]", low, high);
    }
    text += "}";
  }
  return text;
}

std::string TextOf(const Symbol& symbol) {
  if (const auto* predicate = std::get_if<Predicate>(&symbol)) {
    return fmt::format("?{}:{}", TextOf(predicate->yes), TextOf(predicate->no));
  }
  const Linear& linear = std::get<Linear>(symbol);
  std::string text;
  for (const auto& [atom, factor] : linear.form) text += fmt::format("{}*{}+", factor, atom);
  return text + fmt::format("{}", linear.constant);
}

Scalar OfPredicate(Predicate predicate) { return {std::move(predicate), nullptr, 0, 1}; }

// One or zero at each point.
Column Mapped(const Column& a, const Column& b, size_t points, bool (*rule)(bool, bool)) {
  const size_t size = a.IsUniform() && b.IsUniform() ? 1 : points;
  std::vector<int64_t> values(size);
  for (size_t n = 0; n < size; ++n) values[n] = rule(a[n] != 0, b[n] != 0) ? 1 : 0;
  return Column(std::move(values));
}

// At which points a boolean can be true, and false, of those that it is made of.
std::shared_ptr<const std::pair<Column, Column>> Possible(std::string_view name,
                                                          const std::vector<Scalar>& operands,
                                                          size_t points) {
  constexpr auto kAnd = [](bool a, bool b) { return a && b; };
  constexpr auto kOr = [](bool a, bool b) { return a || b; };
  const bool conjunction = name == "arith.andi";
  if (operands.size() != 2 || (!conjunction && name != "arith.ori")) return nullptr;
  const auto [yes, no] = operands[0].Outcomes(points);
  const auto [other_yes, other_no] = operands[1].Outcomes(points);
  return std::make_shared<const std::pair<Column, Column>>(
      Mapped(yes, other_yes, points, conjunction ? +kAnd : +kOr),
      Mapped(no, other_no, points, conjunction ? +kOr : +kAnd));
}

// Returns what tells apart two operations of one name and the same operands.
std::string KeyOf(const Operation& operation) {
  std::string key = operation.name;
  if (operation.attributes == nullptr) return key;
  for (const auto& [name, value] : operation.attributes->entries) {
    key += fmt::format(" {}={}{}", name, value->integer, value->text);
  }
  return key;
}

}  // namespace

Column::Column(std::vector<int64_t> values) : values_(std::move(values)) {
  if (values_.empty()) values_.push_back(0);
  const int64_t first = values_[0];
  if (std::all_of(values_.begin(), values_.end(), [&](int64_t v) { return v == first; })) {
    values_.resize(1);
  }
}

Column Column::At(const std::vector<int64_t>& rows) const {
  if (IsUniform()) return *this;
  std::vector<int64_t> chosen;
  chosen.reserve(rows.size());
  for (const int64_t row : rows) chosen.push_back(values_[static_cast<size_t>(row)]);
  return Column(std::move(chosen));
}

std::pair<int64_t, int64_t> Column::Bounds() const {
  const auto [low, high] = std::minmax_element(values_.begin(), values_.end());
  return {*low, *high};
}

Scalar Scalar::At(const std::vector<int64_t>& rows) const {
  Scalar chosen = *this;
  if (exact) chosen.exact = std::make_shared<const Column>(exact->At(rows));
  if (possible) {
    chosen.possible = std::make_shared<const std::pair<Column, Column>>(possible->first.At(rows),
                                                                        possible->second.At(rows));
  }
  return chosen;
}

std::pair<Column, Column> Scalar::Outcomes(size_t points) const {
  if (exact) {
    const auto other = [](bool a, bool) { return !a; };
    const auto same = [](bool a, bool) { return a; };
    return {Mapped(*exact, *exact, points, same), Mapped(*exact, *exact, points, other)};
  }
  return possible ? *possible : std::pair(Column(1), Column(1));
}

Scalar Refined(const Scalar& scalar, const Cubes& when) {
  const auto* linear = std::get_if<Linear>(&scalar.symbol);
  if (linear == nullptr || when.empty()) return scalar;
  Form negated = linear->form;
  for (auto& [atom, factor] : negated) factor = Minus(factor);
  const auto constant = static_cast<double>(linear->constant);
  double lowest = kInfinity, highest = -kInfinity;
  for (const Cube& cube : when) {
    double low = scalar.low, high = scalar.high;
    for (const auto& [form, reach] : cube) {
      if (reach.empty()) continue;
      if (form == linear->form) {
        low = std::max(low, reach.front().first + constant);
        high = std::min(high, reach.back().second + constant);
      } else if (form == negated) {
        low = std::max(low, constant - reach.back().second);
        high = std::min(high, constant - reach.front().first);
      }
    }
    lowest = std::min(lowest, low);
    highest = std::max(highest, high);
  }
  Scalar result = scalar;
  result.low = lowest;
  result.high = highest;
  return result;
}

int Scalars::DepthOf(const Form& form) const {
  int deepest = 0;
  for (const auto& [atom, factor] : form) {
    deepest = std::max(deepest, depths_[static_cast<size_t>(atom)]);
  }
  return deepest;
}

int Scalars::DepthOf(const Symbol& symbol) const {
  if (const auto* linear = std::get_if<Linear>(&symbol)) return DepthOf(linear->form);
  int deepest = 0;
  const Predicate& predicate = std::get<Predicate>(symbol);
  for (const Cubes* cubes : {&predicate.yes, &predicate.no}) {
    for (const Cube& cube : *cubes) {
      for (const auto& [form, reach] : cube) deepest = std::max(deepest, DepthOf(form));
    }
  }
  return deepest;
}

int Scalars::NewAtom(int of_depth) {
  depths_.push_back(of_depth);
  return static_cast<int>(depths_.size()) - 1;
}

Scalar Scalars::OfAtom(int atom, bool boolean) const {
  const Form form = {{atom, 1}};
  if (!boolean) return {Linear{form}};
  return OfPredicate({{Cube{{form, {{1, 1}}}}}, {Cube{{form, {{0, 0}}}}}});
}

Scalar Scalars::Unknown(bool boolean) { return OfAtom(NewAtom(depth), boolean); }

Scalar Scalars::Counted(double low, double high) {
  Scalar counted = Unknown(/*boolean=*/false);
  counted.low = low;
  counted.high = high;
  return counted;
}

Scalar Scalars::MadeOf(const std::string& what, const std::vector<Scalar>& operands, bool boolean,
                       bool changes) {
  std::string key = what;
  int deepest = changes ? depth : 0;
  for (const Scalar& operand : operands) {
    key += "|" + TextOf(operand.symbol);
    if (!changes) deepest = std::max(deepest, DepthOf(operand.symbol));
  }
  const auto known = numbers_.find(key);
  if (known != numbers_.end()) return OfAtom(known->second, boolean);
  const int atom = NewAtom(deepest);
  numbers_.emplace(std::move(key), atom);
  return OfAtom(atom, boolean);
}

Scalar Scalars::Constant(int64_t value, bool boolean) const {
  const auto exact = std::make_shared<const Column>(boolean ? value & 1 : value);
  if (boolean) {
    const bool holds = (value & 1) != 0;
    return {holds ? Predicate{Always(), Never()} : Predicate{Never(), Always()}, exact, 0, 1};
  }
  return {Linear{{}, value}, exact, static_cast<double>(value), static_cast<double>(value)};
}

Scalar Scalars::Known(Column exact, const Scalar& symbol) const {
  Scalar result = symbol;
  if (std::holds_alternative<Linear>(symbol.symbol)) {
    const auto [low, high] = exact.Bounds();
    result.low = static_cast<double>(low);
    result.high = static_cast<double>(high);
  }
  result.exact = std::make_shared<const Column>(std::move(exact));
  return result;
}

Predicate Scalars::Condition(const Scalar& scalar) const {
  if (const auto* predicate = std::get_if<Predicate>(&scalar.symbol)) return *predicate;
  return Within(std::get<Linear>(scalar.symbol), ReachOf("ne"));
}

Scalar Scalars::Apply(const Operation& operation, const std::vector<Scalar>& operands,
                      size_t points) {
  const bool boolean = IsBoolean(*operation.results[0]);
  Scalar result = Symbolic(operation, operands, boolean);
  std::vector<const Column*> exact;
  for (const Scalar& operand : operands) {
    if (operand.exact) exact.push_back(operand.exact.get());
  }
  std::shared_ptr<const Column> values;
  if (exact.size() == operands.size() && CanEvaluate(operation)) {
    values = Evaluated(operation, exact, points);
  }
  if (!values && boolean) {
    const Predicate predicate = Condition(result);
    if (IsAlways(predicate.yes) || IsAlways(predicate.no)) {  // Bounds decide it.
      values = std::make_shared<const Column>(IsAlways(predicate.yes) ? 1 : 0);
    } else if (!result.possible && IsBoolean(*operation.operands[0])) {
      result.possible = Possible(operation.name, operands, points);
    }
  }
  if (!values) return result;
  if (!boolean && values->IsUniform() && !scalar_rules::IsLinear(operation.name)) {
    return Constant((*values)[0], boolean);
  }
  return Known(*values, result);
}

Scalar Scalars::Symbolic(const Operation& operation, const std::vector<Scalar>& operands,
                         bool boolean) {
  const std::string& name = operation.name;
  const bool of_booleans = IsBoolean(*operation.operands[0]);
  if (scalar_rules::IsSame(name) && !boolean && !of_booleans) {
    Scalar same = operands[0];
    same.exact = nullptr;
    return same;
  }
  if ((name == "arith.extui" || name == "arith.extsi") && of_booleans && !boolean) {
    return Extended(operands[0], name == "arith.extui" ? 1 : -1);
  }
  if (boolean && operands.size() == 2 && (name == "arith.cmpi" || name == "arith.cmpf")) {
    const std::string_view comparison = scalar_rules::ComparisonOf(operation);
    if (name == "arith.cmpi" && !of_booleans && !comparison.empty()) {
      return Compared(comparison, operands[0], operands[1]);
    }
    if (name == "arith.cmpf" && !comparison.empty()) {
      return Sign(comparison, operands[0], operands[1]);
    }
  }
  if (boolean && of_booleans) {
    std::optional<Predicate> combined;
    const auto predicate = [&](size_t n) { return Condition(operands[n]); };
    if (name == "arith.select" && operands.size() == 3) {  // number: operands of a select
      combined = Chosen(predicate(0), predicate(1), predicate(2));
    } else if (operands.size() == 2) {
      combined = Combined(scalar_rules::LogicOf(operation), predicate(0), predicate(1));
    }
    const auto conjunctions =
        combined ? std::max(std::ssize(combined->yes), std::ssize(combined->no)) : 0;
    if (conjunctions > limits::kStatements.most()) {
      limits::kStatements.Reached();
    } else if (combined) {
      return OfPredicate(*std::move(combined));
    }
  }
  Scalar made = MadeOf(KeyOf(operation), operands, boolean);
  if (boolean || operation.results[0]->type->kind == Type::Kind::kFloat) return made;
  std::vector<Scalar> refined = operands;
  if (name == "arith.select" && operands.size() == 3) {  // number: operands of a select
    const Predicate which = Condition(operands[0]);
    refined[1] = Refined(operands[1], which.yes);
    refined[2] = Refined(operands[2], which.no);
  }
  std::vector<std::pair<double, double>> bounds;
  for (const Scalar& operand : refined) bounds.emplace_back(operand.low, operand.high);
  std::tie(made.low, made.high) = scalar_rules::BoundsOf(name, bounds);
  std::vector<const Linear*> linear;
  for (const Scalar& operand : operands) linear.push_back(std::get_if<Linear>(&operand.symbol));
  if (auto symbol = scalar_rules::LinearOf(name, linear)) made.symbol = *std::move(symbol);
  return made;
}

// Returns a scalar as a number. In a damaged body a boolean may be in its place.
Linear Scalars::NumberOf(const Scalar& scalar) {
  if (const auto* linear = std::get_if<Linear>(&scalar.symbol)) return *linear;
  return std::get<Linear>(MadeOf("number", {scalar}, /*boolean=*/false).symbol);
}

Scalar Scalars::Compared(std::string_view comparison, const Scalar& left, const Scalar& right) {
  const Linear difference = Sum(NumberOf(left), 1, NumberOf(right), -1);
  const Reach within = {{left.low - right.high, left.high - right.low}};
  const Reach reach = ReachOf(comparison);
  if (const auto known = booleans_.find(difference.form); known != booleans_.end()) {
    // What a boolean has been made, compared with a number: that boolean, its opposite, or none.
    const auto& [predicate, if_true] = known->second;
    const auto holds = [&](int64_t value) {
      const double at = static_cast<double>(value) + static_cast<double>(difference.constant);
      return !Intersection(reach, {{at, at}}).empty();
    };
    Scalar result = OfPredicate({Never(), Never()});
    auto& of = std::get<Predicate>(result.symbol);
    for (const auto& [cubes, value] :
         {std::pair(&predicate.yes, if_true), std::pair(&predicate.no, int64_t{0})}) {
      Cubes& to = holds(value) ? of.yes : of.no;
      to.insert(to.end(), cubes->begin(), cubes->end());
    }
    if (holds(if_true) == holds(0)) return Constant(holds(0) ? 1 : 0, /*boolean=*/true);
    if (left.possible) {
      result.possible = holds(if_true) ? left.possible
                                       : std::make_shared<const std::pair<Column, Column>>(
                                             left.possible->second, left.possible->first);
    }
    return result;
  }
  if (Intersection(reach, within).empty()) return OfPredicate({Never(), Always()});
  if (Intersection(Complement(reach), within).empty()) return OfPredicate({Always(), Never()});
  return OfPredicate(Within(difference, reach));
}

// A comparison of numbers that are no integers: the sign of their difference is an atom.
Scalar Scalars::Sign(std::string_view comparison, const Scalar& left, const Scalar& right) {
  const bool swapped = TextOf(right.symbol) < TextOf(left.symbol);
  const Scalar sign =
      MadeOf("sign of difference", swapped ? std::vector{right, left} : std::vector{left, right},
             /*boolean=*/false);
  const Reach reach = ReachOf(comparison);
  return OfPredicate(Within(std::get<Linear>(sign.symbol), swapped ? Negated(reach) : reach));
}

Scalar Scalars::Extended(const Scalar& boolean, int64_t if_true) {
  Scalar made = MadeOf(fmt::format("integer {}", if_true), {boolean}, /*boolean=*/false);
  booleans_.try_emplace(std::get<Linear>(made.symbol).form, Condition(boolean), if_true);
  made.low = std::min<double>(0, static_cast<double>(if_true));
  made.high = std::max<double>(0, static_cast<double>(if_true));
  made.possible = boolean.possible;
  return made;
}

}  // namespace tpusim::mosaic
