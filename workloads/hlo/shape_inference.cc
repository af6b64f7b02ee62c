#include "workloads/hlo/shape_inference.h"

#include <algorithm>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/attributes.h"

namespace tpusim::hlo {
namespace {

using Dims = std::vector<int64_t>;
using Result = absl::StatusOr<Shape>;

#define REQUIRE(condition, ...) \
  if (!(condition)) return UserError(fmt::format(__VA_ARGS__))

bool InRange(int64_t d, int64_t rank) { return d >= 0 && d < rank; }

// Every element a dimension of `rank`, none twice.
bool AreDims(const Dims& dims, int64_t rank) {
  Dims sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
         std::all_of(sorted.begin(), sorted.end(), [&](int64_t d) { return InRange(d, rank); });
}

bool Contains(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

const Shape& In(const Instruction& i, size_t n) { return i.operand(n)->shape(); }
PrimitiveType OwnType(const Instruction& i) { return i.shape().element_type; }

// One shape, or a tuple of several: how variadic ops return.
Shape OneOrTuple(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes[0]) : MakeTupleShape(std::move(shapes));
}

std::vector<Shape> OperandShapes(const Instruction& i, size_t count) {
  std::vector<Shape> shapes;
  for (size_t n = 0; n < count; ++n) shapes.push_back(In(i, n));
  return shapes;
}

absl::Status RequireArrays(const Instruction& i) {
  for (size_t n = 0; n < i.operands().size(); ++n) {
    REQUIRE(In(i, n).IsArray(), "operand {} ({}) is no array", n, i.operand(n)->name());
  }
  return absl::OkStatus();
}

Result Elementwise(const Instruction& i) {
  const Opcode op = i.opcode();
  // The scalars of select and clamp may stand for whole arrays.
  const bool may_be_scalar = op == Opcode::kSelect || op == Opcode::kClamp;
  const Shape& main = may_be_scalar ? In(i, 1) : In(i, 0);
  for (size_t n = 0; n < i.operands().size(); ++n) {
    const bool scalar_ok = may_be_scalar && n != 1 && !(op == Opcode::kSelect && n == 2);
    REQUIRE(In(i, n).dims == main.dims || (scalar_ok && In(i, n).IsScalar()),
            "operand {} has shape {}, not {}", n, In(i, n).ToString(), main.ToString());
    const PrimitiveType type = In(i, n).element_type;
    const bool is_predicate = op == Opcode::kSelect && n == 0;
    REQUIRE(!is_predicate || type == PrimitiveType::kPred, "predicate of type {}",
            PrimitiveTypeName(type));
    REQUIRE(is_predicate || op == Opcode::kStochasticConvert || type == main.element_type ||
                (IsFloating(type) && IsFloating(main.element_type)),
            "operand {} has type {}, not {}", n, PrimitiveTypeName(type),
            PrimitiveTypeName(main.element_type));
  }
  Shape result = MakeShape(main.element_type, main.dims);
  switch (op) {
    case Opcode::kCompare:
    case Opcode::kIsFinite:
      result.element_type = PrimitiveType::kPred;
      break;
    case Opcode::kConvert:
    case Opcode::kStochasticConvert:
    case Opcode::kComplex:
    case Opcode::kReal:
    case Opcode::kImag:
    case Opcode::kAbs:  // of complex numbers
      result.element_type = OwnType(i);
      break;
    default:
      if (IsFloating(result.element_type) && IsFloating(OwnType(i))) {
        result.element_type = OwnType(i);
      }
  }
  return result;
}

Result Dot(const Instruction& i) {
  const DotDims dims = GetDotDims(i);
  const Shape &lhs = In(i, 0), &rhs = In(i, 1);
  const auto join = [](Dims a, const Dims& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  REQUIRE(AreDims(join(dims.lhs_contracting, dims.lhs_batch), lhs.rank()) &&
              AreDims(join(dims.rhs_contracting, dims.rhs_batch), rhs.rank()),
          "dimension numbers do not fit {} and {}", lhs.ToString(), rhs.ToString());
  const auto same_sizes = [&](const Dims& a, const Dims& b) {
    if (a.size() != b.size()) return false;
    for (size_t n = 0; n < a.size(); ++n) {
      if (lhs.dims[a[n]] != rhs.dims[b[n]]) return false;
    }
    return true;
  };
  REQUIRE(same_sizes(dims.lhs_contracting, dims.rhs_contracting) &&
              same_sizes(dims.lhs_batch, dims.rhs_batch),
          "contracting or batch sizes of {} and {} differ", lhs.ToString(), rhs.ToString());
  Dims out;
  for (int64_t d : dims.lhs_batch) out.push_back(lhs.dims[d]);
  for (int64_t d : FreeDims(lhs.rank(), dims.lhs_contracting, dims.lhs_batch)) {
    out.push_back(lhs.dims[d]);
  }
  for (int64_t d : FreeDims(rhs.rank(), dims.rhs_contracting, dims.rhs_batch)) {
    out.push_back(rhs.dims[d]);
  }
  return MakeShape(OwnType(i), out);
}

Result Broadcast(const Instruction& i) {
  const Dims dims = Dimensions(i);
  const Shape& in = In(i, 0);
  REQUIRE(i.shape().IsArray(), "result is no array");
  REQUIRE(dims.size() == in.dims.size() && AreDims(dims, i.shape().rank()),
          "dimensions {{{}}} do not map {} into {}", fmt::join(dims, ","), in.ToString(),
          i.shape().ToString());
  for (size_t n = 0; n < dims.size(); ++n) {
    REQUIRE(i.shape().dims[dims[n]] == in.dims[n], "dimension {} of {} does not map to {} of {}", n,
            in.ToString(), dims[n], i.shape().ToString());
  }
  return MakeShape(in.element_type, i.shape().dims);
}

Result Reshape(const Instruction& i) {
  REQUIRE(i.shape().IsArray() && In(i, 0).ElementCount() == i.shape().ElementCount(),
          "cannot reshape {} to {}", In(i, 0).ToString(), i.shape().ToString());
  return MakeShape(In(i, 0).element_type, i.shape().dims);
}

Result BitcastConvert(const Instruction& i) {
  REQUIRE(i.shape().IsArray() && In(i, 0).ByteSize() == i.shape().ByteSize(),
          "{} and {} differ in size", In(i, 0).ToString(), i.shape().ToString());
  return i.shape();
}

Result Transpose(const Instruction& i) {
  const Dims perm = Dimensions(i);
  const Shape& in = In(i, 0);
  REQUIRE(perm.size() == in.dims.size() && AreDims(perm, in.rank()),
          "{{{}}} is no permutation of the dimensions of {}", fmt::join(perm, ","), in.ToString());
  Dims out;
  for (int64_t d : perm) out.push_back(in.dims[d]);
  return MakeShape(in.element_type, out);
}

Result Reverse(const Instruction& i) {
  REQUIRE(AreDims(Dimensions(i), In(i, 0).rank()), "dimensions {{{}}} of {}",
          fmt::join(Dimensions(i), ","), In(i, 0).ToString());
  return In(i, 0);
}

// Inputs of one shape, then as many scalar initial values.
absl::Status CheckReduction(const Instruction& i) {
  const size_t n = i.operands().size() / 2;
  REQUIRE(n > 0 && i.operands().size() == 2 * n, "{} operands", i.operands().size());
  for (size_t k = 0; k < n; ++k) {
    REQUIRE(In(i, k).dims == In(i, 0).dims, "inputs {} and {}", In(i, 0).ToString(),
            In(i, k).ToString());
    REQUIRE(In(i, n + k).IsScalar(), "initial value {} is no scalar", In(i, n + k).ToString());
  }
  return absl::OkStatus();
}

Result Reduce(const Instruction& i) {
  RETURN_IF_ERROR(CheckReduction(i));
  const Dims dims = Dimensions(i);
  REQUIRE(AreDims(dims, In(i, 0).rank()), "dimensions {{{}}} of {}", fmt::join(dims, ","),
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
  REQUIRE(window.size() == bounds.size(), "window of rank {} over rank {}", window.size(),
          bounds.size());
  constexpr int64_t kMax = int64_t{1} << 31;  // keeps the arithmetic far from overflow
  Dims out;
  for (size_t d = 0; d < bounds.size(); ++d) {
    const WindowDim& w = window[d];
    REQUIRE(w.size >= 0 && w.size < kMax && w.stride > 0 && w.stride < kMax &&
                w.window_dilation > 0 && w.window_dilation < kMax && w.base_dilation > 0 &&
                w.base_dilation < kMax && std::abs(w.padding_low) < kMax &&
                std::abs(w.padding_high) < kMax && bounds[d] < kMax,
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
  REQUIRE(rank == spatial + 2 && kernel.rank() == rank && AreDims(in_dims, rank) &&
              AreDims(kernel_dims, rank) && AreDims(out_dims, rank) &&
              static_cast<int64_t>(in_dims.size()) == rank &&
              kernel_dims.size() == in_dims.size() && out_dims.size() == in_dims.size(),
          "dimension numbers do not fit {} and {}", in.ToString(), kernel.ToString());
  const int64_t features = FeatureGroupCount(i), batches = BatchGroupCount(i);
  REQUIRE(in.dims[in_dims[1]] % features == 0 &&
              in.dims[in_dims[1]] / features == kernel.dims[kernel_dims[0]],
          "input features of {} and {} differ", in.ToString(), kernel.ToString());
  REQUIRE(in.dims[in_dims[0]] % batches == 0, "batch of {} in {} groups", in.ToString(), batches);
  const std::vector<WindowDim> window = GetWindow(i);
  Dims bounds;
  for (int64_t s = 0; s < spatial; ++s) {
    bounds.push_back(in.dims[in_dims[s + 2]]);
    REQUIRE(s < static_cast<int64_t>(window.size()) &&
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

Result Slice(const Instruction& i) {
  const std::vector<SliceDim> slice = GetSlice(i);
  const Shape& in = In(i, 0);
  REQUIRE(slice.size() == in.dims.size(), "slice of rank {} of {}", slice.size(), in.ToString());
  Dims out;
  for (size_t d = 0; d < slice.size(); ++d) {
    const auto& [start, limit, stride] = slice[d];
    REQUIRE(start >= 0 && start <= limit && limit <= in.dims[d] && stride > 0,
            "slice [{}:{}:{}] of dimension {} of {}", start, limit, stride, d, in.ToString());
    out.push_back((limit - start) / stride + ((limit - start) % stride != 0));
  }
  return MakeShape(in.element_type, out);
}

// Indices are one scalar per dimension, or (older) one vector.
absl::Status CheckIndices(const Instruction& i, size_t first) {
  const int64_t count = static_cast<int64_t>(i.operands().size() - first);
  const int64_t rank = In(i, 0).rank();
  const bool vector = count == 1 && In(i, first).rank() == 1;
  REQUIRE(vector ? In(i, first).dims[0] == rank : count == rank, "{} indices into {}", count,
          In(i, 0).ToString());
  return absl::OkStatus();
}

Result DynamicSlice(const Instruction& i) {
  const Dims sizes = DynamicSliceSizes(i);
  const Shape& in = In(i, 0);
  REQUIRE(sizes.size() == in.dims.size(), "sizes {{{}}} of {}", fmt::join(sizes, ","),
          in.ToString());
  RETURN_IF_ERROR(CheckIndices(i, 1));
  for (size_t d = 0; d < sizes.size(); ++d) {
    REQUIRE(sizes[d] >= 0 && sizes[d] <= in.dims[d], "size {} of dimension {} of {}", sizes[d], d,
            in.ToString());
  }
  return MakeShape(in.element_type, sizes);
}

Result DynamicUpdateSlice(const Instruction& i) {
  const Shape &in = In(i, 0), &update = In(i, 1);
  REQUIRE(update.rank() == in.rank(), "update {} of {}", update.ToString(), in.ToString());
  RETURN_IF_ERROR(CheckIndices(i, 2));
  for (int64_t d = 0; d < in.rank(); ++d) {
    REQUIRE(update.dims[d] <= in.dims[d], "update {} of {}", update.ToString(), in.ToString());
  }
  return in;
}

Result Concatenate(const Instruction& i) {
  REQUIRE(!i.operands().empty(), "no operands");
  const int64_t dim = OnlyDimension(i);
  Shape out = MakeShape(In(i, 0).element_type, In(i, 0).dims);
  REQUIRE(InRange(dim, out.rank()), "dimension {} of {}", dim, out.ToString());
  for (size_t n = 1; n < i.operands().size(); ++n) {
    Dims dims = In(i, n).dims;
    REQUIRE(static_cast<int64_t>(dims.size()) == out.rank(), "{} and {}", In(i, 0).ToString(),
            In(i, n).ToString());
    out.dims[dim] += dims[dim];
    dims[dim] = out.dims[dim];
    REQUIRE(dims == out.dims, "{} and {} differ beside dimension {}", In(i, 0).ToString(),
            In(i, n).ToString(), dim);
  }
  return out;
}

Result Pad(const Instruction& i) {
  const std::vector<PaddingDim> padding = GetPadding(i);
  Shape out = MakeShape(In(i, 0).element_type, In(i, 0).dims);
  REQUIRE(padding.size() == out.dims.size() && In(i, 1).IsScalar(), "padding of rank {} of {}",
          padding.size(), out.ToString());
  constexpr int64_t kMax = int64_t{1} << 40;
  for (size_t d = 0; d < padding.size(); ++d) {
    const auto& [low, high, interior] = padding[d];
    REQUIRE(std::abs(low) < kMax && std::abs(high) < kMax && interior >= 0 &&
                interior < kMax / std::max<int64_t>(out.dims[d], 1),
            "padding {}_{}_{}", low, high, interior);
    out.dims[d] += low + high + interior * std::max<int64_t>(out.dims[d] - 1, 0);
    REQUIRE(out.dims[d] >= 0, "padding removes more than dimension {} of {}", d,
            In(i, 0).ToString());
  }
  return out;
}

Result Iota(const Instruction& i) {
  REQUIRE(i.shape().IsArray() && InRange(OnlyDimension(i), i.shape().rank()), "dimension {} of {}",
          OnlyDimension(i), i.shape().ToString());
  return i.shape();
}

Result Gather(const Instruction& i) {
  const pb::GatherDimensionNumbers& n = i.attrs().gather_dimension_numbers();
  const Shape &in = In(i, 0), &indices = In(i, 1);
  const Dims offset(n.offset_dims().begin(), n.offset_dims().end());
  Dims dropped(n.collapsed_slice_dims().begin(), n.collapsed_slice_dims().end());
  dropped.insert(dropped.end(), n.operand_batching_dims().begin(), n.operand_batching_dims().end());
  const auto& sizes = i.attrs().gather_slice_sizes();
  REQUIRE(sizes.size() == in.rank() && AreDims(dropped, in.rank()) && n.index_vector_dim() >= 0 &&
              n.index_vector_dim() <= indices.rank(),
          "dimension numbers do not fit {} and {}", in.ToString(), indices.ToString());
  Dims window, batch;
  for (int64_t d = 0; d < in.rank(); ++d) {
    REQUIRE(sizes[d] >= 0 && sizes[d] <= in.dims[d], "slice size {} of {}", sizes[d],
            in.ToString());
    if (!Contains(dropped, d)) window.push_back(sizes[d]);
  }
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d != n.index_vector_dim()) batch.push_back(indices.dims[d]);
  }
  const int64_t rank = static_cast<int64_t>(window.size() + batch.size());
  REQUIRE(offset.size() == window.size() && AreDims(offset, rank), "offset dimensions {{{}}}",
          fmt::join(offset, ","));
  Dims out;
  for (int64_t d = 0, w = 0, b = 0; d < rank; ++d) {
    out.push_back(Contains(offset, d) ? window[w++] : batch[b++]);
  }
  return MakeShape(in.element_type, out);
}

Result TupleElement(const Instruction& i) {
  const int64_t index = i.attrs().tuple_index();
  REQUIRE(In(i, 0).IsTuple() && InRange(index, static_cast<int64_t>(In(i, 0).tuple.size())),
          "index {} of {}", index, In(i, 0).ToString());
  return In(i, 0).tuple[index];
}

// One dimension grows or shrinks by the group size, which shapes cannot know.
Result Gathered(const Instruction& i, bool grows) {
  const int64_t dim = OnlyDimension(i);
  const auto fits = [&](const Shape& in, const Shape& out) {
    if (!in.IsArray() || !out.IsArray() || in.rank() != out.rank() || !InRange(dim, in.rank()) ||
        in.element_type != out.element_type) {
      return false;
    }
    for (int64_t d = 0; d < in.rank(); ++d) {
      const int64_t small = grows ? in.dims[d] : out.dims[d];
      const int64_t large = grows ? out.dims[d] : in.dims[d];
      if (d == dim ? (small == 0 ? large != 0 : large % small != 0) : small != large) return false;
    }
    return true;
  };
  const bool tuple = i.shape().IsTuple();
  REQUIRE(tuple ? i.shape().tuple.size() == i.operands().size() : i.operands().size() == 1,
          "{} operands give {}", i.operands().size(), i.shape().ToString());
  for (size_t n = 0; n < i.operands().size(); ++n) {
    const Shape& out = tuple ? i.shape().tuple[n] : i.shape();
    REQUIRE(fits(In(i, n), out), "{} does not become {} along dimension {}", In(i, n).ToString(),
            out.ToString(), dim);
  }
  return i.shape();
}

Result AllToAll(const Instruction& i) {
  if (Dimensions(i).empty()) {
    if (i.operands().size() == 1 && !i.shape().IsTuple()) return In(i, 0);
    return MakeTupleShape(OperandShapes(i, i.operands().size()));
  }
  REQUIRE(i.operands().size() == 1 && InRange(OnlyDimension(i), In(i, 0).rank()),
          "split dimension of {}", In(i, 0).ToString());
  return In(i, 0);
}

Result SameAsOperands(const Instruction& i) {
  if (i.operands().size() == 1 && i.shape().IsTuple() && !In(i, 0).IsTuple()) {
    return MakeTupleShape({In(i, 0)});
  }
  return OneOrTuple(OperandShapes(i, i.operands().size()));
}

Result Sort(const Instruction& i) {
  REQUIRE(!i.operands().empty() && InRange(OnlyDimension(i), In(i, 0).rank()), "dimension {}",
          OnlyDimension(i));
  return SameAsOperands(i);
}

Result Map(const Instruction& i) {
  REQUIRE(!i.operands().empty(), "no operands");
  return MakeShape(OwnType(i), In(i, 0).dims);
}

Result TopK(const Instruction& i) {
  Shape values = MakeShape(In(i, 0).element_type, In(i, 0).dims);
  const int64_t k = i.attrs().k();
  REQUIRE(values.rank() > 0 && k >= 0 && k <= values.dims.back(), "k = {} of {}", k,
          values.ToString());
  values.dims.back() = k;
  return MakeTupleShape({values, MakeShape(PrimitiveType::kS32, values.dims)});
}

Result Scatter(const Instruction& i) {
  const size_t n = i.operands().size() / 2;
  REQUIRE(n > 0 && i.operands().size() == 2 * n + 1, "{} operands", i.operands().size());
  return OneOrTuple(OperandShapes(i, n));
}

Result Constant(const Instruction& i) {
  // Elided literals are legal.
  if (!i.attrs().has_literal()) return i.shape();
  const pb::ShapeProto& literal = i.attrs().literal().shape();
  REQUIRE(static_cast<int>(literal.element_type()) == static_cast<int>(OwnType(i)) &&
              std::equal(literal.dimensions().begin(), literal.dimensions().end(),
                         i.shape().dims.begin(), i.shape().dims.end()),
          "the literal has another shape than {}", i.shape().ToString());
  return i.shape();
}

}  // namespace

Result InferShape(const Instruction& i) {
  if (IsElementwise(i.opcode())) {
    RETURN_IF_ERROR(RequireArrays(i));
    return Elementwise(i);
  }
  switch (i.opcode()) {
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kReverse:
    case Opcode::kDot:
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kConvolution:
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kConcatenate:
    case Opcode::kPad:
    case Opcode::kGather:
    case Opcode::kBitcastConvert:
    case Opcode::kScatter:
    case Opcode::kSort:
    case Opcode::kMap:
    case Opcode::kTopk:
      RETURN_IF_ERROR(RequireArrays(i));
      break;
    default:
      break;
  }
  switch (i.opcode()) {
    case Opcode::kDot:
      return Dot(i);
    case Opcode::kBroadcast:
      return Broadcast(i);
    case Opcode::kReshape:
      return Reshape(i);
    case Opcode::kBitcastConvert:
      return BitcastConvert(i);
    case Opcode::kTranspose:
      return Transpose(i);
    case Opcode::kReverse:
      return Reverse(i);
    case Opcode::kReduce:
      return Reduce(i);
    case Opcode::kReduceWindow:
      return ReduceWindow(i);
    case Opcode::kConvolution:
      return Convolution(i);
    case Opcode::kSlice:
      return Slice(i);
    case Opcode::kDynamicSlice:
      return DynamicSlice(i);
    case Opcode::kDynamicUpdateSlice:
      return DynamicUpdateSlice(i);
    case Opcode::kConcatenate:
      return Concatenate(i);
    case Opcode::kPad:
      return Pad(i);
    case Opcode::kIota:
      return Iota(i);
    case Opcode::kGather:
      return Gather(i);
    case Opcode::kScatter:
      return Scatter(i);
    case Opcode::kSort:
      return Sort(i);
    case Opcode::kMap:
      return Map(i);
    case Opcode::kTopk:
      return TopK(i);
    case Opcode::kConstant:
      return Constant(i);
    case Opcode::kTuple:
      return MakeTupleShape(OperandShapes(i, i.operands().size()));
    case Opcode::kGetTupleElement:
      return TupleElement(i);
    case Opcode::kCall:
    case Opcode::kFusion:
      return i.called()[0]->root()->shape();
    case Opcode::kCopy:
    case Opcode::kOptBarrier:
    case Opcode::kWhile:
    case Opcode::kCholesky:
    case Opcode::kDomain:
    case Opcode::kAddDependency:
    case Opcode::kSelectAndScatter:
      return In(i, 0);
    case Opcode::kTriangularSolve:
      return In(i, 1);
    case Opcode::kAllReduce:
      return SameAsOperands(i);
    case Opcode::kAllGather:
      return Gathered(i, true);
    case Opcode::kReduceScatter:
      return Gathered(i, false);
    case Opcode::kAllToAll:
      return AllToAll(i);
    case Opcode::kCollectivePermute:
      // The in-place form has a buffer and indices besides.
      return i.operands().size() == 1 ? SameAsOperands(i) : i.shape();
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
      return MakeScalarShape(PrimitiveType::kU32);
    case Opcode::kAfterAll:
      return MakeTokenShape();
    default:
      return i.shape();
  }
}

#undef REQUIRE

}  // namespace tpusim::hlo
