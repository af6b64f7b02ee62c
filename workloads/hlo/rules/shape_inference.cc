#include "workloads/hlo/rules/shape_inference.h"

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/rules/op_rules.h"

namespace tpusim::hlo {
namespace shape_rules {

bool AreDims(const Dims& dims, int64_t rank) {
  Dims sorted = dims;
  std::ranges::sort(sorted);
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
         std::ranges::all_of(sorted, [&](int64_t d) { return InRange(d, rank); });
}

bool Contains(const Dims& dims, int64_t d) { return std::ranges::find(dims, d) != dims.end(); }

Shape OneOrTuple(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes[0]) : MakeTupleShape(std::move(shapes));
}

std::vector<Shape> OperandShapes(const Instruction& i, size_t count) {
  std::vector<Shape> shapes;
  shapes.reserve(count);
  for (size_t n = 0; n < count; ++n) shapes.push_back(In(i, n));
  return shapes;
}

absl::Status RequireArrays(const Instruction& i) {
  for (size_t n = 0; n < i.operands().size(); ++n) {
    TPUSIM_REQUIRE(In(i, n).IsArray(), "operand {} ({}) is no array", n, i.operand(n)->name());
  }
  return absl::OkStatus();
}

absl::Status CheckIndices(const Instruction& i, size_t first, int64_t wanted) {
  const int64_t count = static_cast<int64_t>(i.operands().size() - first);
  const bool vector = count == 1 && In(i, first).rank() == 1;
  TPUSIM_REQUIRE(vector ? In(i, first).dims[0] == wanted : count == wanted, "{} indices into {}",
                 count, In(i, 0).ToString());
  for (size_t n = first; n < i.operands().size(); ++n) {
    TPUSIM_REQUIRE(IsIntegral(In(i, n).element_type) && (vector || In(i, n).IsScalar()),
                   "index {} is {}", n - first, In(i, n).ToString());
  }
  return absl::OkStatus();
}

bool Compatible(PrimitiveType a, PrimitiveType b) {
  return a == b || (IsFloating(a) && IsFloating(b));
}

}  // namespace shape_rules

absl::StatusOr<Shape> InferShape(const Instruction& i) {
  const OpRules& rules = RulesOf(i.opcode());
  if (rules.arrays) RETURN_IF_ERROR(shape_rules::RequireArrays(i));
  return rules.shape(i);
}

}  // namespace tpusim::hlo
