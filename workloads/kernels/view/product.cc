#include "workloads/kernels/view/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/ragged.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;
using hlo::Shape;

template <typename Dims>
bool Contains(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

std::optional<isa::NumberFormat> FormatOf(PrimitiveType type,
                                          const hlo::pb::PrecisionConfig& precision) {
  using enum PrimitiveType;
  const auto is = [type](std::initializer_list<PrimitiveType> any) {
    return std::ranges::find(any, type) != any.end();
  };
  if (is({kBf16, kPred})) return isa::NumberFormat::kBf16;
  if (is({kF16, kC64, kF32})) {  // f16 is no format of the arrays; it goes in as f32 does
    int highest = 0;
    for (int p : precision.operand_precision()) highest = std::max(highest, p);
    if (highest == 0) return isa::NumberFormat::kF32;
    return highest == 1 ? isa::NumberFormat::kF32High : isa::NumberFormat::kF32Highest;
  }
  if (is({kS8, kU8})) return isa::NumberFormat::kInt8;
  if (is({kS4, kU4, kS2, kU2})) return isa::NumberFormat::kInt4;
  if (is({kF8E5M2, kF8E4M3Fn, kF8E4M3, kF8E4M3B11Fnuz, kF8E5M2Fnuz, kF8E4M3Fnuz, kF8E3M4})) {
    return isa::NumberFormat::kFp8;
  }
  if (is({kS16, kU16, kS32, kU32, kS64, kU64})) return isa::NumberFormat::kInt32;
  if (is({kF64, kC128})) return isa::NumberFormat::kBf16;  // a row of instructions says of how many
  return std::nullopt;
}

int64_t RealProducts(PrimitiveType type, const configs::Instructions& instructions) {
  using enum PrimitiveType;
  if (type == kS64 || type == kU64) {  // words of int32, each with each
    const int64_t words = hlo::BitWidth(type) / hlo::BitWidth(kS32);
    return words * words;
  }
  const bool wide = type == kF64 || type == kC128;
  return (hlo::IsComplex(type) ? 4 : 1) *  // number: products of reals in one of complex numbers
         (wide ? static_cast<int64_t>(instructions.At("dot-of-doubles", "f64").mxu) : 1);
}

Product SizesOfDot(const Instruction& dot) {
  const hlo::DotDims dims = hlo::GetDotDims(dot);
  const Shape& lhs = dot.operand(0)->shape();
  const Shape& rhs = dot.operand(1)->shape();
  Product p;
  for (int64_t d = 0; d < lhs.rank(); ++d) {
    int64_t& extent = Contains(dims.lhs_batch, d)         ? p.batch
                      : Contains(dims.lhs_contracting, d) ? p.k
                                                          : p.m;
    extent *= lhs.dims[d];
  }
  for (int64_t d : hlo::FreeDims(rhs.rank(), dims.rhs_contracting, dims.rhs_batch)) {
    p.n *= rhs.dims[d];
  }
  return p;
}

// The dimension that falls into groups is a row, contracting or batch dimension
// of the left side. Group sizes are data: equal unless stated.
Product SizesOfRaggedDot(const Instruction& dot) {
  const hlo::DotDims dims = hlo::GetDotDims(dot);
  const auto& ragged = dot.attrs().ragged_dot_dimension_numbers();
  const Shape& rhs = dot.operand(1)->shape();
  const int64_t groups = std::max<int64_t>(1, dot.operand(2)->shape().ElementCount());
  Product p = SizesOfDot(dot);
  for (int64_t d : ragged.rhs_group_dimensions()) p.n /= std::max<int64_t>(1, rhs.dims[d]);
  const int64_t split = hlo::RaggedDimension(dot);
  if (Contains(dims.lhs_batch, split)) return p;
  const bool contracts = Contains(dims.lhs_contracting, split);
  int64_t& extent = contracts ? p.k : p.m;
  if (const auto stated = hlo::RaggedSizes(dot)) {
    // Other dimensions of the same kind multiply every row.
    const int64_t each =
        std::max<int64_t>(1, extent / std::max<int64_t>(1, dot.operand(0)->shape().dims[split]));
    std::vector<int64_t> sizes;
    for (int64_t size : *stated) {
      // Nobody multiplies the rows of an empty group; its zeros are written.
      if (size > 0 || contracts) sizes.push_back(size * each);
    }
    if (sizes.empty()) sizes.push_back(1);
    extent = std::max<int64_t>(1, *std::max_element(sizes.begin(), sizes.end()));
    if (std::count(sizes.begin(), sizes.end(), extent) == static_cast<int64_t>(sizes.size())) {
      p.batch *= static_cast<int64_t>(sizes.size());
    } else {
      p.groups = std::move(sizes);
      p.groups_of_k = contracts;
    }
    return p;
  }
  extent = CeilDiv(extent, groups);
  p.batch *= groups;
  return p;
}

// Returns the depth of the product that all taps of a window make, each with so many input features
// (the batch, where it is the weights' gradient): rows of the arrays that are fed, idle ones
// included. Found by compiling convolutions of 1 to 192 features and 1 to 9 x 9 taps for v5e, and
// gradients of 3 x 3 weights; passes are estimated cycles over rows, where the arrays decide:
//
//   fewer than the sublanes       all taps stand in the rows, one after the other
//   up to those of two registers  the taps of a row of the window do, each row in rows of its own
//   up to a quarter of the array  all taps, in whole sublanes (25 taps of 32: 6.5 passes)
//   more                          every tap has rows of its own (9 taps of 64: 9.6 passes)
int64_t DepthOfConvolution(double outer_taps, double inner_taps, int64_t features,
                           const target::Target& target) {
  const configs::Policy& policy = target.policy();
  const int64_t rows = target.chip().mxu.rows, sublanes = target.chip().vpu.sublanes;
  const int64_t taps = std::llround(outer_taps * inner_taps);
  if (taps == 1 || features < sublanes) return taps * features;
  const int64_t padded = RoundUp(features, sublanes);
  if (features <= policy.convolution_row_registers * sublanes) {
    const int64_t row = std::llround(inner_taps * static_cast<double>(padded));
    return std::llround(outer_taps * static_cast<double>(RoundUp(row, rows)));
  }
  if (static_cast<double>(features) <=
      policy.convolution_packed_share * static_cast<double>(rows)) {
    return taps * padded;
  }
  return taps * RoundUp(features, rows);
}

// Bytes of an array over those of the matrices as products see them.
double Density(const Shape& shape, int64_t rows, int64_t columns, int64_t batch,
               const target::Target& target) {
  const Bytes seen = target.PaddedSize(hlo::MakeShape(shape.element_type, {rows, columns}));
  return static_cast<double>(target.PaddedSize(shape).value()) /
         static_cast<double>((seen * batch).value());
}

// The TPU compiler has convolutions alone, and writes what else a product has in their spatial
// dimensions (dot_general of JAX, seen in modules of libtpu 0.0.42): an input that is as long as
// the window and one output contract; a window that moves over an input of one from end to end
// gives every position its own column; a window as long as the input, which is dilated so that it
// meets an element at a time, goes with it as a batch.
Role RoleOf(int64_t input, int64_t output, const hlo::WindowDim& w) {
  const bool padded = w.padding_low != 0 || w.padding_high != 0;
  if (w.size == 1 && w.stride == 1 && w.base_dilation == 1 && !padded) return Role::kRows;
  if (output == 1 && input == w.size && w.base_dilation == 1 && w.window_dilation == 1 && !padded) {
    return Role::kDepth;
  }
  if (input == 1 && output == w.size && w.stride == 1 && w.window_dilation == 1 &&
      w.padding_low == w.size - 1 && w.padding_high == w.size - 1) {
    return Role::kColumns;
  }
  if (input == w.size && output == w.size && w.base_dilation == w.size && w.stride == w.size - 1 &&
      !padded) {
    return Role::kBatch;
  }
  return Role::kWindow;
}

// Returns the product that a convolution without a window that moves is.
std::optional<Product> SizesOfProductAsConvolution(const Instruction& conv) {
  const auto& numbers = conv.attrs().convolution_dimension_numbers();
  const Shape& kernel = conv.operand(1)->shape();
  const Shape& out = conv.shape();
  if (hlo::FeatureGroupCount(conv) * hlo::BatchGroupCount(conv) > 1) return std::nullopt;
  Product p;
  p.m = out.dims[numbers.output_batch_dimension()];
  p.n = out.dims[numbers.output_feature_dimension()];
  p.k = kernel.dims[numbers.kernel_input_feature_dimension()];
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(conv);
  const std::vector<Role> roles = RolesOfPositions(conv);
  bool moves = true;  // as far as it is known, one position after the other, as images have them
  for (int s = 0; s < numbers.output_spatial_dimensions_size(); ++s) {
    const int64_t outputs = out.dims[numbers.output_spatial_dimensions(s)];
    moves = moves && window[s].size == 1;
    switch (roles[static_cast<size_t>(s)]) {
      case Role::kBatch:
        p.batch *= outputs;
        break;
      case Role::kRows:
        p.m *= outputs;
        break;
      case Role::kColumns:
        p.n *= outputs;
        break;
      case Role::kDepth:
        p.k *= window[s].size;
        break;
      case Role::kWindow:
        return std::nullopt;
    }
  }
  if (moves) return std::nullopt;
  return p;
}

Product SizesOfConvolution(const Instruction& conv, const target::Target& target) {
  const auto& numbers = conv.attrs().convolution_dimension_numbers();
  const Shape& in = conv.operand(0)->shape();
  const Shape& kernel = conv.operand(1)->shape();
  const Shape& out = conv.shape();
  if (const std::optional<Product> product = SizesOfProductAsConvolution(conv)) return *product;
  const int64_t groups = hlo::FeatureGroupCount(conv) * hlo::BatchGroupCount(conv);
  Product p;
  p.batch = groups;
  p.n = CeilDiv(out.dims[numbers.output_feature_dimension()], groups);
  p.m = out.dims[numbers.output_batch_dimension()];
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(conv);
  double outer_taps = 1, inner_taps = 1;  // those of the last spatial dimension and the others
  for (int s = 0; s < numbers.output_spatial_dimensions_size(); ++s) {
    const int64_t outputs = out.dims[numbers.output_spatial_dimensions(s)];
    const hlo::WindowDim& w = window[s];
    p.m *= outputs;
    // Taps over holes of a dilated input are left out.
    outer_taps *= inner_taps;
    inner_taps = std::max(1.0, static_cast<double>(w.size) / static_cast<double>(w.base_dilation));
    if (s == 0) {
      p.halo_rows = std::max<int64_t>(0, (w.size - 1) * w.window_dilation + 1 - w.stride);
    } else {
      p.row_elements *= outputs;
    }
  }
  const int64_t features = kernel.dims[numbers.kernel_input_feature_dimension()];
  p.packs_taps = features <= target.policy().convolution_row_registers * target.chip().vpu.sublanes;
  p.k = DepthOfConvolution(outer_taps, inner_taps, features, target);
  p.lhs_density = Density(in, p.m, p.k, p.batch, target);
  p.rhs_density = Density(kernel, p.k, p.n, p.batch, target);
  return p;
}

}  // namespace

