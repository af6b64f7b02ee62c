// Result shapes of what applies a scalar computation many times: reductions,
// windows, sorting.
#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/shape_rules.h"

namespace tpusim::hlo::shape_rules {
namespace {

// Inputs of one shape, then as many scalar initial values.
absl::Status CheckReduction(const Instruction& i) {
  const size_t n = i.operands().size() / 2;
  TPUSIM_REQUIRE(n > 0 && i.operands().size() == 2 * n, "{} operands", i.operands().size());
  for (size_t k = 0; k < n; ++k) {
    TPUSIM_REQUIRE(In(i, k).dims == In(i, 0).dims, "inputs {} and {}", In(i, 0).ToString(),
                   In(i, k).ToString());
    TPUSIM_REQUIRE(In(i, n + k).IsScalar(), "initial value {} is no scalar",
                   In(i, n + k).ToString());
    TPUSIM_REQUIRE(Compatible(In(i, k).element_type, In(i, n + k).element_type),
                   "initial value {} of {}", In(i, n + k).ToString(), In(i, k).ToString());
  }
  return absl::OkStatus();
}

}  // namespace

Result Reduce(const Instruction& i) {
  RETURN_IF_ERROR(CheckReduction(i));
  const Dims dims = Dimensions(i);
  TPUSIM_REQUIRE(AreDims(dims, In(i, 0).rank()), "dimensions {{{}}} of {}", fmt::join(dims, ","),
                 In(i, 0).ToString());
  std::vector<Shape> shapes;
  for (size_t k = 0; k < i.operands().size() / 2; ++k) {
    Dims out;
    for (int64_t d = 0; d < In(i, k).rank(); ++d) {
      if (!Contains(dims, d)) out.push_back(In(i, k).dims[d]);
    }
    shapes.push_back(MakeShape(In(i, i.operands().size() / 2 + k).element_type, out));
  }
  return OneOrTuple(std::move(shapes));
}

absl::StatusOr<Dims> WindowedDims(const Dims& bounds, const std::vector<WindowDim>& window) {
  TPUSIM_REQUIRE(window.size() == bounds.size(), "window of rank {} over rank {}", window.size(),
                 bounds.size());
  constexpr int64_t kMax = int64_t{1} << 31;  // keeps the arithmetic far from overflow
  Dims out;
  for (size_t d = 0; d < bounds.size(); ++d) {
    const WindowDim& w = window[d];
    TPUSIM_REQUIRE(w.size >= 0 && w.size < kMax && w.stride > 0 && w.stride < kMax &&
                       w.window_dilation > 0 && w.window_dilation < kMax && w.base_dilation > 0 &&
                       w.base_dilation < kMax && w.padding_low > -kMax && w.padding_low < kMax &&
                       w.padding_high > -kMax && w.padding_high < kMax && bounds[d] < kMax,
                   "window dimension {} is out of range", d);
    out.push_back(WindowPositions(bounds[d], w));
  }
  return out;
}

Result ReduceWindow(const Instruction& i) {
  RETURN_IF_ERROR(CheckReduction(i));
  ASSIGN_OR_RETURN(const Dims dims, WindowedDims(In(i, 0).dims, GetWindow(i)));
  std::vector<Shape> shapes;
  for (size_t k = 0; k < i.operands().size() / 2; ++k) {
    shapes.push_back(MakeShape(In(i, i.operands().size() / 2 + k).element_type, dims));
  }
  return OneOrTuple(std::move(shapes));
}

// Each source goes to the element that `select` picks from its window.
Result SelectAndScatter(const Instruction& i) {
  const Shape &in = In(i, 0), &source = In(i, 1), &init = In(i, 2);
  ASSIGN_OR_RETURN(const Dims dims, WindowedDims(in.dims, GetWindow(i)));
  TPUSIM_REQUIRE(source.dims == dims && Compatible(source.element_type, in.element_type),
                 "source {} for {}[{}] windows", source.ToString(),
                 PrimitiveTypeName(in.element_type), fmt::join(dims, ","));
  TPUSIM_REQUIRE(init.IsScalar() && Compatible(init.element_type, in.element_type),
                 "initial value {} of {}", init.ToString(), in.ToString());
  return in;
}

Result Sort(const Instruction& i) {
  TPUSIM_REQUIRE(!i.operands().empty() && InRange(OnlyDimension(i), In(i, 0).rank()),
                 "dimension {}", OnlyDimension(i));
  for (size_t n = 1; n < i.operands().size(); ++n) {
    TPUSIM_REQUIRE(In(i, n).dims == In(i, 0).dims, "operands {} and {}", In(i, 0).ToString(),
                   In(i, n).ToString());
  }
  return SameAsOperands(i);
}

Result Map(const Instruction& i) {
  TPUSIM_REQUIRE(!i.operands().empty(), "no operands");
  for (size_t n = 1; n < i.operands().size(); ++n) {
    TPUSIM_REQUIRE(In(i, n).dims == In(i, 0).dims, "operands {} and {}", In(i, 0).ToString(),
                   In(i, n).ToString());
  }
  return MakeShape(OwnType(i), In(i, 0).dims);
}

Result TopK(const Instruction& i) {
  Shape values = MakeShape(In(i, 0).element_type, In(i, 0).dims);
  const int64_t k = i.attrs().k();
  TPUSIM_REQUIRE(values.rank() > 0 && k >= 0 && k <= values.dims.back(), "k = {} of {}", k,
                 values.ToString());
  values.dims.back() = k;
  return MakeTupleShape({values, MakeShape(PrimitiveType::kS32, values.dims)});
}

}  // namespace tpusim::hlo::shape_rules
