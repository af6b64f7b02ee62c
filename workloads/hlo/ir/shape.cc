#include "workloads/hlo/ir/shape.h"

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace tpusim::hlo {
namespace {

enum class Family { kNone, kPred, kSigned, kUnsigned, kFloat, kComplex };

struct TypeRow {
  std::string_view name;
  int bits;
  Family family;
};

// Indexed by the wire number.
constexpr TypeRow kTypes[] = {
    {"invalid", 0, Family::kNone},     {"pred", 8, Family::kPred},
    {"s8", 8, Family::kSigned},        {"s16", 16, Family::kSigned},
    {"s32", 32, Family::kSigned},      {"s64", 64, Family::kSigned},
    {"u8", 8, Family::kUnsigned},      {"u16", 16, Family::kUnsigned},
    {"u32", 32, Family::kUnsigned},    {"u64", 64, Family::kUnsigned},
    {"f16", 16, Family::kFloat},       {"f32", 32, Family::kFloat},
    {"f64", 64, Family::kFloat},       {"tuple", 0, Family::kNone},
    {"opaque", 0, Family::kNone},      {"c64", 64, Family::kComplex},
    {"bf16", 16, Family::kFloat},      {"token", 0, Family::kNone},
    {"c128", 128, Family::kComplex},   {"f8e5m2", 8, Family::kFloat},
    {"f8e4m3fn", 8, Family::kFloat},   {"s4", 4, Family::kSigned},
    {"u4", 4, Family::kUnsigned},      {"f8e4m3b11fnuz", 8, Family::kFloat},
    {"f8e5m2fnuz", 8, Family::kFloat}, {"f8e4m3fnuz", 8, Family::kFloat},
    {"s2", 2, Family::kSigned},        {"u2", 2, Family::kUnsigned},
    {"f8e4m3", 8, Family::kFloat},     {"f8e3m4", 8, Family::kFloat},
    {"s1", 1, Family::kSigned},        {"u1", 1, Family::kUnsigned},
    {"f4e2m1fn", 4, Family::kFloat},   {"f8e8m0fnu", 8, Family::kFloat},
    {"b", 0, Family::kNone},           {"f6e3m2fn", 6, Family::kFloat},
    {"f6e2m3fn", 6, Family::kFloat},
};

const TypeRow& Row(PrimitiveType type) {
  const int index = static_cast<int>(type);
  TPUSIM_CHECK(index >= 0 && index < static_cast<int>(std::size(kTypes)),
               fmt::format("element type {}", index));
  return kTypes[index];
}

bool LayoutsEqual(const Shape& a, const Shape& b) {
  const bool same_order =
      a.layout.minor_to_major == b.layout.minor_to_major || (IsRowMajor(a) && IsRowMajor(b));
  return same_order && a.layout.tiles == b.layout.tiles &&
         a.layout.memory_space == b.layout.memory_space &&
         a.layout.element_size_in_bits == b.layout.element_size_in_bits &&
         a.layout.other == b.layout.other;
}

std::string LayoutText(const Shape& shape) {
  const Layout& layout = shape.layout;
  std::string text = fmt::format("{}", fmt::join(MinorToMajor(shape), ","));
  std::string suffix;
  if (!layout.tiles.empty()) {
    suffix += "T";
    for (const auto& tile : layout.tiles) suffix += fmt::format("({})", fmt::join(tile, ","));
  }
  if (layout.element_size_in_bits != 0) suffix += fmt::format("E({})", layout.element_size_in_bits);
  if (layout.memory_space != kHbmSpace) suffix += fmt::format("S({})", layout.memory_space);
  if (!suffix.empty()) text += ":" + suffix;
  return text.empty() ? "" : "{" + text + "}";
}

}  // namespace

std::string_view PrimitiveTypeName(PrimitiveType type) { return Row(type).name; }
int64_t BitWidth(PrimitiveType type) { return Row(type).bits; }
bool IsFloating(PrimitiveType type) { return Row(type).family == Family::kFloat; }
bool IsSignedIntegral(PrimitiveType type) { return Row(type).family == Family::kSigned; }
bool IsIntegral(PrimitiveType type) {
  return IsSignedIntegral(type) || Row(type).family == Family::kUnsigned;
}
bool IsComplex(PrimitiveType type) { return Row(type).family == Family::kComplex; }

std::optional<PrimitiveType> PrimitiveTypeFromName(std::string_view name) {
  for (size_t i = 1; i < std::size(kTypes); ++i) {
    if (kTypes[i].name == name) return static_cast<PrimitiveType>(i);
  }
  return std::nullopt;
}

bool Shape::operator==(const Shape& other) const {
  return element_type == other.element_type && dims == other.dims && tuple == other.tuple &&
         LayoutsEqual(*this, other);
}

int64_t Shape::ElementCount() const {
  TPUSIM_CHECK(IsArray(), "element count of " + ToString());
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

Bytes Shape::ByteSize() const {
  if (IsTuple()) {
    Bytes sum(0);
    for (const Shape& element : tuple) sum += element.ByteSize();
    return sum;
  }
  if (!IsArray()) return Bytes(0);
  // Types narrower than a byte count as packed. Divided before multiplying, so
  // that no array that the importer lets pass can overflow.
  const int64_t bits = BitWidth(element_type);
  const int64_t count = ElementCount();
  if (bits % 8 == 0) return Bytes(count * (bits / 8));
  return Bytes(count / 8 * bits + CeilDiv(count % 8 * bits, 8));
}

std::string Shape::ToString(bool with_layout) const {
  if (IsTuple()) {
    std::string text = "(";
    for (size_t i = 0; i < tuple.size(); ++i) {
      if (i > 0) text += ", ";
      text += tuple[i].ToString(with_layout);
    }
    return text + ")";
  }
  std::string text = fmt::format("{}[{}]", PrimitiveTypeName(element_type), fmt::join(dims, ","));
  if (with_layout && IsArray()) text += LayoutText(*this);
  return text;
}

std::vector<int64_t> RowMajor(int64_t rank) {
  std::vector<int64_t> order(rank);
  for (int64_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  return order;
}

bool IsRowMajor(const Shape& shape) {
  const auto& order = shape.layout.minor_to_major;
  return order.empty() || order == RowMajor(shape.rank());
}

std::vector<int64_t> MinorToMajor(const Shape& array) {
  return array.layout.minor_to_major.empty() ? RowMajor(array.rank()) : array.layout.minor_to_major;
}

int64_t MinorDimension(const Shape& array, int64_t place) {
  if (place >= array.rank()) return -1;
  const std::vector<int64_t>& order = array.layout.minor_to_major;
  return order.empty() ? array.rank() - 1 - place : order[static_cast<size_t>(place)];
}

int64_t PlaceFromMinor(const Shape& array, int64_t dimension) {
  const std::vector<int64_t>& order = array.layout.minor_to_major;
  if (order.empty()) return array.rank() - 1 - dimension;
  return std::ranges::find(order, dimension) - order.begin();
}

std::vector<int64_t> PhysicalDims(const Shape& array) {
  std::vector<int64_t> dims(array.dims.size());
  for (int64_t place = 0; place < array.rank(); ++place) {
    dims[dims.size() - 1 - static_cast<size_t>(place)] =
        array.dims[static_cast<size_t>(MinorDimension(array, place))];
  }
  return dims;
}

bool SameOrder(const Shape& a, const Shape& b) {
  return a.layout.minor_to_major == b.layout.minor_to_major || MinorToMajor(a) == MinorToMajor(b);
}

Shape WithOrder(Shape array, std::vector<int64_t> minor_to_major) {
  array.layout.minor_to_major = std::move(minor_to_major);
  return array;
}

Shape MakeShape(PrimitiveType type, std::vector<int64_t> dims) {
  Shape shape;
  shape.element_type = type;
  shape.layout.minor_to_major = RowMajor(static_cast<int64_t>(dims.size()));
  shape.dims = std::move(dims);
  return shape;
}

Shape MakeScalarShape(PrimitiveType type) { return MakeShape(type, {}); }
Shape MakeTokenShape() { return MakeShape(PrimitiveType::kToken, {}); }

Shape MakeTupleShape(std::vector<Shape> shapes) {
  Shape shape;
  shape.element_type = PrimitiveType::kTuple;
  shape.tuple = std::move(shapes);
  return shape;
}

bool SameDims(const Shape& a, const Shape& b) {
  return a.element_type == b.element_type && a.dims == b.dims &&
         std::equal(a.tuple.begin(), a.tuple.end(), b.tuple.begin(), b.tuple.end(), SameDims);
}

std::vector<const Shape*> Leaves(const Shape& shape) {
  if (!shape.IsTuple()) return {&shape};
  std::vector<const Shape*> leaves;
  for (const Shape& element : shape.tuple) {
    for (const Shape* leaf : Leaves(element)) leaves.push_back(leaf);
  }
  return leaves;
}

bool OnHost(const Shape& shape) {
  return !shape.IsTuple() && shape.layout.memory_space == kHostSpace;
}

}  // namespace tpusim::hlo
