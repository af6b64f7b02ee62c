#include "workloads/mosaic/scalars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/mosaic/limits.h"
#include "workloads/mosaic/scalar_rules.h"

namespace tpusim::mosaic {
namespace {

std::string TextOf(const Form& form) {
  std::string text;
  for (const auto& [atom, factor] : form) text += fmt::format("{}*{}+", factor, atom);
  return text;
}

std::string TextOf(const std::variant<Linear, Literal>& symbol) {
  if (const auto* literal = std::get_if<Literal>(&symbol)) {
    return fmt::format("{}{}", literal->holds ? "?" : "!", literal->atom);
  }
  const Linear& linear = std::get<Linear>(symbol);
  return fmt::format("{}{}", TextOf(linear.form), linear.constant);
}

Scalar OfLiteral(Literal literal) { return {literal, nullptr, 0, 1}; }

// A comparison of a difference with zero: whether it is at most `most`, or equal to it.
struct Comparison {
  bool equal = false, negated = false;
  int64_t most = 0;
};

Comparison ComparisonWithZero(std::string_view name) {
  const bool equal = name == "eq" || name == "ne";
  const bool negated = name == "ne" || name == "gt" || name == "ge";
  return {equal, negated, name == "lt" || name == "ge" ? -1 : 0};
}

// Returns whether a comparison holds for all numbers between these; nullopt: for some of them.
std::optional<bool> Holds(const Comparison& comparison, double low, double high) {
  const auto most = static_cast<double>(comparison.most);
  if (low > most || (comparison.equal && high < most)) return comparison.negated;
  if (high <= most && (!comparison.equal || low >= most)) return !comparison.negated;
  return std::nullopt;
}

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

int Scalars::DepthOf(const std::variant<Linear, Literal>& symbol) const {
  if (const auto* literal = std::get_if<Literal>(&symbol)) return DepthOf(literal->atom);
  int deepest = 0;
  for (const auto& [atom, factor] : std::get<Linear>(symbol).form) {
    deepest = std::max(deepest, DepthOf(atom));
  }
  return deepest;
}

Scalar Scalars::Refined(const Scalar& scalar, Literal when) const {
  const auto* linear = std::get_if<Linear>(&scalar.symbol);
  if (linear == nullptr) return scalar;
  if (const auto both = conjunctions_.find(when.atom); both != conjunctions_.end()) {
    const auto& [first, second] = both->second;
    const Scalar inside = Refined(scalar, first);
    if (when.holds) return Refined(inside, second);
    // The first does not hold, or it does and the second does not, which may be impossible.
    Scalar result = Refined(scalar, !first);
    const Scalar other = Refined(inside, !second);
    if (other.low > other.high) return result;
    result.low = std::min(result.low, other.low);
    result.high = std::max(result.high, other.high);
    return result;
  }
  const auto statement = statements_.find(when.atom);
  if (statement == statements_.end()) return scalar;
  const auto& [form, equal, number] = statement->second;
  if (equal && !when.holds) return scalar;
  const auto at = static_cast<double>(number), constant = static_cast<double>(linear->constant);
  double low = when.holds && !equal ? -kInfinity : when.holds ? at : at + 1;
  double high = when.holds ? at : kInfinity;
  Form negated = linear->form;
  for (auto& [atom, factor] : negated) factor = Minus(factor);
  if (form == negated) {
    low = -std::exchange(high, -low);
  } else if (form != linear->form) {
    return scalar;
  }
  Scalar result = scalar;
  result.low = std::max(scalar.low, low + constant);
  result.high = std::min(scalar.high, high + constant);
  return result;
}

int Scalars::NewAtom(int of_depth) {
  depths_.push_back(of_depth);
  return static_cast<int>(depths_.size()) - 1;
}

Scalar Scalars::OfAtom(int atom, bool boolean) const {
  return boolean ? OfLiteral({atom}) : Scalar{Linear{{{atom, 1}}}};
}

// Returns the atom that a text names.
int Scalars::Atom(const std::string& key, int of_depth) {
  const auto [known, fresh] = numbers_.try_emplace(key, static_cast<int>(depths_.size()));
  return fresh ? NewAtom(of_depth) : known->second;
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
  return OfAtom(Atom(key, deepest), boolean);
}

Scalar Scalars::Constant(int64_t value, bool boolean) const {
  const auto exact = std::make_shared<const Column>(boolean ? value & 1 : value);
  if (boolean) return {Literal{kTrueAtom, (value & 1) != 0}, exact, 0, 1};
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

Literal Scalars::Condition(const Scalar& scalar) {
  if (const auto* literal = std::get_if<Literal>(&scalar.symbol)) return *literal;
  return std::get<Literal>(Compared("ne", scalar, Constant(0, /*boolean=*/false)).symbol);
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
    const Literal literal = Condition(result);
    if (literal.IsConstant()) {  // Bounds decide it.
      values = std::make_shared<const Column>(literal.holds ? 1 : 0);
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
  if (boolean && of_booleans && operands.size() == 2) return Logic(operation, operands);
  if (boolean && operands.size() == 2 && name == "arith.cmpi" && !of_booleans) {
    const std::string_view comparison = scalar_rules::ComparisonOf(operation);
    if (!comparison.empty()) return Compared(comparison, operands[0], operands[1]);
  }
  Scalar made = MadeOf(KeyOf(operation), operands, boolean);
  if (boolean || operation.results[0]->type->kind == Type::Kind::kFloat) return made;
  std::vector<Scalar> refined = operands;
  if (name == "arith.select" && operands.size() == 3) {  // number: operands of a select
    const Literal which = Condition(operands[0]);
    refined[1] = Refined(operands[1], which);
    refined[2] = Refined(operands[2], !which);
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

// Makes a boolean of two others.
Scalar Scalars::Logic(const Operation& operation, const std::vector<Scalar>& operands) {
  const std::string_view logic = scalar_rules::LogicOf(operation);
  const Literal one = Condition(operands[0]), other = Condition(operands[1]);
  std::optional<Literal> made;
  if (logic == "and") made = And(one, other);
  if (logic == "xor") made = Xor(one, other);
  if (logic == "or") {
    made = And(!one, !other);
    if (made) made = !*made;
  }
  if (made) return OfLiteral(*made);
  Scalar several = MadeOf(KeyOf(operation), operands, /*boolean=*/true);
  if (logic == "and") conjunctions_.try_emplace(Condition(several).atom, one, other);
  return several;
}

Scalar Scalars::Compared(std::string_view name, const Scalar& left, const Scalar& right) {
  Linear difference = Sum(NumberOf(left), 1, NumberOf(right), -1);
  Comparison comparison = ComparisonWithZero(name);
  if (const auto known = booleans_.find(difference.form); known != booleans_.end()) {
    // An integer that a boolean has been made, compared with a number: that boolean, its opposite,
    // or none.
    const auto& [literal, if_true] = known->second;
    const auto holds = [&](int64_t value) {
      const double at = static_cast<double>(value) + static_cast<double>(difference.constant);
      return *Holds(comparison, at, at);
    };
    if (holds(if_true) == holds(0)) return Constant(holds(0) ? 1 : 0, /*boolean=*/true);
    Scalar result = OfLiteral(holds(if_true) ? literal : !literal);
    if (left.possible) {
      result.possible = holds(if_true) ? left.possible
                                       : std::make_shared<const std::pair<Column, Column>>(
                                             left.possible->second, left.possible->first);
    }
    return result;
  }
  const auto constant = static_cast<double>(difference.constant);
  const bool number = difference.form.empty();
  const auto decided = Holds(comparison, number ? constant : left.low - right.high,
                             number ? constant : left.high - right.low);
  if (decided) return OfLiteral({kTrueAtom, *decided});
  comparison.most = Sum({{}, comparison.most}, 1, {{}, difference.constant}, -1).constant;
  if (difference.form[0].second < 0) {  // So that a - b and b - a are one form.
    for (auto& [atom, factor] : difference.form) factor = Minus(factor);
    // -x is at most m where x is not at most -m - 1, or ~m.
    comparison.most = comparison.equal ? Minus(comparison.most) : ~comparison.most;
    if (!comparison.equal) comparison.negated = !comparison.negated;
  }
  const std::string key = fmt::format("{} {} {}", TextOf(difference.form),
                                      comparison.equal ? "is" : "at most", comparison.most);
  const int atom = Atom(key, DepthOf(difference));
  statements_.try_emplace(atom, difference.form, comparison.equal, comparison.most);
  return OfLiteral({atom, !comparison.negated});
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
