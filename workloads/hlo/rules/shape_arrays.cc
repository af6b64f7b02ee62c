// Result shapes of what rearranges elements or takes some of them.
#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/shape_rules.h"

namespace tpusim::hlo::shape_rules {
namespace {

// No dimension can be larger, and a few of them add up without overflow.
constexpr int64_t kMaxSize = int64_t{1} << 50;

}  // namespace

Result Broadcast(const Instruction& i) {
  const Dims dims = Dimensions(i);
  const Shape& in = In(i, 0);
  TPUSIM_REQUIRE(i.shape().IsArray(), "result is no array");
  TPUSIM_REQUIRE(dims.size() == in.dims.size() && AreDims(dims, i.shape().rank()),
                 "dimensions {{{}}} do not map {} into {}", fmt::join(dims, ","), in.ToString(),
                 i.shape().ToString());
  for (size_t n = 0; n < dims.size(); ++n) {
    TPUSIM_REQUIRE(i.shape().dims[dims[n]] == in.dims[n],
                   "dimension {} of {} does not map to {} of {}", n, in.ToString(), dims[n],
                   i.shape().ToString());
  }
  return MakeShape(in.element_type, i.shape().dims);
}

Result Reshape(const Instruction& i) {
  TPUSIM_REQUIRE(i.shape().IsArray() && In(i, 0).ElementCount() == i.shape().ElementCount(),
                 "cannot reshape {} to {}", In(i, 0).ToString(), i.shape().ToString());
  return MakeShape(In(i, 0).element_type, i.shape().dims);
}

// A bitcast gives the same bytes another name. Tiles pad, so that sizes tell only where there are
// none.
Result Bitcast(const Instruction& i) {
  const Shape& in = In(i, 0);
  const bool plain = in.IsArray() && i.shape().IsArray() && in.layout.tiles.empty() &&
                     i.shape().layout.tiles.empty();
  TPUSIM_REQUIRE(!plain || in.ByteSize() == i.shape().ByteSize(), "{} and {} differ in size",
                 in.ToString(), i.shape().ToString());
  return i.shape();
}

// Elements of n times the width take a minor dimension of n with them, and give
// one when they are split.
Result BitcastConvert(const Instruction& i) {
  const Shape& in = In(i, 0);
  const int64_t from = BitWidth(in.element_type), to = BitWidth(OwnType(i));
  TPUSIM_REQUIRE(i.shape().IsArray() && from > 0 && to > 0, "cannot convert {} to {}",
                 in.ToString(), i.shape().ToString());
  Dims out = in.dims;
  if (from > to) {
    TPUSIM_REQUIRE(from % to == 0, "{} does not split into {}", in.ToString(),
                   PrimitiveTypeName(OwnType(i)));
    out.push_back(from / to);
  } else if (from < to) {
    TPUSIM_REQUIRE(to % from == 0 && !out.empty() && out.back() == to / from,
                   "the minor dimension of {} does not make one {}", in.ToString(),
                   PrimitiveTypeName(OwnType(i)));
    out.pop_back();
  }
  return MakeShape(OwnType(i), out);
}

Result Transpose(const Instruction& i) {
  const Dims perm = Dimensions(i);
  const Shape& in = In(i, 0);
  TPUSIM_REQUIRE(perm.size() == in.dims.size() && AreDims(perm, in.rank()),
                 "{{{}}} is no permutation of the dimensions of {}", fmt::join(perm, ","),
                 in.ToString());
  Dims out;
  for (int64_t d : perm) out.push_back(in.dims[d]);
  return MakeShape(in.element_type, out);
}

Result Reverse(const Instruction& i) {
  TPUSIM_REQUIRE(AreDims(Dimensions(i), In(i, 0).rank()), "dimensions {{{}}} of {}",
                 fmt::join(Dimensions(i), ","), In(i, 0).ToString());
  return In(i, 0);
}

Result Slice(const Instruction& i) {
  const std::vector<SliceDim> slice = GetSlice(i);
  const Shape& in = In(i, 0);
  TPUSIM_REQUIRE(slice.size() == in.dims.size(), "slice of rank {} of {}", slice.size(),
                 in.ToString());
  Dims out;
  for (size_t d = 0; d < slice.size(); ++d) {
    const auto& [start, limit, stride] = slice[d];
    TPUSIM_REQUIRE(start >= 0 && start <= limit && limit <= in.dims[d] && stride > 0,
                   "slice [{}:{}:{}] of dimension {} of {}", start, limit, stride, d,
                   in.ToString());
    out.push_back((limit - start) / stride + ((limit - start) % stride != 0));
  }
  return MakeShape(in.element_type, out);
}

Result DynamicSlice(const Instruction& i) {
  const Dims sizes = DynamicSliceSizes(i);
  const Shape& in = In(i, 0);
  TPUSIM_REQUIRE(sizes.size() == in.dims.size(), "sizes {{{}}} of {}", fmt::join(sizes, ","),
                 in.ToString());
  RETURN_IF_ERROR(CheckIndices(i, 1, in.rank()));
  for (size_t d = 0; d < sizes.size(); ++d) {
    TPUSIM_REQUIRE(sizes[d] >= 0 && sizes[d] <= in.dims[d], "size {} of dimension {} of {}",
                   sizes[d], d, in.ToString());
  }
  return MakeShape(in.element_type, sizes);
}

Result DynamicUpdateSlice(const Instruction& i) {
  const Shape &in = In(i, 0), &update = In(i, 1);
  TPUSIM_REQUIRE(update.rank() == in.rank() && Compatible(update.element_type, in.element_type),
                 "update {} of {}", update.ToString(), in.ToString());
  RETURN_IF_ERROR(CheckIndices(i, 2, in.rank()));
  for (int64_t d = 0; d < in.rank(); ++d) {
    TPUSIM_REQUIRE(update.dims[d] <= in.dims[d], "update {} of {}", update.ToString(),
                   in.ToString());
  }
  return in;
}

Result Concatenate(const Instruction& i) {
  TPUSIM_REQUIRE(!i.operands().empty(), "no operands");
  const int64_t dim = OnlyDimension(i);
  Shape out = MakeShape(In(i, 0).element_type, In(i, 0).dims);
  TPUSIM_REQUIRE(InRange(dim, out.rank()), "dimension {} of {}", dim, out.ToString());
  for (size_t n = 1; n < i.operands().size(); ++n) {
    Dims dims = In(i, n).dims;
    TPUSIM_REQUIRE(Compatible(In(i, n).element_type, out.element_type), "{} and {}",
                   In(i, 0).ToString(), In(i, n).ToString());
    TPUSIM_REQUIRE(static_cast<int64_t>(dims.size()) == out.rank(), "{} and {}",
                   In(i, 0).ToString(), In(i, n).ToString());
    // Arrays have at most 2^48 elements: the sum of any operands that fit memory
    // does not overflow, unless they are the same ones over and over.
    TPUSIM_REQUIRE(out.dims[dim] <= kMaxSize - dims[dim], "dimension {} grows too large", dim);
    out.dims[dim] += dims[dim];
    dims[dim] = out.dims[dim];
    TPUSIM_REQUIRE(dims == out.dims, "{} and {} differ beside dimension {}", In(i, 0).ToString(),
                   In(i, n).ToString(), dim);
  }
  return out;
}

Result Pad(const Instruction& i) {
  const std::vector<PaddingDim> padding = GetPadding(i);
  Shape out = MakeShape(In(i, 0).element_type, In(i, 0).dims);
  TPUSIM_REQUIRE(padding.size() == out.dims.size() && In(i, 1).IsScalar() &&
                     Compatible(In(i, 1).element_type, out.element_type),
                 "padding of rank {} of {}", padding.size(), out.ToString());
  for (size_t d = 0; d < padding.size(); ++d) {
    const auto& [low, high, interior] = padding[d];
    TPUSIM_REQUIRE(low > -kMaxSize && low < kMaxSize && high > -kMaxSize && high < kMaxSize &&
                       interior >= 0 && interior < kMaxSize / std::max<int64_t>(out.dims[d], 1),
                   "padding {}_{}_{}", low, high, interior);
    out.dims[d] += low + high + interior * std::max<int64_t>(out.dims[d] - 1, 0);
    TPUSIM_REQUIRE(out.dims[d] >= 0, "padding removes more than dimension {} of {}", d,
                   In(i, 0).ToString());
  }
  return out;
}

Result Iota(const Instruction& i) {
  TPUSIM_REQUIRE(i.shape().IsArray() && InRange(OnlyDimension(i), i.shape().rank()),
                 "dimension {} of {}", OnlyDimension(i), i.shape().ToString());
  return i.shape();
}

// Sizes are static here: an array with a dynamic dimension is not imported.
Result GetDimensionSize(const Instruction& i) {
  TPUSIM_REQUIRE(InRange(OnlyDimension(i), In(i, 0).rank()), "dimension {} of {}", OnlyDimension(i),
                 In(i, 0).ToString());
  return MakeScalarShape(PrimitiveType::kS32);
}

Result SetDimensionSize(const Instruction& i) {
  TPUSIM_REQUIRE(InRange(OnlyDimension(i), In(i, 0).rank()), "dimension {} of {}", OnlyDimension(i),
                 In(i, 0).ToString());
  TPUSIM_REQUIRE(SameDims(In(i, 1), MakeScalarShape(PrimitiveType::kS32)), "size {} is no s32[]",
                 In(i, 1).ToString());
  return In(i, 0);
}

}  // namespace tpusim::hlo::shape_rules
