#include "workloads/hlo/io/text_values.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/number_text.h"
#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/shape_proto.h"
#include "workloads/hlo/ir/small_float.h"

namespace tpusim::hlo {
namespace {

// The nesting that the importer allows.
constexpr int kMostNested = 64;

absl::Status ParseLayout(TextCursor& text, pb::LayoutProto& layout) {
  while (text.Peek() != ':' && text.Peek() != '}') {
    ASSIGN_OR_RETURN(const int64_t dimension, text.Integer());
    layout.add_minor_to_major(dimension);
    if (!text.Take(",")) break;
  }
  if (text.Take(":")) {
    while (text.Peek() != '}') {
      if (text.Take("T")) {
        do {
          RETURN_IF_ERROR(text.Expect("("));
          ASSIGN_OR_RETURN(const std::vector<int64_t> tile, text.IntsUntil(")"));
          layout.add_tiles()->mutable_dimensions()->Add(tile.begin(), tile.end());
        } while (text.Peek() == '(');
        continue;
      }
      if (text.Take("SC")) {  // where a dimension is cut between cores: (0:16)(1:4,8)
        do {
          RETURN_IF_ERROR(text.Expect("("));
          pb::SplitConfigProto* split = layout.add_split_configs();
          ASSIGN_OR_RETURN(const int64_t dimension, text.Integer());
          split->set_dimension(dimension);
          RETURN_IF_ERROR(text.Expect(":"));
          ASSIGN_OR_RETURN(const std::vector<int64_t> indices, text.IntsUntil(")"));
          split->mutable_split_indices()->Add(indices.begin(), indices.end());
        } while (text.Peek() == '(');
        continue;
      }
      if (text.Take("L(")) {
        ASSIGN_OR_RETURN(const int64_t elements, text.Integer());
        layout.set_tail_padding_alignment_in_elements(elements);
        RETURN_IF_ERROR(text.Expect(")"));
        continue;
      }
      const bool space = text.Take("S");
      if (!space && !text.Take("E")) return text.Error("this part of a layout is not known");
      RETURN_IF_ERROR(text.Expect("("));
      ASSIGN_OR_RETURN(const int64_t value, text.Integer());
      RETURN_IF_ERROR(text.Expect(")"));
      if (space) {
        layout.set_memory_space(value);
      } else {
        layout.set_element_size_in_bits(value);
      }
    }
  }
  return text.Expect("}");
}

absl::Status ParseShapeInto(TextCursor& text, int depth, pb::ShapeProto& shape) {
  if (depth > kMostNested) return text.Error("tuples nested too deep");
  if (text.Take("(")) {
    shape.set_element_type(pb::TUPLE);
    if (text.Take(")")) return absl::OkStatus();
    do {
      RETURN_IF_ERROR(ParseShapeInto(text, depth + 1, *shape.add_tuple_shapes()));
    } while (text.Take(","));
    return text.Expect(")");
  }
  const size_t begin = text.Begin();
  const std::string type(text.Word());
  const auto known = PrimitiveTypeFromName(type);
  if (!known) return text.ErrorAt(begin, fmt::format("there is no element type '{}'", type));
  shape.set_element_type(static_cast<pb::PrimitiveType>(*known));
  RETURN_IF_ERROR(text.Expect("["));
  if (!text.Take("]")) {
    do {
      const bool dynamic = text.Take("<=");
      ASSIGN_OR_RETURN(const int64_t extent, text.Integer());
      shape.add_dimensions(extent);
      shape.add_is_dynamic_dimension(dynamic);
    } while (text.Take(","));
    RETURN_IF_ERROR(text.Expect("]"));
  }
  // A bracket further on opens a computation.
  return text.TakeAttached("{") ? ParseLayout(text, *shape.mutable_layout()) : absl::OkStatus();
}

// One element; only one of the two is filled, according to the type.
absl::Status ParseElement(TextCursor& text, PrimitiveType type, std::vector<int64_t>& integers,
                          std::vector<double>& reals) {
  if (IsComplex(type) && text.Take("(")) {
    ASSIGN_OR_RETURN(const double real, text.Real());
    if (!text.Take(",")) return text.Error("a number has a real and an imaginary part");
    ASSIGN_OR_RETURN(const double imaginary, text.Real());
    if (!text.Take(")")) return text.Error("a bracket that is not closed");
    reals.insert(reals.end(), {real, imaginary});
    return absl::OkStatus();
  }
  const size_t begin = text.Begin();
  if (type == PrimitiveType::kPred || text.Peek() == 't' || text.Peek() == 'f') {
    ASSIGN_OR_RETURN(const bool value, text.Bool());
    integers.push_back(value ? 1 : 0);
    return absl::OkStatus();
  }
  if (IsIntegral(type)) {
    if (type == PrimitiveType::kU64 && text.Peek() != '-') {
      const std::optional<uint64_t> value = configs::NumberIn<uint64_t>(text.Word());
      if (!value) return text.ErrorAt(begin, "a number is expected here");
      integers.push_back(static_cast<int64_t>(*value));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const int64_t value, text.Integer());
    integers.push_back(value);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const double value, text.Real());
  reals.push_back(value);
  return absl::OkStatus();
}

void AppendReal(PrimitiveType type, double value, pb::LiteralProto& literal) {
  switch (type) {
    case PrimitiveType::kF64:
      literal.add_f64s(value);
      return;
    case PrimitiveType::kF32:
      literal.add_f32s(static_cast<float>(value));
      return;
    case PrimitiveType::kC64:
      literal.add_c64s(static_cast<float>(value));
      return;
    case PrimitiveType::kC128:
      literal.add_c128s(value);
      return;
    default:
      AppendSmallFloat(type, value, &literal);
  }
}

}  // namespace

absl::StatusOr<Shape> ParseShape(TextCursor& text) {
  const size_t begin = text.Begin();
  pb::ShapeProto proto;
  RETURN_IF_ERROR(ParseShapeInto(text, 0, proto));
  absl::StatusOr<Shape> shape = ShapeFromProto(proto);
  if (shape.ok()) return shape;
  return absl::Status(shape.status().code(),
                      fmt::format("{}: {}", text.Position(begin), Message(shape.status())));
}

absl::StatusOr<pb::LiteralProto> ParseLiteral(TextCursor& text, const Shape& shape) {
  const size_t begin = text.Begin();
  pb::LiteralProto literal;
  if (text.Take("{...}")) return literal;
  if (!shape.IsArray()) return text.Error("a constant that is no array");
  const PrimitiveType type = shape.element_type;
  const bool has_numbers =
      type == PrimitiveType::kPred || IsIntegral(type) || IsFloating(type) || IsComplex(type);
  if (!has_numbers) return text.Error("a constant without numbers");
  std::vector<int64_t> integers;
  std::vector<double> reals;
  // Elements in row-major order, with or without brackets around rows.
  int depth = 0;
  const bool bracketed = text.Peek() == '{';
  do {
    while (text.Take("{")) ++depth;
    if (depth == 0 || text.Peek() != '}') {
      RETURN_IF_ERROR(ParseElement(text, type, integers, reals));
    }
    while (depth > 0 && text.Take("}")) --depth;
  } while (text.Take(","));
  if (depth > 0) return text.Error("a bracket that is not closed");
  const size_t elements = integers.size() + reals.size() / (IsComplex(type) ? 2 : 1);
  const bool once = elements == 1 && !bracketed;
  if (static_cast<int64_t>(elements) != shape.ElementCount() && !once) {
    return text.ErrorAt(begin, fmt::format("{} elements for {}", elements, shape.ToString()));
  }
  if (type == PrimitiveType::kPred || IsIntegral(type)) {
    literal = MakeIntVectorLiteral(type, integers);
  } else {
    for (const double value : reals) AppendReal(type, value, literal);
  }
  // In row-major order, whatever the array's order in memory.
  const bool fills = static_cast<int64_t>(elements) != shape.ElementCount();
  *literal.mutable_shape() =
      ShapeToProto(fills ? MakeScalarShape(type) : MakeShape(type, shape.dims));
  return literal;
}

}  // namespace tpusim::hlo
