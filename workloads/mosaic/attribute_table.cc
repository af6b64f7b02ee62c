#include "workloads/mosaic/attribute_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace tpusim::mosaic {
namespace {

// Kinds of builtin attributes and types, as their encodings begin.
enum AttributeCode : uint8_t {  // number: codes of MLIR bytecode
  kArrayCode = 0,
  kDictionaryCode = 1,
  kStringCode = 2,
  kTypedStringCode = 3,
  kFlatSymbolCode = 4,
  kSymbolCode = 5,
  kTypeCode = 6,
  kUnitCode = 7,
  kIntegerCode = 8,
  kFloatCode = 9,
  kCallSiteCode = 10,
  kFileLineCode = 11,
  kFusedCode = 12,
  kFusedWithMetadataCode = 13,
  kNameCode = 14,
  kUnknownPlaceCode = 15,
  kDenseArrayCode = 17,
  kDenseElementsCode = 18,
  kFileRangeCode = 22,
};
enum TypeCodes : uint8_t {  // number: codes of MLIR bytecode
  kIntegerTypeCode = 0,
  kIndexTypeCode = 1,
  kBf16TypeCode = 3,
  kF16TypeCode = 4,
  kF32TypeCode = 5,
  kF64TypeCode = 6,
  kMemRefTypeCode = 10,
  kMemRefInSpaceTypeCode = 11,
  kTensorTypeCode = 13,
  kVectorTypeCode = 19,
};

// Attributes that are inside of one another; more is no kernel.
constexpr int kDeepestAttribute = 200;  // number: more is no kernel

// "vmem" of "#tpu.memory_space<vmem>".
std::string_view InAngles(std::string_view text) {
  const size_t open = text.find('<'), close = text.rfind('>');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return text.substr(open + 1, close - open - 1);
}

}  // namespace

void AttributeTable::Read(Cursor offsets, std::string_view encodings) {
  const size_t attributes = offsets.Count(), types = offsets.Count();
  Cursor bytes(encodings, damage_);
  const auto read = [&](size_t count, std::vector<Entry>* to) {
    while (to->size() < count && offsets.ok()) {
      offsets.VarInt();  // The dialect.
      size_t group = offsets.Count();
      if (group > count - to->size()) return offsets.Fail("it has more attributes than it says");
      for (; group > 0 && offsets.ok(); --group) {
        const uint64_t size = offsets.VarInt();
        to->push_back({bytes.Bytes(size >> 1), (size & 1) == 0});
      }
    }
  };
  read(attributes, &attributes_);
  read(types, &types_);
}

std::string_view AttributeTable::StringAt(uint64_t number) {
  if (number < strings_.size()) return strings_[number];
  damage_->Set("it names a string that it does not have");
  return {};
}

const Attribute* AttributeTable::AttributeAt(uint64_t number) {
  if (number >= attributes_.size()) {
    damage_->Set("it names an attribute that it does not have");
    return nullptr;
  }
  Entry& entry = attributes_[number];
  if (entry.attribute != nullptr) return entry.attribute;
  if (entry.begun || depth_ >= kDeepestAttribute) {
    damage_->Set("an attribute in it is part of itself");
    return nullptr;
  }
  entry.begun = true;
  ++depth_;
  Cursor cursor(entry.encoding, damage_);
  Attribute decoded;
  if (entry.text) {
    decoded.text = cursor.CString();
  } else {
    decoded = DecodedAttribute(cursor);
  }
  --depth_;
  if (!cursor.ok()) return nullptr;
  entry.attribute = &module_->attributes.emplace_back(std::move(decoded));
  return entry.attribute;
}

const Type* AttributeTable::TypeAt(uint64_t number) {
  if (number >= types_.size()) {
    damage_->Set("it names a type that it does not have");
    return nullptr;
  }
  Entry& entry = types_[number];
  if (entry.type != nullptr) return entry.type;
  if (entry.begun || depth_ >= kDeepestAttribute) {
    damage_->Set("a type in it is part of itself");
    return nullptr;
  }
  entry.begun = true;
  ++depth_;
  Cursor cursor(entry.encoding, damage_);
  Type decoded = entry.text ? TextType(cursor.CString()) : DecodedType(cursor);
  --depth_;
  if (!cursor.ok()) return nullptr;
  entry.type = &module_->types.emplace_back(std::move(decoded));
  return entry.type;
}

