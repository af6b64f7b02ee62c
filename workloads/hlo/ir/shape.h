// Shapes: an array type with a layout, or a tuple of shapes.
#ifndef TPUSIM_WORKLOADS_HLO_IR_SHAPE_H_
#define TPUSIM_WORKLOADS_HLO_IR_SHAPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/memory.h"
#include "configs/units.h"

namespace tpusim::hlo {

// Numbers are those of the wire format.
enum class PrimitiveType : int {
  kInvalid = 0,
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kTuple = 13,
  kOpaque = 14,
  kC64 = 15,
  kBf16 = 16,
  kToken = 17,
  kC128 = 18,
  kF8E5M2 = 19,
  kF8E4M3Fn = 20,
  kS4 = 21,
  kU4 = 22,
  kF8E4M3B11Fnuz = 23,
  kF8E5M2Fnuz = 24,
  kF8E4M3Fnuz = 25,
  kS2 = 26,
  kU2 = 27,
  kF8E4M3 = 28,
  kF8E3M4 = 29,
  kS1 = 30,
  kU1 = 31,
  kF4E2M1Fn = 32,
  kF8E8M0Fnu = 33,
  kBuffer = 34,
  kF6E3M2Fn = 35,
  kF6E2M3Fn = 36,
};

std::string_view PrimitiveTypeName(PrimitiveType type);  // "bf16"
std::optional<PrimitiveType> PrimitiveTypeFromName(std::string_view name);
int64_t BitWidth(PrimitiveType type);  // 0 for token, opaque, tuple
bool IsFloating(PrimitiveType type);
bool IsIntegral(PrimitiveType type);  // signed and unsigned integers, not pred
bool IsSignedIntegral(PrimitiveType type);
bool IsComplex(PrimitiveType type);

// Memory spaces of the TPU compiler's layouts: those that passes name; all are in
// configs/memory.h.
inline constexpr int64_t kHbmSpace = configs::MemoryOf(configs::MemorySpace::kHbm).number;
inline constexpr int64_t kVmemSpace = configs::MemoryOf(configs::MemorySpace::kVmem).number;
inline constexpr int64_t kHostSpace = configs::MemoryOf(configs::MemorySpace::kHost).number;

struct Layout {
  std::vector<int64_t> minor_to_major;      // fastest dimension first
  std::vector<std::vector<int64_t>> tiles;  // T(8,128)(2,1)
  int64_t memory_space = kHbmSpace;
  int64_t element_size_in_bits = 0;  // 0 = the width of the type
  std::string other;                 // wire bytes of a layout's remaining fields
  bool operator==(const Layout&) const = default;
};

struct Shape {
  PrimitiveType element_type = PrimitiveType::kInvalid;
  std::vector<int64_t> dims;
  std::vector<Shape> tuple;  // only for kTuple
  Layout layout;             // empty minor_to_major = row major

  // An empty minor_to_major equals the row-major one.
  bool operator==(const Shape& other) const;
  bool IsTuple() const { return element_type == PrimitiveType::kTuple; }
  bool IsArray() const {
    return !IsTuple() && element_type != PrimitiveType::kToken &&
           element_type != PrimitiveType::kOpaque;
  }
  bool IsScalar() const { return IsArray() && dims.empty(); }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t ElementCount() const;                          // of an array; 1 for a scalar
  Bytes ByteSize() const;                                // unpadded; tuples sum their leaves
  std::string ToString(bool with_layout = false) const;  // "bf16[8,128]{1,0}"
};

Shape MakeShape(PrimitiveType type, std::vector<int64_t> dims);  // row-major layout
Shape MakeScalarShape(PrimitiveType type);
Shape MakeTokenShape();
Shape MakeTupleShape(std::vector<Shape> shapes);
// Same element type and dimensions, layouts ignored.
bool SameDims(const Shape& a, const Shape& b);
// In the memory of the host; false for tuples.
bool OnHost(const Shape& shape);
// Leaves in pre-order; a shape that is no tuple is its own only leaf.
std::vector<const Shape*> Leaves(const Shape& shape);
bool IsRowMajor(const Shape& shape);
// {rank - 1, ..., 0}
std::vector<int64_t> RowMajor(int64_t rank);

// ---- Order in memory ---------------------------------------------------------
// "Minor" is a matter of the layout, never of the number of a dimension.

// Dimensions of an array, fastest first; row-major if the layout says nothing.
std::vector<int64_t> MinorToMajor(const Shape& array);
// The `place`-th fastest dimension of an array, 0 for the fastest; -1 if it has none.
int64_t MinorDimension(const Shape& array, int64_t place = 0);
// The inverse: how many dimensions are faster than `dimension`.
int64_t PlaceFromMinor(const Shape& array, int64_t dimension);
// Extents in the order of memory, slowest first.
std::vector<int64_t> PhysicalDims(const Shape& array);
// Are the dimensions in the same order in memory?
bool SameOrder(const Shape& a, const Shape& b);
// `array` with its dimensions in this order, fastest first; tiles and all else stay.
Shape WithOrder(Shape array, std::vector<int64_t> minor_to_major);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IR_SHAPE_H_
