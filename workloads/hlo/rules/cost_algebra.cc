// Costs of products, convolutions, transforms, solvers and random bits.
#include <algorithm>
#include <numeric>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/hlo/rules/cost_rules.h"

namespace tpusim::hlo::cost_rules {
Result Dot(const Instruction& i, const CalleeCosts&) {
  const DotDims dims = GetDotDims(i);
  int64_t k = 1;
  for (int64_t d : dims.lhs_contracting) k *= i.operand(0)->shape().dims[d];
  return Full(i, Mul(2, Mul(i.shape().ElementCount(), k)));
}

// Every row of the left side meets one group of the right side, or none.
Result RaggedDot(const Instruction& i, const CalleeCosts&) {
  const DotDims dims = GetDotDims(i);
  const Shape& rhs = i.operand(1)->shape();
  const auto& ragged = i.attrs().ragged_dot_dimension_numbers();
  int64_t columns = 1;
  for (int64_t d : FreeDims(rhs.rank(), dims.rhs_contracting, dims.rhs_batch)) {
    const auto& groups = ragged.rhs_group_dimensions();
    if (std::ranges::find(groups, d) == groups.end()) columns *= rhs.dims[d];
  }
  int64_t elements = i.operand(0)->shape().ElementCount();
  if (const auto sizes = RaggedSizes(i); sizes && elements > 0) {
    const int64_t rows = i.operand(0)->shape().dims[RaggedDimension(i)];
    int64_t used = 0;
    for (int64_t size : *sizes) used = std::min(rows, Add(used, size));
    elements = elements / rows * used;
  }
  return Full(i, Mul(2, Mul(elements, columns)));
}

// The product, and each element of an operand times its scale.
Result ScaledDot(const Instruction& i, const CalleeCosts& callees) {
  ASSIGN_OR_RETURN(Cost cost, Dot(i, callees));
  const int64_t scaled =
      Add(i.operand(0)->shape().ElementCount(), i.operand(1)->shape().ElementCount());
  cost.flops = Flops(Add(cost.flops.value(), scaled));
  return cost;
}

namespace {

// Larger windows would take long to walk through, and no chip holds one.
constexpr int64_t kMaxWindow = int64_t{1} << 20;

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Pairs (output position, kernel position) of one spatial dimension that meet an
// element of the input, and not padding or a hole of the dilated input.
int64_t ValidPositions(int64_t bound, int64_t outputs, const WindowDim& w) {
  const int64_t dilated = bound == 0 ? 0 : (bound - 1) * w.base_dilation + 1;
  // Holes repeat with this period in the output position o. Inside a period the
  // position in the dilated input, o * stride + offset, is no hole for one o if
  // the offset is a multiple of `gcd`, else for none.
  const int64_t gcd = std::gcd(w.stride, w.base_dilation);
  const int64_t period = w.base_dilation / gcd;
  // The inverse of stride / gcd modulo the period, by Euclid.
  int64_t inverse = 0, next = 1, r = period, r_next = (w.stride / gcd) % period;
  while (r_next != 0) {
    const int64_t q = r / r_next;
    inverse -= q * next;
    std::swap(inverse, next);
    r -= q * r_next;
    std::swap(r, r_next);
  }
  if (period == 1) inverse = 0;
  inverse = (inverse % period + period) % period;
  int64_t valid = 0;
  for (int64_t k = 0; k < w.size; ++k) {
    const int64_t offset = k * w.window_dilation - w.padding_low;
    if (offset % gcd != 0) continue;
    const int64_t first = std::max<int64_t>(0, -FloorDiv(offset, w.stride));
    const int64_t last = std::min(outputs - 1, FloorDiv(dilated - 1 - offset, w.stride));
    // o = -offset / stride modulo the period; both factors are below 2^31.
    const int64_t wanted = ((-offset / gcd) % period + period) % period * inverse % period;
    const int64_t o = first + ((wanted - first) % period + period) % period;
    if (o <= last) valid += (last - o) / period + 1;
  }
  return valid;
}

}  // namespace

Result Convolution(const Instruction& i, const CalleeCosts&) {
  const pb::ConvolutionDimensionNumbers& n = i.attrs().convolution_dimension_numbers();
  const Shape &in = i.operand(0)->shape(), &kernel = i.operand(1)->shape(), &out = i.shape();
  int64_t fmas =
      Mul(Mul(out.dims[n.output_batch_dimension()], out.dims[n.output_feature_dimension()]),
          kernel.dims[n.kernel_input_feature_dimension()]);
  const std::vector<WindowDim> window = GetWindow(i);
  for (int s = 0; s < n.input_spatial_dimensions_size(); ++s) {
    if (window[s].size > kMaxWindow) {
      return NoRule(fmt::format("{}: a window of {} elements in one dimension", i.Describe(),
                                window[s].size));
    }
    fmas = Mul(fmas, ValidPositions(in.dims[n.input_spatial_dimensions(s)],
                                    out.dims[n.output_spatial_dimensions(s)], window[s]));
  }
  return Full(i, Mul(2, fmas));
}

Result Fft(const Instruction& i, const CalleeCosts&) {
  int64_t log2 = 0;
  for (int64_t length : i.attrs().fft_length()) log2 += CeilLog2(length);
  // A butterfly is a complex multiply-add: 4 multiply-adds of reals.
  return Full(i, Mul(2 * 4 * log2, i.shape().ElementCount()));
}

Result Cholesky(const Instruction& i, const CalleeCosts&) {
  const Shape& a = i.operand(0)->shape();
  return Full(i, Mul(a.ElementCount(), a.dims.empty() ? 1 : a.dims.back()) / 3);
}

Result TriangularSolve(const Instruction& i, const CalleeCosts&) {
  const Shape& a = i.operand(0)->shape();
  return Full(i, Mul(i.operand(1)->shape().ElementCount(), a.dims.empty() ? 1 : a.dims.back()));
}

namespace {

// Operations per 32-bit word (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC'11). Philox-4x32-10: 10 rounds of 2 high and 2 low products,
// 4 xors and 2 key additions for 4 words. Threefry-2x32-20: 20 rounds of an
// addition, a rotation (2 shifts and an or) and a xor, and 5 key injections of 3
// additions, for 2 words; 57.5, rounded up.
constexpr int64_t kPhilox = 10 * (2 + 2 + 4 + 2) / 4;
constexpr int64_t kThreefry = (20 * (1 + 3 + 1) + 5 * 3 + 1) / 2;

int64_t Words(const Shape& shape) { return CeilDiv(shape.ByteSize().value(), 4); }

}  // namespace

Result RngBitGenerator(const Instruction& i, const CalleeCosts&) {
  const int64_t per_word = i.attrs().rng_algorithm() == pb::RNG_THREE_FRY ? kThreefry : kPhilox;
  return Full(i, Mul(per_word, Words(i.shape())));
}

// Philox bits; a uniform number is scaled and shifted. Two of them make two normal
// ones by Box and Muller: a logarithm, a root and a sine or cosine each, a factor
// -2, a product, then scaled and shifted.
Result Rng(const Instruction& i, const CalleeCosts&) {
  const int64_t n = i.shape().ElementCount();
  const bool normal = i.attrs().distribution() == pb::RNG_NORMAL;
  const int64_t bits = Mul(kPhilox, Words(i.shape()));
  return Full(i, Add(bits, Mul(n, normal ? 2 + 3 + 2 : 2)), normal ? Mul(n, 3) : 0);
}

// A counter in memory, read, advanced and written back.
Result RngState(const Instruction& i, const CalleeCosts&) {
  Cost cost = Moves(i.shape().ByteSize());
  cost.flops = Flops(i.shape().ElementCount());
  return cost;
}

}  // namespace tpusim::hlo::cost_rules
