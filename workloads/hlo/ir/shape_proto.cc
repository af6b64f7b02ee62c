#include "workloads/hlo/ir/shape_proto.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace tpusim::hlo {
namespace {

// Far above any array of any pod (2^48 elements of 16 bytes are 4.5 PB), far
// below what could overflow when sizes are added and multiplied.
constexpr int64_t kMaxElements = int64_t{1} << 48;
constexpr int64_t kMaxBytes = int64_t{1} << 58;
// NumPy's limit: an array of 2^48 elements has no more than 48 dimensions that are longer than one.
// All pairs of dimensions are compared to find a layout.
constexpr int kMaxRank = 64;
// Functions on tuples are recursive. Programs nest a few deep.
constexpr int kMaxTupleDepth = 64;

// Memories in which the TPU compiler keeps counters and semaphores: a few bytes, no array of a
// program, and no memory that is modelled. The numbers are those of tests/data/compiled.
constexpr int64_t kScalarSpaces[] = {
    2,  // semaphores
    4,  // how far collectives inside of kernels are
    6,  // scalars
    7,  // scalars of what SparseCores run
    8,  // semaphores between TensorCore and SparseCores
    10, 11, 12, 15,  // state of a call on SparseCores (libtpu 0.0.52)
};

bool IsKnownSpace(int64_t number) {
  return std::ranges::find(configs::kMemories, number, &configs::Memory::number) !=
             std::end(configs::kMemories) ||
         IsScalarSpace(number);
}

absl::Status LayoutFromProto(const pb::LayoutProto& proto, Shape* shape) {
  Layout& layout = shape->layout;
  layout.minor_to_major.assign(proto.minor_to_major().begin(), proto.minor_to_major().end());
  std::vector<int64_t> sorted = layout.minor_to_major;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i) || sorted.size() != shape->dims.size()) {
      return UserError(fmt::format("layout {{{}}} is no permutation of the {} dimensions of {}",
                                   fmt::join(layout.minor_to_major, ","), shape->dims.size(),
                                   shape->ToString()));
    }
  }
  if (layout.minor_to_major.empty()) layout.minor_to_major = RowMajor(shape->rank());
  for (const pb::TileProto& tile : proto.tiles()) {
    layout.tiles.emplace_back(tile.dimensions().begin(), tile.dimensions().end());
  }
  layout.memory_space = proto.memory_space();
  if (!IsKnownSpace(layout.memory_space)) {
    return NoRule(fmt::format("memory space S({}) of {} is not known", layout.memory_space,
                              shape->ToString()));
  }
  layout.element_size_in_bits = proto.element_size_in_bits();
  pb::LayoutProto rest = proto;
  rest.clear_minor_to_major();
  rest.clear_tiles();
  rest.clear_memory_space();
  rest.clear_element_size_in_bits();
  layout.other = rest.SerializeAsString();
  return absl::OkStatus();
}

absl::StatusOr<Shape> Convert(const pb::ShapeProto& proto, int depth) {
  if (depth > kMaxTupleDepth) {
    return UserError(fmt::format("tuples nested more than {} deep", kMaxTupleDepth));
  }
  Shape shape;
  const int type = proto.element_type();
  if (type <= 0 || type > static_cast<int>(PrimitiveType::kF6E2M3Fn)) {
    return UserError(type == 0 ? "shape without element type"
                               : fmt::format("unknown element type number {}", type));
  }
  shape.element_type = static_cast<PrimitiveType>(type);
  if (shape.IsTuple()) {
    shape.tuple.reserve(proto.tuple_shapes_size());
    int64_t bytes = 0;
    for (const pb::ShapeProto& element : proto.tuple_shapes()) {
      ASSIGN_OR_RETURN(Shape converted, Convert(element, depth + 1));
      bytes += converted.ByteSize().value();
      if (bytes > kMaxBytes) return UserError("tuple of more than 2^58 bytes");
      shape.tuple.push_back(std::move(converted));
    }
    return shape;
  }
  if (!shape.IsArray() && proto.dimensions_size() > 0) {
    return UserError(fmt::format("{} has no dimensions, not [{}]",
                                 PrimitiveTypeName(shape.element_type),
                                 fmt::join(proto.dimensions(), ",")));
  }
  if (proto.dimensions_size() > kMaxRank) {
    return UserError(fmt::format("array of {} dimensions; at most {} are supported",
                                 proto.dimensions_size(), kMaxRank));
  }
  shape.dims.assign(proto.dimensions().begin(), proto.dimensions().end());
  int64_t elements = 1;
  for (int64_t dim : shape.dims) {
    if (dim < 0) {
      return UserError(
          fmt::format("negative or unbounded dimension in [{}]", fmt::join(shape.dims, ",")));
    }
    // Zeros do not count, so that no order of multiplication can overflow.
    if (dim > 0 && elements > kMaxElements / dim) {
      return UserError(
          fmt::format("array [{}] of more than 2^48 elements", fmt::join(shape.dims, ",")));
    }
    elements *= std::max<int64_t>(dim, 1);
  }
  for (bool dynamic : proto.is_dynamic_dimension()) {
    if (dynamic) return NoRule("dynamic dimension in " + shape.ToString());
  }
  RETURN_IF_ERROR(LayoutFromProto(proto.layout(), &shape));
  return shape;
}

}  // namespace

bool IsScalarSpace(int64_t number) {
  return std::ranges::find(kScalarSpaces, number) != std::end(kScalarSpaces);
}

absl::StatusOr<Shape> ShapeFromProto(const pb::ShapeProto& proto) { return Convert(proto, 0); }

pb::ShapeProto ShapeToProto(const Shape& shape) {
  pb::ShapeProto proto;
  proto.set_element_type(static_cast<pb::PrimitiveType>(shape.element_type));
  for (const Shape& element : shape.tuple) *proto.add_tuple_shapes() = ShapeToProto(element);
  if (shape.IsTuple()) return proto;
  for (int64_t dim : shape.dims) {
    proto.add_dimensions(dim);
    proto.add_is_dynamic_dimension(false);
  }
  if (!shape.IsArray()) return proto;
  pb::LayoutProto& layout = *proto.mutable_layout();
  // Bytes that we serialized ourselves.
  TPUSIM_CHECK(layout.ParseFromString(shape.layout.other), "layout of " + shape.ToString());
  const std::vector<int64_t> order = MinorToMajor(shape);
  layout.mutable_minor_to_major()->Add(order.begin(), order.end());
  for (const auto& tile : shape.layout.tiles) {
    layout.add_tiles()->mutable_dimensions()->Add(tile.begin(), tile.end());
  }
  layout.set_memory_space(shape.layout.memory_space);
  layout.set_element_size_in_bits(shape.layout.element_size_in_bits);
  return proto;
}

}  // namespace tpusim::hlo
