// Reductions: over whole dimensions and over windows.

#include <algorithm>
#include <bit>
#include <cmath>

#include "configs/status_macros.h"
#include "configs/units.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/kernel_view.h"
#include "workloads/kernels/vector_cost.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;

// Operands that are reduced together: argmax reduces values and their indices.
int64_t ArraysOf(const Instruction& i) { return static_cast<int64_t>(i.operands().size()) / 2; }

// Every position of the window has all elements: a reduction whose result is spread over the
// dimension again, as the TPU compiler writes the maximum of a softmax.
bool CoversAll(int64_t bound, const hlo::WindowDim& w) {
  if (bound < 2 || w.window_dilation != 1 || w.base_dilation != 1) return false;
  const int64_t last = (hlo::WindowPositions(bound, w) - 1) * w.stride - w.padding_low;
  return last >= -w.padding_low && last <= 0 && w.size - w.padding_low >= bound;
}

}  // namespace

// Where the lane dimension goes, the remaining registers of partial results are transposed, so
// that their lanes become registers, and these are combined: up to lanes / sublanes of them (a
// square of lanes by lanes) enter the cross-lane unit together, and leave it in `sublanes` pops.
// Where the sublane dimension goes, three rotate-and-combine steps.
Crossing CrossingOfReduction(const hlo::Shape& input, const std::vector<int64_t>& dims,
                             const target::Target& target) {
  bool lanes = false, sublanes = false;
  int64_t kept_rows = 1, kept = 1;
  for (int64_t d = 0; d < input.rank(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    const int64_t place = hlo::PlaceFromMinor(input, d);
    if (reduced && place == 0) lanes = true;
    if (reduced && place == 1) sublanes = true;
    if (!reduced && place != 0) kept_rows *= input.dims[static_cast<size_t>(d)];
    if (!reduced) kept *= input.dims[static_cast<size_t>(d)];
  }
  const configs::VpuParams& vpu = target.chip().vpu;
  const double pops = static_cast<double>(vpu.sublanes);
  Crossing crossing;
  if (lanes) {
    const double partial = std::ceil(static_cast<double>(kept_rows) / pops);
    const double together = static_cast<double>(vpu.lanes) / pops;
    const double groups = std::ceil(partial / together);
    crossing.registers = partial + groups * pops;
    crossing.combinations = std::max(partial, groups * pops);
  } else if (sublanes) {
    const double steps =
        static_cast<double>(std::bit_width(static_cast<uint64_t>(vpu.sublanes - 1)));
    const double partial = std::ceil(static_cast<double>(kept) / static_cast<double>(vpu.lanes));
    crossing.registers = crossing.combinations = steps * partial;
  }
  return crossing;
}

// Every register of input is combined once; then what is left.
absl::StatusOr<VectorWork> ReduceWork(const Instruction& reduce, const target::Target& target) {
  ASSIGN_OR_RETURN(const VectorWork call, CallCost(*reduce.called()[0]));
  const hlo::Shape& input = reduce.operand(0)->shape();
  const std::vector<int64_t> dims = hlo::Dimensions(reduce);
  const Crossing crossing = CrossingOfReduction(input, dims, target);
  VectorWork work =
      call * (static_cast<double>(VectorRegisters(target, input)) + crossing.combinations);
  const double arrays = static_cast<double>(ArraysOf(reduce));
  work.xlu += arrays * crossing.registers;
  // Lanes that stay are lanes of the result, or are turned.
  const int64_t lanes = hlo::MinorDimension(input);
  const auto at = std::find(dims.begin(), dims.end(), lanes);
  if (lanes >= 0 && at == dims.end()) {
    const int64_t before =
        std::count_if(dims.begin(), dims.end(), [&](int64_t d) { return d < lanes; });
    const hlo::Shape& result = *hlo::Leaves(reduce.shape())[0];
    if (hlo::MinorDimension(result) != lanes - before) {
      work.xlu += arrays * static_cast<double>(VectorRegisters(target, result));
    }
  }
  return work;
}

// A row by a matrix: every register of the matrix is multiplied by the element of
// the row that belongs to its sublanes (or lanes) and added; what a register holds
// of one result is reduced at the end. A convolution of single features: every
// register of results, once per tap.
VectorWork MultiplyAddWork(const Instruction& product, const target::Target& target) {
  VectorWork work;
  if (product.opcode() == hlo::Opcode::kConvolution) {
    double taps = 1;
    bool shifted = false;
    const auto& spatial =
        product.attrs().convolution_dimension_numbers().output_spatial_dimensions();
    const std::vector<hlo::WindowDim> window = hlo::GetWindow(product);
    for (size_t s = 0; s < window.size(); ++s) {
      taps *= static_cast<double>(window[s].size);
      if (window[s].size == 1) continue;
      shifted =
          shifted || hlo::PlaceFromMinor(product.shape(), spatial.at(static_cast<int>(s))) < 2;
    }
    const double registers = static_cast<double>(VectorRegisters(target, product.shape()));
    // More than the multiplication and the addition.
    work.valu = target.policy().operations_per_tap * taps * registers;
    work.load = taps * registers;
    // Neighbours along lanes or sublanes come by rotation, others are registers of their own.
    if (shifted) work.xlu = taps * registers;
    return work;
  }
  const hlo::Shape &lhs = product.operand(0)->shape(), &rhs = product.operand(1)->shape();
  const hlo::Shape& larger = lhs.ElementCount() > rhs.ElementCount() ? lhs : rhs;
  const hlo::DotDims dims = hlo::GetDotDims(product);
  const Crossing crossing = CrossingOfReduction(
      larger, &larger == &lhs ? dims.lhs_contracting : dims.rhs_contracting, target);
  // Multiplied in 32 bits and added up so. In the modules that the TPU compiler makes for v4, v5e,
  // v5p and v6e, each term of a product of a narrow type is first rounded to that type, and widened
  // again for the sum.
  const bool narrow = hlo::BitWidth(product.shape().element_type) < 32;
  const double operations = narrow ? 4 : 2;
  work.valu =
      operations * static_cast<double>(VectorRegisters(target, larger)) + crossing.combinations;
  work.xlu = crossing.registers;
  return work;
}

// A window of w combines w - 1 neighbours of every result; doubling (combine
// windows of 1 to 2 to 4 ... and then the pieces that make w) needs at most
// 2 log2(w) combinations of shifted copies. A shift along lanes or sublanes goes
// through the cross-lane unit.
//
// A cumulative sum, a window of the whole extent, is a running sum: every register is
// combined with the one before. Along lanes or sublanes it is first transposed, so that
// its dimension counts registers, and turned back at the end. The TPU compiler does it in
// blocks of as many elements as there are lanes: it sums the last elements of the blocks
// likewise, and adds to every block what comes before it.
absl::StatusOr<VectorWork> ReduceWindowWork(const Instruction& i, const target::Target& target) {
  ASSIGN_OR_RETURN(const VectorWork call, CallCost(*i.called()[0]));
  const hlo::Shape& input = i.operand(0)->shape();
  const hlo::Shape& result = *hlo::Leaves(i.shape())[0];
  const double arrays = static_cast<double>(ArraysOf(i));
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(i);
  VectorWork work;
  // What all windows have in common is found once. A register that has crossed its lanes or rows
  // has the result in all of them: nothing spreads it again.
  std::vector<int64_t> whole;
  for (int64_t d = 0; d < input.rank(); ++d) {
    if (CoversAll(input.dims[d], window[d])) whole.push_back(d);
  }
  const bool others = std::ranges::any_of(window, [&](const hlo::WindowDim& w) {
    const auto d = static_cast<int64_t>(&w - window.data());
    return w.size > 1 && std::ranges::find(whole, d) == whole.end();
  });
  if (!whole.empty() && !others) {
    const Crossing crossing = CrossingOfReduction(input, whole, target);
    work = call * (static_cast<double>(VectorRegisters(target, input)) + crossing.combinations);
    work.xlu += arrays * crossing.registers;
    return work;
  }
  // Dimension by dimension, outermost first: what is left shrinks with strides.
  hlo::Shape shape = input;
  for (int64_t d = 0; d < input.rank(); ++d) {
    const hlo::WindowDim& w = window[d];
    shape.dims[d] = w.stride == 1 ? std::max(input.dims[d], result.dims[d]) : result.dims[d];
    const double registers = static_cast<double>(VectorRegisters(target, shape));
    const bool in_registers = hlo::PlaceFromMinor(input, d) < 2;  // along lanes or sublanes
    const int64_t doubling = std::min(w.size - 1, 2 * CeilLog2(w.size));
    double combinations = static_cast<double>(doubling), shifts = in_registers ? combinations : 0;
    if (hlo::IsRunning(input.dims[d], w)) {
      // Of few elements doubling is as good: it shifts log2 times and does not turn.
      const double turns = in_registers ? 2 : 0, doubled = static_cast<double>(CeilLog2(w.size));
      const double sums = w.size > target.chip().vpu.lanes ? 2 : 1;
      combinations = turns < doubled ? sums : doubled;
      shifts = std::min(turns, doubled);
    }
    work += call * (combinations * registers);
    work.xlu += arrays * shifts * registers;
    // Each round reads what the one before wrote.
    work.load += arrays * combinations * registers;
    work.store += arrays * combinations * registers;
  }
  // A window of one element is a copy.
  work.valu += static_cast<double>(VectorRegisters(target, result));
  return work;
}

// The gradient of a pooling window: every element of the window is compared with
// the best so far (and its position kept), then every position adds the source
// where it won.
absl::StatusOr<VectorWork> SelectAndScatterWork(const Instruction& i,
                                                const target::Target& target) {
  ASSIGN_OR_RETURN(const VectorWork select, CallCost(*i.called()[0]));
  ASSIGN_OR_RETURN(const VectorWork scatter, CallCost(*i.called()[1]));
  const hlo::Shape& source = i.operand(1)->shape();
  double elements = 1;
  double minor = 1;
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(i);
  for (size_t d = 0; d < window.size(); ++d) {
    elements *= static_cast<double>(window[d].size);
    if (hlo::PlaceFromMinor(source, static_cast<int64_t>(d)) < 2) {
      minor *= static_cast<double>(window[d].size);
    }
  }
  const double registers = static_cast<double>(VectorRegisters(target, source));
  VectorWork work = select * (elements * registers);
  work.valu += 2 * elements * registers;  // keep the value and its position
  work += scatter * (elements * registers);
  work.valu += 2 * elements * registers;  // is it the winner: compare, mask
  // Shifts along lanes and sublanes, there and back.
  if (minor > 1) work.xlu += 2 * elements * registers;
  work.load += 2 * elements * registers;
  work.store += elements * registers;
  return work;
}

}  // namespace tpusim::kernels
