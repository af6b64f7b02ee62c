// Literals as numbers, and numbers as literals.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/shape_proto.h"
#include "workloads/hlo/ir/small_float.h"

namespace tpusim::hlo {
namespace {

template <typename T, typename Out>
std::vector<Out> FromBytes(const std::string& bytes) {
  std::vector<Out> out;
  out.reserve(bytes.size() / sizeof(T));
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;  // little endian in the file, and so is every host that we build for
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    out.push_back(static_cast<Out>(value));
  }
  return out;
}

template <typename Out, typename Field>
std::vector<Out> FromField(const Field& field) {
  return std::vector<Out>(field.begin(), field.end());
}

template <typename T>
std::string Raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// The declared number of elements; nullopt for tuples, impossible shapes and
// orders other than row major.
std::optional<size_t> CountOf(const pb::LiteralProto& literal) {
  const absl::StatusOr<Shape> shape = ShapeFromProto(literal.shape());
  if (!shape.ok() || !shape->IsArray()) return std::nullopt;
  // Elements stand in the order of the layout.
  if (shape->rank() > 1 && !IsRowMajor(*shape)) return std::nullopt;
  return static_cast<size_t>(shape->ElementCount());
}

// The field of a literal for integers that take a byte each; integers of a few bits do, too.
struct ByteInts {
  PrimitiveType type;
  bool is_signed;
  const std::string& (pb::LiteralProto::*bytes)() const;
  std::string* (pb::LiteralProto::*mutable_bytes)();
};
constexpr ByteInts kByteInts[] = {
    {PrimitiveType::kS8, true, &pb::LiteralProto::s8s, &pb::LiteralProto::mutable_s8s},
    {PrimitiveType::kU8, false, &pb::LiteralProto::u8s, &pb::LiteralProto::mutable_u8s},
    {PrimitiveType::kS4, true, &pb::LiteralProto::s4s, &pb::LiteralProto::mutable_s4s},
    {PrimitiveType::kU4, false, &pb::LiteralProto::u4s, &pb::LiteralProto::mutable_u4s},
    {PrimitiveType::kS2, true, &pb::LiteralProto::s2s, &pb::LiteralProto::mutable_s2s},
    {PrimitiveType::kU2, false, &pb::LiteralProto::u2s, &pb::LiteralProto::mutable_u2s},
    {PrimitiveType::kS1, true, &pb::LiteralProto::s1s, &pb::LiteralProto::mutable_s1s},
    {PrimitiveType::kU1, false, &pb::LiteralProto::u1s, &pb::LiteralProto::mutable_u1s},
};

// Null: of other types.
const ByteInts* ByteIntsOf(PrimitiveType type) {
  const auto* row = std::ranges::find(kByteInts, type, &ByteInts::type);
  return row == std::end(kByteInts) ? nullptr : row;
}

void AppendInt(PrimitiveType type, int64_t value, pb::LiteralProto* literal) {
  if (const ByteInts* row = ByteIntsOf(type)) {
    return (literal->*row->mutable_bytes)()->push_back(static_cast<char>(value));
  }
  switch (type) {
    case PrimitiveType::kPred:
      return literal->add_preds(value != 0);
    case PrimitiveType::kS16:
      return literal->mutable_s16s()->append(Raw(static_cast<int16_t>(value))), void();
    case PrimitiveType::kU16:
      return literal->mutable_u16s()->append(Raw(static_cast<uint16_t>(value))), void();
    case PrimitiveType::kS32:
      return literal->add_s32s(static_cast<int32_t>(value));
    case PrimitiveType::kU32:
      return literal->add_u32s(static_cast<uint32_t>(value));
    case PrimitiveType::kS64:
      return literal->add_s64s(value);
    case PrimitiveType::kU64:
      return literal->add_u64s(static_cast<uint64_t>(value));
    default:
      TPUSIM_CHECK(false, fmt::format("integer literal of type {}", PrimitiveTypeName(type)));
  }
}

bool HoldsInts(PrimitiveType type) { return type == PrimitiveType::kPred || IsIntegral(type); }

std::optional<std::vector<int64_t>> RawInts(const pb::LiteralProto& literal) {
  if (const auto* row = ByteIntsOf(static_cast<PrimitiveType>(literal.shape().element_type()))) {
    const std::string& bytes = (literal.*row->bytes)();
    return row->is_signed ? FromBytes<int8_t, int64_t>(bytes) : FromBytes<uint8_t, int64_t>(bytes);
  }
  switch (literal.shape().element_type()) {
    case pb::PRED:
      return FromField<int64_t>(literal.preds());
    case pb::S32:
      return FromField<int64_t>(literal.s32s());
    case pb::S64:
      return FromField<int64_t>(literal.s64s());
    case pb::U32:
      return FromField<int64_t>(literal.u32s());
    case pb::U64:
      return FromField<int64_t>(literal.u64s());
    case pb::S16:
      return FromBytes<int16_t, int64_t>(literal.s16s());
    case pb::U16:
      return FromBytes<uint16_t, int64_t>(literal.u16s());
    default:
      return std::nullopt;
  }
}

std::optional<std::vector<double>> RawReals(const pb::LiteralProto& literal) {
  switch (literal.shape().element_type()) {
    case pb::F32:
      return FromField<double>(literal.f32s());
    case pb::F64:
      return FromField<double>(literal.f64s());
    default: {
      if (auto small = SmallFloats(literal)) return small;
      const auto ints = RawInts(literal);
      if (!ints.has_value()) return std::nullopt;
      return FromField<double>(*ints);
    }
  }
}

}  // namespace