Attribute AttributeTable::DecodedAttribute(Cursor cursor) {
  Attribute a;
  const uint64_t code = cursor.VarInt();
  switch (code) {
    case kArrayCode: {
      a.kind = Attribute::Kind::kArray;
      for (size_t left = cursor.Count(); left > 0 && cursor.ok(); --left) {
        a.elements.push_back(AttributeAt(cursor.VarInt()));
      }
      break;
    }
    case kDictionaryCode: {
      a.kind = Attribute::Kind::kDictionary;
      for (size_t left = cursor.Count(); left > 0 && cursor.ok(); --left) {
        const Attribute* name = AttributeAt(cursor.VarInt());
        const Attribute* value = AttributeAt(cursor.VarInt());
        if (name != nullptr && value != nullptr) a.entries.emplace_back(name->text, value);
      }
      break;
    }
    case kStringCode:
    case kTypedStringCode:
      a.kind = Attribute::Kind::kString;
      a.text = StringAt(cursor.VarInt());
      break;
    case kFlatSymbolCode:
    case kSymbolCode: {
      a.kind = Attribute::Kind::kSymbol;
      if (const Attribute* name = AttributeAt(cursor.VarInt())) a.text = name->text;
      break;
    }
    case kTypeCode:
      a.kind = Attribute::Kind::kType;
      a.type = TypeAt(cursor.VarInt());
      break;
    case kUnitCode:
      a.kind = Attribute::Kind::kUnit;
      break;
    case kIntegerCode:
    case kFloatCode: {
      a.type = TypeAt(cursor.VarInt());
      a.integer = Integer(cursor, a.type);
      const bool real = a.type != nullptr && a.type->kind == Type::Kind::kFloat;
      a.kind = real ? Attribute::Kind::kFloat : Attribute::Kind::kInteger;
      break;
    }
    case kCallSiteCode:
      Locations(cursor, 2, &a);
      break;
    case kFileLineCode:
    case kFileRangeCode: {
      a.kind = Attribute::Kind::kLocation;
      if (const Attribute* file = AttributeAt(cursor.VarInt())) a.text = file->text;
      // A range counts its numbers: the line, columns, perhaps another line.
      if (code == kFileRangeCode && cursor.Count() == 0) break;
      a.integer = static_cast<int64_t>(cursor.VarInt());
      break;
    }
    case kFusedCode:
    case kFusedWithMetadataCode:
      Locations(cursor, cursor.Count(), &a);
      break;
    case kNameCode:
      cursor.VarInt();
      Locations(cursor, 1, &a);
      break;
    case kUnknownPlaceCode:
      a.kind = Attribute::Kind::kLocation;
      break;
    case kDenseArrayCode: {
      a.kind = Attribute::Kind::kIntegers;
      a.type = TypeAt(cursor.VarInt());
      cursor.VarInt();
      a.integers = Elements(cursor.Bytes(cursor.VarInt()), a.type);
      break;
    }
    case kDenseElementsCode: {
      a.kind = Attribute::Kind::kElements;
      a.type = TypeAt(cursor.VarInt());
      const Type* element = a.type == nullptr ? nullptr : a.type->element;
      a.integers = Elements(cursor.Bytes(cursor.VarInt()), element);
      break;
    }
    default:
      break;  // Of a kind that kernels make no use of.
  }
  return a;
}

