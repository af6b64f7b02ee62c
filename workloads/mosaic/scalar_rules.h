// Evaluates operations on scalars: values, bounds, linear forms.
#ifndef TPUSIM_WORKLOADS_MOSAIC_SCALAR_RULES_H_
#define TPUSIM_WORKLOADS_MOSAIC_SCALAR_RULES_H_

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/mosaic/conditions.h"
#include "workloads/mosaic/module.h"

namespace tpusim::mosaic::scalar_rules {

// The result is the operand, as far as integers go.
bool IsSame(std::string_view name);
// Sums, differences and multiples.
bool IsLinear(std::string_view name);
// Returns "eq", "ne", "lt", "le", "gt" or "ge" of arith.cmpi; empty: none of these.
std::string_view ComparisonOf(const Operation& operation);
// "and", "or" or "xor" of an operation on booleans; empty: none of these.
std::string_view LogicOf(const Operation& operation);
// Returns the bounds of the result, from those of integer operands.
std::pair<double, double> BoundsOf(std::string_view name,
                                   const std::vector<std::pair<double, double>>& operands);
// Returns the linear form of the result, from those of the operands (null: it has none).
std::optional<Linear> LinearOf(std::string_view name, const std::vector<const Linear*>& operands);

}  // namespace tpusim::mosaic::scalar_rules

#endif  // TPUSIM_WORKLOADS_MOSAIC_SCALAR_RULES_H_
