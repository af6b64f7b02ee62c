// Reductions: over whole dimensions and over windows.

#include <algorithm>
#include <cmath>

#include "configs/status_macros.h"
#include "configs/units.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/whole_window.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/kernel_view.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;

// Operands that are reduced together: argmax reduces values and their indices.
int64_t ArraysOf(const Instruction& i) { return static_cast<int64_t>(i.operands().size()) / 2; }

}  // namespace

target::CrossLaneWork CrossLaneWorkOf(const hlo::Shape& input, const std::vector<int64_t>& dims,
                                     const target::Target& target) {
  target::ReducedArray array;
  for (int64_t d = 0; d < input.rank(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    const int64_t place = hlo::PlaceFromMinor(input, d);
    if (reduced && place == 0) array.lanes = true;
    if (reduced && place == 1) array.sublanes = true;
    if (!reduced && place != 0) array.kept_rows *= input.dims[static_cast<size_t>(d)];
    if (!reduced) array.kept *= input.dims[static_cast<size_t>(d)];
  }
  return target::CrossLaneWorkOf(array, target.chip().vpu, target.instructions());
}

// Every register of input is combined once; then what is left.
absl::StatusOr<VectorWork> ReduceWork(const Instruction& reduce, const target::Target& target) {
  ASSIGN_OR_RETURN(const VectorWork call, CallCost(*reduce.called()[0], target));
  const hlo::Shape& input = reduce.operand(0)->shape();
  const std::vector<int64_t> dims = hlo::Dimensions(reduce);
  const target::CrossLaneWork crossing = CrossLaneWorkOf(input, dims, target);
  VectorWork work =
      call * (static_cast<double>(VectorRegisters(target, input)) + crossing.combinations);
  const double arrays = static_cast<double>(ArraysOf(reduce));
  work.xlu += arrays * crossing.xlu;
  // Lanes that stay are lanes of the result, or are turned.
  const int64_t lanes = hlo::MinorDimension(input);
  const auto at = std::find(dims.begin(), dims.end(), lanes);
  if (lanes >= 0 && at == dims.end()) {
    const int64_t before =
        std::count_if(dims.begin(), dims.end(), [&](int64_t d) { return d < lanes; });
    const hlo::Shape& result = *hlo::Leaves(reduce.shape())[0];
    if (hlo::MinorDimension(result) != lanes - before) {
      work.xlu += arrays * static_cast<double>(VectorRegisters(target, result)) *
                  target.instructions().At("transpose-lanes").xlu;
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
    work.valu = target.instructions().At("tap").valu * taps * registers;
    work.load = taps * registers;
    // Neighbours along lanes or sublanes come by rotation, others are registers of their own.
    if (shifted) work.xlu = taps * registers * target.instructions().At("rotate").xlu;
    return work;
  }
  const hlo::Shape &lhs = product.operand(0)->shape(), &rhs = product.operand(1)->shape();
  const hlo::Shape& larger = lhs.ElementCount() > rhs.ElementCount() ? lhs : rhs;
  const hlo::DotDims dims = hlo::GetDotDims(product);
  const target::CrossLaneWork crossing = CrossLaneWorkOf(
      larger, &larger == &lhs ? dims.lhs_contracting : dims.rhs_contracting, target);
  // Multiplied in 32 bits and added up so. In the modules that the TPU compiler makes for v4, v5e,
  // v5p and v6e, each term of a product of a narrow type is first rounded to that type, and widened
  // again for the sum.
  const bool narrow = hlo::BitWidth(product.shape().element_type) < 32;  // number: bits of a type
  const double operations = narrow ? 4 : 2;  // number: a product and a sum, each rounded if narrow
  work.valu =
      operations * static_cast<double>(VectorRegisters(target, larger)) + crossing.combinations;
  work.xlu = crossing.xlu;
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
//
// A window that sees all of a dimension (whole_window.h) is a reduction of it, whose result is
// spread over the row again: along lanes and sublanes a splat for each register that is left.
absl::StatusOr<VectorWork> ReduceWindowWork(const Instruction& i, const target::Target& target) {
  ASSIGN_OR_RETURN(const VectorWork call, CallCost(*i.called()[0], target));
  const hlo::Shape& input = i.operand(0)->shape();
  const hlo::Shape& result = *hlo::Leaves(i.shape())[0];
  const double arrays = static_cast<double>(ArraysOf(i));
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(i);
  VectorWork work;
  // Dimension by dimension, outermost first: what is left shrinks with strides.
  hlo::Shape shape = input;
  for (int64_t d = 0; d < input.rank(); ++d) {
    const hlo::WindowDim& w = window[d];
    shape.dims[d] = w.stride == 1 ? std::max(input.dims[d], result.dims[d]) : result.dims[d];
    const double registers = static_cast<double>(VectorRegisters(target, shape));
    const bool in_registers = hlo::PlaceFromMinor(input, d) < 2;  // along lanes or sublanes
    if (hlo::SeesWhole(input.dims[d], w)) {
      const target::CrossLaneWork crossing = CrossLaneWorkOf(shape, {d}, target);
      work += call * (registers + crossing.combinations);
      hlo::Shape row = shape;
      row.dims[d] = 1;
      const double spread = in_registers ? static_cast<double>(VectorRegisters(target, row)) : 0;
      work.xlu += arrays * (crossing.xlu + spread);
      work.load += arrays * registers;
      continue;
    }
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
  ASSIGN_OR_RETURN(const VectorWork select, CallCost(*i.called()[0], target));
  ASSIGN_OR_RETURN(const VectorWork scatter, CallCost(*i.called()[1], target));
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