Type AttributeTable::DecodedType(Cursor cursor) {
  constexpr std::pair<uint8_t, std::string_view> kFloats[] = {  // number: codes of MLIR bytecode
      {kBf16TypeCode, "bf16"}, {kF16TypeCode, "f16"}, {kF32TypeCode, "f32"}, {kF64TypeCode, "f64"},
      {22, "f8E5M2"},          {23, "f8E4M3"},        {24, "f8E4M3FN"},      {25, "f8E5M2FNUZ"},
      {26, "f8E4M3FNUZ"},      {27, "f8E4M3B11FNUZ"}, {28, "f8E3M4"},        {29, "f4E2M1FN"},
      {30, "f6E2M3FN"},        {31, "f6E3M2FN"},      {32, "f8E8M0FNU"},
  };
  Type type;
  const uint64_t code = cursor.VarInt();
  for (const auto& [number, name] : kFloats) {
    if (code == number) return Type{Type::Kind::kFloat, std::string(name)};
  }
  switch (code) {
    case kIntegerTypeCode: {
      // The width, and two bits that say whether it has a sign.
      type.kind = Type::Kind::kInteger;
      type.name = fmt::format("i{}", cursor.VarInt() >> 2);
      break;
    }
    case kIndexTypeCode:
      return Type{Type::Kind::kIndex, "index"};
    case kMemRefTypeCode:
    case kMemRefInSpaceTypeCode: {
      type.kind = Type::Kind::kMemRef;
      if (code == kMemRefInSpaceTypeCode) {
        const Attribute* space = AttributeAt(cursor.VarInt());
        if (space != nullptr) type.memory_space = InAngles(space->text);
      }
      type.shape = Shape(cursor);
      type.element = TypeAt(cursor.VarInt());
      break;
    }
    case kTensorTypeCode:
    case kVectorTypeCode:
      type.kind = Type::Kind::kVector;
      type.shape = Shape(cursor);
      type.element = TypeAt(cursor.VarInt());
      break;
    default:
      break;  // Functions, tuples: nothing is computed on them.
  }
  return type;
}

// Older writers had no encoding for narrow floating-point numbers: "f8E4M3FN".
Type AttributeTable::TextType(std::string_view text) {
  const bool real = text.size() > 1 && text[0] == 'f' && std::isdigit(text[1]) != 0;
  return Type{real ? Type::Kind::kFloat : Type::Kind::kOther, std::string(text)};
}

std::vector<int64_t> AttributeTable::Shape(Cursor& cursor) {
  std::vector<int64_t> shape(cursor.Count());
  for (int64_t& extent : shape) {
    extent = cursor.SignedVarInt();
    if (extent < 0 && extent != kDynamic) cursor.Fail("a shape in it has a negative extent");
  }
  return shape;
}

int64_t AttributeTable::Integer(Cursor& cursor, const Type* type) {
  if (type == nullptr) return 0;
  // number: bits of a type
  const int64_t bits = type->kind == Type::Kind::kIndex ? 64 : BitsOf(*type);
  if (bits <= 8) return static_cast<int8_t>(cursor.Byte());  // number: bits of a type
  return bits <= 64 ? cursor.SignedVarInt() : 0;  // number: bits of a type
}

void AttributeTable::Locations(Cursor& cursor, size_t count, Attribute* attribute) {
  attribute->kind = Attribute::Kind::kLocation;
  for (; count > 0 && cursor.ok(); --count) {
    attribute->elements.push_back(AttributeAt(cursor.VarInt()));
  }
}

std::vector<int64_t> AttributeTable::Elements(std::string_view bytes, const Type* element) {
  if (element == nullptr) return {};
  // number: bits of a type
  const int64_t bits = element->kind == Type::Kind::kIndex ? 64 : BitsOf(*element);
  const size_t width = bits == 1 ? 1 : static_cast<size_t>(bits / 8);  // number: bits of a type
  if (width == 0 || width > 8) return {};  // number: bits of a type
  std::vector<int64_t> values;
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    uint64_t value = 0;
    for (size_t n = 0; n < width; ++n) {
      value |= uint64_t{static_cast<uint8_t>(bytes[at + n])} << (8 * n);  // number: bits of a type
    }
    // number: bits of a type
    const size_t above = 64 - 8 * width;  // For the sign.
    values.push_back(static_cast<int64_t>(value << above) >> above);
  }
  return values;
}

}  // namespace tpusim::mosaic
