// A kernel as Mosaic, the compiler of Pallas kernels, gets it: MLIR, as far as a price needs it.
//
// Operations have names ("arith.addf", "scf.for"), operands, results, attributes and regions; what
// they mean is defined elsewhere. Types and attributes are flat structs of what any
// kind of them holds. A module owns all of it, and pointers in it live as long as the module.
#ifndef TPUSIM_WORKLOADS_MOSAIC_MODULE_H_
#define TPUSIM_WORKLOADS_MOSAIC_MODULE_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tpusim::mosaic {

// The extent of a dimension that is computed, and the length of an axis of a grid that is.
inline constexpr int64_t kDynamic = std::numeric_limits<int64_t>::min();

struct Type {
  enum class Kind { kOther, kInteger, kIndex, kFloat, kVector, kMemRef };
  Kind kind = Kind::kOther;
  std::string name;               // of a scalar, as MLIR writes it: "i32", "bf16", "index"
  const Type* element = nullptr;  // of a vector or a reference
  std::vector<int64_t> shape = {};
  std::string memory_space = "";  // of a reference: "vmem", "smem", "any"
};

struct Attribute {
  enum class Kind {
    kOther,  // its assembly text
    kArray,
    kDictionary,
    kString,
    kSymbol,
    kType,
    kUnit,
    kInteger,
    kFloat,
    kIntegers,  // a dense array
    kElements,  // a constant vector
    kLocation,
  };
  Kind kind = Kind::kOther;
  std::string text = "";               // of a location: its file
  int64_t integer = 0;                 // of a float: its bits; of a location: its line
  std::vector<int64_t> integers = {};  // of constant elements: the only one, if all are equal
  const Type* type = nullptr;
  // The elements of an array attribute; of a location that is made of several, these locations,
  // the callee's before the caller's.
  std::vector<const Attribute*> elements = {};
  std::vector<std::pair<std::string, const Attribute*>> entries = {};

  // Null: no attribute has that name.
  const Attribute* Find(std::string_view name) const;
};

struct Operation;

struct Value {
  const Type* type = nullptr;
  const Operation* defined_by = nullptr;  // null: an argument of a block
};

struct Block {
  std::vector<const Value*> arguments;
  std::vector<const Operation*> operations;
};

struct Region {
  std::vector<Block> blocks;
};

struct Operation {
  std::string name;
  std::vector<const Value*> operands;
  std::vector<const Value*> results;
  const Attribute* attributes = nullptr;  // a dictionary
  const Attribute* location = nullptr;
  std::vector<Region> regions;

  // Null: no attribute has that name.
  const Attribute* Find(std::string_view attribute) const;
  // The attribute `operandSegmentSizes`: how many operands each of its parameters has. Empty:
  // there is none, or it is not about these operands.
  std::vector<int64_t> Segments() const;
};

struct Module {
  std::deque<Type> types;
  std::deque<Attribute> attributes;
  std::deque<Value> values;
  std::deque<Operation> operations;
  // A block without arguments, which holds the functions.
  Block top;

  // Returns a function; null: no function has that name.
  const Operation* Function(std::string_view symbol) const;
  // The function that is the kernel: the first that no window is computed by.
  const Operation* Main() const;
};

// Bits of an element; 0: not known.
int64_t BitsOf(const Type& scalar);
// Whether a reference names an array outside of the kernel's memory.
bool IsInHbm(const Type& reference);
// "file:line" of the innermost place that a location names; empty: it names none.
std::string PlaceOf(const Attribute* location);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_MODULE_H_