std::optional<std::vector<int64_t>> IntElements(const pb::LiteralProto& literal) {
  const auto count = CountOf(literal);
  auto values = RawInts(literal);
  if (!count.has_value() || !values.has_value() || values->size() != *count) return std::nullopt;
  return values;
}

std::optional<std::vector<double>> RealElements(const pb::LiteralProto& literal) {
  const auto count = CountOf(literal);
  auto values = RawReals(literal);
  if (!count.has_value() || !values.has_value() || values->size() != *count) return std::nullopt;
  return values;
}

std::optional<int64_t> ScalarIntConstant(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kConstant || !instruction.shape().IsScalar()) {
    return std::nullopt;
  }
  const auto values = IntElements(instruction.attrs().literal());
  if (!values.has_value() || values->size() != 1) return std::nullopt;
  return values->front();
}

namespace {

// The real part of a complex number without an imaginary one.
template <typename Parts>
std::optional<double> RealOf(const Parts& parts) {
  if (parts.size() != 2 || parts.Get(1) != 0) return std::nullopt;
  return static_cast<double>(parts.Get(0));
}

}  // namespace

std::optional<double> ScalarConstant(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kConstant || !instruction.shape().IsScalar()) {
    return std::nullopt;
  }
  const pb::LiteralProto& literal = instruction.attrs().literal();
  if (literal.shape().element_type() == pb::C64) return RealOf(literal.c64s());
  if (literal.shape().element_type() == pb::C128) return RealOf(literal.c128s());
  const auto values = RealElements(literal);
  if (!values.has_value() || values->size() != 1) return std::nullopt;
  return values->front();
}

pb::LiteralProto MakeIntLiteral(PrimitiveType type, int64_t value) {
  pb::LiteralProto literal;
  *literal.mutable_shape() = ShapeToProto(MakeScalarShape(type));
  AppendInt(type, value, &literal);
  return literal;
}

pb::LiteralProto MakeIntVectorLiteral(PrimitiveType type, const std::vector<int64_t>& values) {
  pb::LiteralProto literal;
  *literal.mutable_shape() = ShapeToProto(MakeShape(type, {static_cast<int64_t>(values.size())}));
  for (int64_t value : values) AppendInt(type, value, &literal);
  return literal;
}

pb::LiteralProto MakeScalarLiteral(PrimitiveType type, double value) {
  if (HoldsInts(type)) return MakeIntLiteral(type, static_cast<int64_t>(value));
  pb::LiteralProto literal;
  *literal.mutable_shape() = ShapeToProto(MakeScalarShape(type));
  switch (type) {
    case PrimitiveType::kF64:
      literal.add_f64s(value);
      break;
    case PrimitiveType::kF32:
      literal.add_f32s(static_cast<float>(value));
      break;
    case PrimitiveType::kC64:
      literal.add_c64s(static_cast<float>(value));
      literal.add_c64s(0);
      break;
    case PrimitiveType::kC128:
      literal.add_c128s(value);
      literal.add_c128s(0);
      break;
    default:
      TPUSIM_CHECK(SmallFloatOf(type),
                   fmt::format("scalar literal of type {}", PrimitiveTypeName(type)));
      AppendSmallFloat(type, value, &literal);
  }
  return literal;
}

Instruction* AddLiteral(Computation* computation, pb::LiteralProto literal,
                        std::string_view name_hint) {
  const absl::StatusOr<Shape> shape = ShapeFromProto(literal.shape());
  TPUSIM_CHECK(shape.ok(), Message(shape.status()));
  Instruction* constant = computation->Add(Opcode::kConstant, *shape, {}, name_hint);
  *constant->mutable_attrs().mutable_literal() = std::move(literal);
  return constant;
}

Instruction* AddConstant(Computation* computation, PrimitiveType type, double value,
                         std::string_view name_hint) {
  return AddLiteral(computation, MakeScalarLiteral(type, value), name_hint);
}

Instruction* AddIntConstant(Computation* computation, PrimitiveType type, int64_t value,
                            std::string_view name_hint) {
  return AddLiteral(computation, MakeIntLiteral(type, value), name_hint);
}

}  // namespace tpusim::hlo