std::vector<Role> RolesOfPositions(const Instruction& product) {
  std::vector<Role> roles;
  if (product.opcode() != Opcode::kConvolution) return roles;
  const auto& numbers = product.attrs().convolution_dimension_numbers();
  const std::vector<int64_t>& in = product.operand(0)->shape().dims;
  const std::vector<int64_t>& out = product.shape().dims;
  const std::vector<hlo::WindowDim> window = hlo::GetWindow(product);
  for (int s = 0; s < numbers.output_spatial_dimensions_size(); ++s) {
    roles.push_back(RoleOf(in[numbers.input_spatial_dimensions(s)],
                           out[numbers.output_spatial_dimensions(s)], window[s]));
  }
  return roles;
}

int64_t AllRows(const Product& p) {
  if (p.groups.empty() || p.groups_of_k) return p.m;
  return std::accumulate(p.groups.begin(), p.groups.end(), int64_t{0});
}

int64_t AllDepth(const Product& p) {
  if (p.groups.empty() || !p.groups_of_k) return p.k;
  return std::accumulate(p.groups.begin(), p.groups.end(), int64_t{0});
}

namespace {

// Whether the value is computed from another one.
bool IsComputedFrom(const Instruction& value, const Instruction& other,
                    std::unordered_set<const Instruction*>& seen) {
  return std::ranges::any_of(value.operands(), [&](const Instruction* o) {
    return o == &other || (seen.insert(o).second && IsComputedFrom(*o, other, seen));
  });
}

}  // namespace

