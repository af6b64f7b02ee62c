// Result shapes of products, convolutions, transforms, solvers and random bits.
#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/shape_rules.h"

namespace tpusim::hlo::shape_rules {

namespace {

// The result of a product of two arrays in dimension numbers that XLA also
// checks for ragged and scaled products. `rhs_only` are dimensions of the right
// side that do not reach the result.
absl::StatusOr<Dims> Product(const Shape& lhs, const Shape& rhs, const DotDims& dims,
                             const Dims& rhs_only) {
  const auto join = [](Dims a, const Dims& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  TPUSIM_REQUIRE(
      AreDims(join(dims.lhs_contracting, dims.lhs_batch), lhs.rank()) &&
          AreDims(join(join(dims.rhs_contracting, dims.rhs_batch), rhs_only), rhs.rank()),
      "dimension numbers do not fit {} and {}", lhs.ToString(), rhs.ToString());
  const auto same_sizes = [&](const Dims& a, const Dims& b) {
    if (a.size() != b.size()) return false;
    for (size_t n = 0; n < a.size(); ++n) {
      if (lhs.dims[a[n]] != rhs.dims[b[n]]) return false;
    }
    return true;
  };
  TPUSIM_REQUIRE(same_sizes(dims.lhs_contracting, dims.rhs_contracting) &&
                     same_sizes(dims.lhs_batch, dims.rhs_batch),
                 "contracting or batch sizes of {} and {} differ", lhs.ToString(), rhs.ToString());
  Dims out;
  for (int64_t d : dims.lhs_batch) out.push_back(lhs.dims[d]);
  for (int64_t d : FreeDims(lhs.rank(), dims.lhs_contracting, dims.lhs_batch)) {
    out.push_back(lhs.dims[d]);
  }
  for (int64_t d : FreeDims(rhs.rank(), dims.rhs_contracting, dims.rhs_batch)) {
    if (!Contains(rhs_only, d)) out.push_back(rhs.dims[d]);
  }
  return out;
}

}  // namespace

Result Dot(const Instruction& i) {
  TPUSIM_REQUIRE(i.shape().IsArray(), "result is no array");
  ASSIGN_OR_RETURN(const Dims out, Product(In(i, 0), In(i, 1), GetDotDims(i), {}));
  return MakeShape(OwnType(i), out);
}

// One dimension of the left side is cut into runs, whose lengths are operand 2.
// With rows of the result ragged, each run meets a matrix of its own; a ragged
// contraction gives one result per run; a ragged batch is only cut short.
Result RaggedDot(const Instruction& i) {
  TPUSIM_REQUIRE(i.shape().IsArray(), "result is no array");
  const pb::RaggedDotDimensionNumbers& n = i.attrs().ragged_dot_dimension_numbers();
  const DotDims dims = GetDotDims(i);
  const Shape &lhs = In(i, 0), &sizes = In(i, 2);
  TPUSIM_REQUIRE(
      n.lhs_ragged_dimensions_size() == 1 && InRange(n.lhs_ragged_dimensions(0), lhs.rank()),
      "{} ragged dimensions of {}", n.lhs_ragged_dimensions_size(), lhs.ToString());
  const int64_t ragged = n.lhs_ragged_dimensions(0);
  const bool contracts = Contains(dims.lhs_contracting, ragged);
  const bool rows = !contracts && !Contains(dims.lhs_batch, ragged);
  const Dims groups(n.rhs_group_dimensions().begin(), n.rhs_group_dimensions().end());
  TPUSIM_REQUIRE(groups.size() == (rows ? 1 : 0) && AreDims(groups, In(i, 1).rank()),
                 "group dimensions {{{}}} of {}", fmt::join(groups, ","), In(i, 1).ToString());
  TPUSIM_REQUIRE(IsIntegral(sizes.element_type) && sizes.rank() >= 1, "group sizes {}",
                 sizes.ToString());
  TPUSIM_REQUIRE(!rows || In(i, 1).dims[groups[0]] == sizes.dims.back(),
                 "group sizes {} for the groups of {}", sizes.ToString(), In(i, 1).ToString());
  ASSIGN_OR_RETURN(Dims out, Product(lhs, In(i, 1), dims, groups));
  if (contracts) out.insert(out.begin(), sizes.dims.back());
  return MakeShape(OwnType(i), out);
}

// A dot whose operands have scales, one per block of each dimension.
Result ScaledDot(const Instruction& i) {
  TPUSIM_REQUIRE(i.shape().IsArray(), "result is no array");
  for (size_t n : {0, 1}) {
    const Shape &side = In(i, n), &scale = In(i, n + 2);
    bool fits = scale.IsScalar() || scale.rank() == side.rank();
    for (int64_t d = 0; fits && d < scale.rank(); ++d) {
      fits = scale.dims[d] > 0 ? side.dims[d] % scale.dims[d] == 0 : side.dims[d] == 0;
    }
    TPUSIM_REQUIRE(fits, "scales {} of {}", scale.ToString(), side.ToString());
  }
  ASSIGN_OR_RETURN(const Dims out, Product(In(i, 0), In(i, 1), GetDotDims(i), {}));
  return MakeShape(OwnType(i), out);
}

Result Convolution(const Instruction& i) {
  const pb::ConvolutionDimensionNumbers& n = i.attrs().convolution_dimension_numbers();
  const Shape &in = In(i, 0), &kernel = In(i, 1);
  const int64_t rank = in.rank(), spatial = n.input_spatial_dimensions_size();
  Dims in_dims = {n.input_batch_dimension(), n.input_feature_dimension()};
  Dims kernel_dims = {n.kernel_input_feature_dimension(), n.kernel_output_feature_dimension()};
  Dims out_dims = {n.output_batch_dimension(), n.output_feature_dimension()};
  in_dims.insert(in_dims.end(), n.input_spatial_dimensions().begin(),
                 n.input_spatial_dimensions().end());
  kernel_dims.insert(kernel_dims.end(), n.kernel_spatial_dimensions().begin(),
                     n.kernel_spatial_dimensions().end());
  out_dims.insert(out_dims.end(), n.output_spatial_dimensions().begin(),
                  n.output_spatial_dimensions().end());
  TPUSIM_REQUIRE(rank == spatial + 2 && kernel.rank() == rank && AreDims(in_dims, rank) &&
                     AreDims(kernel_dims, rank) && AreDims(out_dims, rank) &&
                     static_cast<int64_t>(in_dims.size()) == rank &&
                     kernel_dims.size() == in_dims.size() && out_dims.size() == in_dims.size(),
                 "dimension numbers do not fit {} and {}", in.ToString(), kernel.ToString());
  const int64_t features = FeatureGroupCount(i), batches = BatchGroupCount(i);
  TPUSIM_REQUIRE(in.dims[in_dims[1]] % features == 0 &&
                     in.dims[in_dims[1]] / features == kernel.dims[kernel_dims[0]],
                 "input features of {} and {} differ", in.ToString(), kernel.ToString());
  TPUSIM_REQUIRE(in.dims[in_dims[0]] % batches == 0, "batch of {} in {} groups", in.ToString(),
                 batches);
  TPUSIM_REQUIRE(features == 1 || batches == 1, "groups of features and of the batch");
  TPUSIM_REQUIRE(
      kernel.dims[kernel_dims[1]] % features == 0 && kernel.dims[kernel_dims[1]] % batches == 0,
      "output features of {} in {} groups", kernel.ToString(), std::max(features, batches));
  // A mask of zeros and ones goes with numbers of any kind: the TPU compiler leaves out the
  // conversion.
  TPUSIM_REQUIRE(Compatible(in.element_type, kernel.element_type) ||
                     (IsIntegral(in.element_type) && IsIntegral(kernel.element_type)) ||
                     in.element_type == PrimitiveType::kPred ||
                     kernel.element_type == PrimitiveType::kPred,
                 "types of {} and {}", in.ToString(), kernel.ToString());
  const std::vector<WindowDim> window = GetWindow(i);
  Dims bounds;
  for (int64_t s = 0; s < spatial; ++s) {
    bounds.push_back(in.dims[in_dims[s + 2]]);
    TPUSIM_REQUIRE(s < static_cast<int64_t>(window.size()) &&
                       window[s].size == kernel.dims[kernel_dims[s + 2]],
                   "window does not fit the kernel {}", kernel.ToString());
  }
  ASSIGN_OR_RETURN(const Dims positions, WindowedDims(bounds, window));
  Dims out(rank);
  out[out_dims[0]] = in.dims[in_dims[0]] / batches;
  out[out_dims[1]] = kernel.dims[kernel_dims[1]];
  for (int64_t s = 0; s < spatial; ++s) out[out_dims[s + 2]] = positions[s];
  return MakeShape(OwnType(i), out);
}

// Over the last dimensions. Real transforms know that half of the spectrum is the
// conjugate of the other half and keep n / 2 + 1 of the last one.
Result Fft(const Instruction& i) {
  const Shape& in = In(i, 0);
  const auto& lengths = i.attrs().fft_length();
  const int64_t first = in.rank() - lengths.size();
  TPUSIM_REQUIRE(!lengths.empty() && first >= 0, "{} transform lengths of {}", lengths.size(),
                 in.ToString());
  const pb::FftType type = i.attrs().fft_type();
  const bool to_half = type == pb::RFFT, from_half = type == pb::IRFFT;
  TPUSIM_REQUIRE(to_half ? IsFloating(in.element_type) : IsComplex(in.element_type), "{} of {}",
                 pb::FftType_Name(type), in.ToString());
  Dims out = in.dims;
  for (int d = 0; d < lengths.size(); ++d) {
    const bool half = from_half && d + 1 == lengths.size();
    TPUSIM_REQUIRE(
        lengths[d] >= 0 && in.dims[first + d] == (half ? lengths[d] / 2 + 1 : lengths[d]),
        "transform length {} of {}", lengths[d], in.ToString());
    out[first + d] = lengths[d];
  }
  if (to_half) out.back() = out.back() / 2 + 1;
  PrimitiveType result = in.element_type;
  if (to_half) {
    result = in.element_type == PrimitiveType::kF64 ? PrimitiveType::kC128 : PrimitiveType::kC64;
  } else if (from_half) {
    result = in.element_type == PrimitiveType::kC128 ? PrimitiveType::kF64 : PrimitiveType::kF32;
  }
  return MakeShape(result, out);
}

Result Cholesky(const Instruction& i) {
  const Shape& in = In(i, 0);
  TPUSIM_REQUIRE(in.rank() >= 2 && in.dims[in.rank() - 1] == in.dims[in.rank() - 2],
                 "{} is no square matrix", in.ToString());
  return in;
}

Result TriangularSolve(const Instruction& i) {
  const Shape &a = In(i, 0), &b = In(i, 1);
  const int64_t rank = a.rank();
  TPUSIM_REQUIRE(rank >= 2 && a.dims[rank - 1] == a.dims[rank - 2], "{} is no square matrix",
                 a.ToString());
  const bool left = i.attrs().triangular_solve_options().left_side();
  TPUSIM_REQUIRE(b.rank() == rank && b.dims[rank - (left ? 2 : 1)] == a.dims[rank - 1] &&
                     std::equal(a.dims.begin(), a.dims.end() - 2, b.dims.begin()),
                 "{} solves nothing for {}", a.ToString(), b.ToString());
  return b;
}

// Two scalars: the limits of a uniform, mean and deviation of a normal distribution.
Result Rng(const Instruction& i) {
  TPUSIM_REQUIRE(i.operands().size() == 2 && i.shape().IsArray(), "{} operands give {}",
                 i.operands().size(), i.shape().ToString());
  for (size_t n : {0, 1}) {
    TPUSIM_REQUIRE(In(i, n).IsScalar() && Compatible(In(i, n).element_type, OwnType(i)),
                   "parameter {} is {}", n, In(i, n).ToString());
  }
  return i.shape();
}

// The state, in whatever words it has.
Result RngState(const Instruction& i) {
  TPUSIM_REQUIRE(i.operands().empty() && i.shape().IsArray(), "{} operands give {}",
                 i.operands().size(), i.shape().ToString());
  return i.shape();
}

// (new state, bits), or the bits alone.
Result RngBitGenerator(const Instruction& i) {
  const Shape& own = i.shape();
  TPUSIM_REQUIRE(IsIntegral(In(i, 0).element_type) && In(i, 0).rank() <= 1, "state {}",
                 In(i, 0).ToString());
  if (!own.IsTuple()) {
    TPUSIM_REQUIRE(own.IsArray() && IsIntegral(own.element_type), "bits of type {}",
                   own.ToString());
    return own;
  }
  TPUSIM_REQUIRE(
      own.tuple.size() == 2 && own.tuple[1].IsArray() && IsIntegral(own.tuple[1].element_type),
      "{} is not (state, bits)", own.ToString());
  return MakeTupleShape({In(i, 0), own.tuple[1]});
}

}  // namespace tpusim::hlo::shape_rules
