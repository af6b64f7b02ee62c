#include "workloads/mosaic/scalar_rules.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "workloads/mosaic/scalars.h"

namespace tpusim::mosaic {
namespace {

using Arithmetic = int64_t (*)(int64_t, int64_t);

uint64_t Bits(int64_t value) { return static_cast<uint64_t>(value); }
int64_t Shift(int64_t by) { return std::clamp<int64_t>(by, 0, 63); }  // number: bits of a word
// Divides. A division by zero runs nowhere, and gives anything.
int64_t Divided(int64_t a, int64_t b) { return b == 0 || b == -1 ? Minus(a) : a / b; }
int64_t Floored(int64_t a, int64_t b) {
  const int64_t whole = Divided(a, b);
  return b != 0 && a % b != 0 && (a < 0) != (b < 0) ? whole - 1 : whole;
}
int64_t Rest(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

struct Binary {
  std::string_view name;
  Arithmetic rule;
};
// Unsigned numbers of kernels are small.
constexpr Binary kBinary[] = {
    {"arith.addi", [](int64_t a, int64_t b) { return static_cast<int64_t>(Bits(a) + Bits(b)); }},
    {"arith.subi", [](int64_t a, int64_t b) { return static_cast<int64_t>(Bits(a) - Bits(b)); }},
    {"arith.muli", [](int64_t a, int64_t b) { return static_cast<int64_t>(Bits(a) * Bits(b)); }},
    {"arith.divsi", Divided},
    {"arith.divui", Divided},
    {"arith.floordivsi", Floored},
    {"arith.ceildivsi", [](int64_t a, int64_t b) { return Minus(Floored(Minus(a), b)); }},
    {"arith.remsi", Rest},
    {"arith.remui", Rest},
    {"arith.maxsi", [](int64_t a, int64_t b) { return std::max(a, b); }},
    {"arith.maxui", [](int64_t a, int64_t b) { return std::max(a, b); }},
    {"arith.minsi", [](int64_t a, int64_t b) { return std::min(a, b); }},
    {"arith.minui", [](int64_t a, int64_t b) { return std::min(a, b); }},
    {"arith.andi", [](int64_t a, int64_t b) { return a & b; }},
    {"arith.ori", [](int64_t a, int64_t b) { return a | b; }},
    {"arith.xori", [](int64_t a, int64_t b) { return a ^ b; }},
    {"arith.shli", [](int64_t a, int64_t b) { return static_cast<int64_t>(Bits(a) << Shift(b)); }},
    {"arith.shrsi", [](int64_t a, int64_t b) { return a >> Shift(b); }},
    {"arith.shrui", [](int64_t a, int64_t b) { return a >> Shift(b); }},
};

Arithmetic ArithmeticOf(std::string_view name) {
  const auto* row = std::find_if(std::begin(kBinary), std::end(kBinary),
                                 [&](const Binary& b) { return b.name == name; });
  return row == std::end(kBinary) ? nullptr : row->rule;
}

bool Holds(std::string_view comparison, int64_t a, int64_t b) {
  if (comparison == "eq") return a == b;
  if (comparison == "ne") return a != b;
  if (comparison == "lt") return a < b;
  if (comparison == "le") return a <= b;
  if (comparison == "gt") return a > b;
  return a >= b;
}

double Multiplied(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

// Rounded to zero.
double Quotient(double a, double b) {
  if (std::isinf(b)) return 0;
  return std::isinf(a) ? a : std::trunc(a / b);
}

}  // namespace

bool IsBoolean(const Value& value) {
  return value.type->kind == Type::Kind::kInteger && value.type->name == "i1";
}

bool IsScalar(const Value& value) {
  return value.type->kind == Type::Kind::kInteger || value.type->kind == Type::Kind::kIndex ||
         value.type->kind == Type::Kind::kFloat;
}

std::optional<int64_t> ConstantOf(const Operation& operation) {
  const Attribute* value = operation.name == "arith.constant" ? operation.Find("value") : nullptr;
  if (value == nullptr || value->kind != Attribute::Kind::kInteger) return std::nullopt;
  return value->integer;
}

bool CanEvaluate(const Operation& operation) {
  if (operation.results.size() != 1 || operation.operands.empty()) return false;
  const auto integer = [](const Value* value) {
    return IsScalar(*value) && value->type->kind != Type::Kind::kFloat;
  };
  if (!std::all_of(operation.operands.begin(), operation.operands.end(), integer) ||
      !integer(operation.results[0])) {
    return false;
  }
  const std::string& name = operation.name;
  const size_t operands = operation.operands.size();
  if (ArithmeticOf(name) != nullptr) return operands == 2;
  if (name == "arith.cmpi") {
    return operands == 2 && !scalar_rules::ComparisonOf(operation).empty();
  }
  if (name == "arith.select") return operands == 3;  // number: operands of a select
  return scalar_rules::IsSame(name);
}

std::shared_ptr<const Column> Evaluated(const Operation& operation,
                                        const std::vector<const Column*>& operands, size_t points) {
  const bool uniform =
      std::all_of(operands.begin(), operands.end(), [](const Column* c) { return c->IsUniform(); });
  const size_t size = uniform ? 1 : points;
  const Column& a = *operands[0];
  std::vector<int64_t> values(size);
  if (const Arithmetic rule = ArithmeticOf(operation.name)) {
    for (size_t n = 0; n < size; ++n) values[n] = rule(a[n], (*operands[1])[n]);
  } else if (operation.name == "arith.cmpi") {
    const std::string_view comparison = scalar_rules::ComparisonOf(operation);
    for (size_t n = 0; n < size; ++n) values[n] = Holds(comparison, a[n], (*operands[1])[n]);
  } else if (operation.name == "arith.select") {
    for (size_t n = 0; n < size; ++n) {
      values[n] = a[n] != 0 ? (*operands[1])[n] : (*operands[2])[n];
    }
  } else {
    const bool negative = operation.name == "arith.extsi" && IsBoolean(*operation.operands[0]);
    const bool bit = IsBoolean(*operation.results[0]);
    for (size_t n = 0; n < size; ++n) values[n] = negative ? Minus(a[n]) : bit ? a[n] & 1 : a[n];
  }
  return std::make_shared<const Column>(std::move(values));
}

namespace scalar_rules {

bool IsSame(std::string_view name) {
  return name == "arith.index_cast" || name == "arith.index_castui" || name == "arith.extsi" ||
         name == "arith.extui" || name == "arith.trunci" || name == "tpu.assume_multiple";
}

bool IsLinear(std::string_view name) {
  return name == "arith.addi" || name == "arith.subi" || name == "arith.muli";
}

std::string_view ComparisonOf(const Operation& operation) {
  // As MLIR numbers the predicates; unsigned ones after those with a sign.
  constexpr std::string_view kIntegers[] = {"eq", "ne", "lt", "le", "gt",
                                            "ge", "lt", "le", "gt", "ge"};
  const Attribute* predicate = operation.Find("predicate");
  if (operation.name != "arith.cmpi" || predicate == nullptr || predicate->integer < 0) return "";
  const auto number = static_cast<size_t>(predicate->integer);
  return number < std::size(kIntegers) ? kIntegers[number] : "";
}

std::string_view LogicOf(const Operation& operation) {
  if (operation.name == "arith.andi") return "and";
  if (operation.name == "arith.ori") return "or";
  if (operation.name == "arith.xori") return "xor";
  return ComparisonOf(operation) == "ne" ? "xor" : "";
}

std::pair<double, double> BoundsOf(std::string_view name,
                                   const std::vector<std::pair<double, double>>& operands) {
  const std::pair everything(-kInfinity, kInfinity);
  if (operands.empty()) return everything;
  const auto [low, high] = operands[0];
  if (name == "arith.select" && operands.size() == 3) {  // number: operands of a select
    return {std::min(operands[1].first, operands[2].first),
            std::max(operands[1].second, operands[2].second)};
  }
  if (operands.size() != 2) return everything;
  const auto [other_low, other_high] = operands[1];
  const auto corners = [&](double (*rule)(double, double)) {
    const auto &one = operands[0], &other = operands[1];
    const double all[] = {rule(one.first, other.first), rule(one.first, other.second),
                          rule(one.second, other.first), rule(one.second, other.second)};
    return std::pair(*std::min_element(std::begin(all), std::end(all)),
                     *std::max_element(std::begin(all), std::end(all)));
  };
  if (name == "arith.addi") return {low + other_low, high + other_high};
  if (name == "arith.subi") return {low - other_high, high - other_low};
  if (name == "arith.minsi") return {std::min(low, other_low), std::min(high, other_high)};
  if (name == "arith.maxsi") return {std::max(low, other_low), std::max(high, other_high)};
  if (name == "arith.muli") return corners(Multiplied);
  if (name == "arith.divsi" && other_low > 0) return corners(Quotient);
  if ((name == "arith.remsi" || name == "arith.remui") && other_low > 0) {
    const double most = other_high - 1;
    return {low >= 0 ? 0 : std::max(low, -most), high > 0 ? std::min(high, most) : 0};
  }
  if (name == "arith.andi" && std::max(low, other_low) >= 0) {
    return {0, std::min(low >= 0 ? high : kInfinity, other_low >= 0 ? other_high : kInfinity)};
  }
  return everything;
}

std::optional<Linear> LinearOf(std::string_view name, const std::vector<const Linear*>& operands) {
  if (operands.size() != 2 || operands[0] == nullptr || operands[1] == nullptr) return std::nullopt;
  const Linear &left = *operands[0], &right = *operands[1];
  if (name == "arith.addi") return Sum(left, 1, right, 1);
  if (name == "arith.subi") return Sum(left, 1, right, -1);
  if (right.form.empty() && right.constant == 1) {
    if (name == "arith.divsi" || name == "arith.divui") return left;
    if (name == "arith.remsi" || name == "arith.remui") return Linear{};
  }
  if (name != "arith.muli") return std::nullopt;
  if (left.form.empty()) return Sum(right, left.constant, {}, 0);
  if (right.form.empty()) return Sum(left, right.constant, {}, 0);
  return std::nullopt;
}

}  // namespace scalar_rules
}  // namespace tpusim::mosaic