const Instruction* OuterProduct(std::span<const Instruction* const> members) {
  const Instruction* outer = nullptr;
  for (const Instruction* m : members) {
    if (!IsProduct(m->opcode())) continue;
    std::unordered_set<const Instruction*> seen;
    if (outer == nullptr || IsComputedFrom(*m, *outer, seen)) outer = m;
  }
  return outer;
}

const Instruction* ProductIn(const Instruction& i) {
  if (hlo::IsProduct(i.opcode())) return &i;
  if (i.opcode() != Opcode::kFusion) return nullptr;
  const std::vector<Instruction*> members = i.called()[0]->PostOrder();
  return OuterProduct(std::vector<const Instruction*>(members.begin(), members.end()));
}

bool RunsOnVectorUnits(const Instruction& product) {
  const auto is_empty = [](const hlo::Shape& shape) {
    return shape.IsArray() && shape.ElementCount() == 0;
  };
  if (is_empty(product.shape()) || is_empty(product.operand(0)->shape()) ||
      is_empty(product.operand(1)->shape())) {
    return true;  // at most zeros are written
  }
  if (product.opcode() == Opcode::kDot) {
    const Product p = SizesOfDot(product);
    return p.m == 1 || p.n == 1;
  }
  if (product.opcode() != Opcode::kConvolution) return false;
  const auto& numbers = product.attrs().convolution_dimension_numbers();
  const int64_t features =
      product.operand(1)->shape().dims[numbers.kernel_input_feature_dimension()];
  return features == 1 && hlo::FeatureGroupCount(product) > 1;
}

absl::StatusOr<Product> ProductOf(const Instruction& instruction, const target::Target& target) {
  Product p;
  switch (instruction.opcode()) {
    case Opcode::kDot:
      p = SizesOfDot(instruction);
      break;
    case Opcode::kRaggedDot:
      p = SizesOfRaggedDot(instruction);
      break;
    case Opcode::kConvolution:
      p = SizesOfConvolution(instruction, target);
      break;
    default:
      TPUSIM_CHECK(false, "only dots and convolutions are products");
  }
  // The wider operand decides.
  const PrimitiveType lhs = instruction.operand(0)->shape().element_type;
  const PrimitiveType rhs = instruction.operand(1)->shape().element_type;
  const PrimitiveType type = hlo::BitWidth(lhs) >= hlo::BitWidth(rhs) ? lhs : rhs;
  const auto format = FormatOf(type, instruction.attrs().precision_config());
  if (!format) {
    return NoRule(fmt::format("no kernel for {}: the matrix unit has no rule for {} operands",
                              instruction.Describe(), hlo::PrimitiveTypeName(type)));
  }
  p.format = *format;
  p.repeats = RealProducts(type, target.instructions());
  return p;
}

Product Exchanged(const Product& product) {
  Product p = product;
  std::swap(p.m, p.n);
  std::swap(p.lhs_density, p.rhs_density);
  return p;
}

// Its window is the positions of the other gradient, its outputs are the taps. These stand beside
// each other in the columns as those of a convolution in the rows.
std::optional<Product> TurnedGradient(const Instruction& conv, const Product& product,
                                      const target::Target& target) {
  if (conv.opcode() != Opcode::kConvolution) return std::nullopt;
  const auto& numbers = conv.attrs().convolution_dimension_numbers();
  const Shape& out = conv.shape();
  double positions = 1, outer_taps = 1, inner_taps = 1;
  for (const hlo::WindowDim& w : hlo::GetWindow(conv)) positions *= static_cast<double>(w.size);
  for (int64_t d : numbers.output_spatial_dimensions()) {
    outer_taps *= inner_taps;
    inner_taps = static_cast<double>(out.dims[d]);
  }
  if (product.batch > 1 || positions <= outer_taps * inner_taps) return std::nullopt;
  Product p = product;
  p.m = product.n;
  p.n = DepthOfConvolution(outer_taps, inner_taps, out.dims[numbers.output_batch_dimension()],
                           target);
  p.halo_rows = 0;
  p.row_elements = 1;
  p.lhs_density = Density(conv.operand(1)->shape(), p.m, p.k, 1, target);
  p.rhs_density = Density(conv.operand(0)->shape(), p.k, p.n, 1, target);
  return p;
}

}  // namespace tpusim::kernels
