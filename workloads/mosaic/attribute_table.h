// The attributes and types of a bytecode file, decoded when they are asked for.
//
// Operations and other attributes name them by number. Those of MLIR's builtin dialect have
// encodings of their own, a number for the kind and then its parts; those of Mosaic's dialects are
// written as assembly text, of which is read what is asked for: the memory of a reference.
#ifndef TPUSIM_WORKLOADS_MOSAIC_ATTRIBUTE_TABLE_H_
#define TPUSIM_WORKLOADS_MOSAIC_ATTRIBUTE_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/mosaic/cursor.h"
#include "workloads/mosaic/module.h"

namespace tpusim::mosaic {

class AttributeTable {
 public:
  // Puts what it decodes into `module`, and what is wrong into `damage`.
  AttributeTable(const std::vector<std::string_view>& strings, Module* module, Damage* damage)
      : strings_(strings), module_(module), damage_(damage) {}

  // Reads encodings that lie one after another; `offsets` says how long each is and in what form.
  void Read(Cursor offsets, std::string_view encodings);

  // Returns what a number names. Null, with a record in `damage`: there is no such entry, or it is
  // of another kind.
  const Attribute* AttributeAt(uint64_t number);
  const Type* TypeAt(uint64_t number);
  std::string_view StringAt(uint64_t number);

 private:
  struct Entry {
    std::string_view encoding;
    bool text = false;  // in assembly
    bool begun = false;
    const Attribute* attribute = nullptr;
    const Type* type = nullptr;
  };

  Attribute DecodedAttribute(Cursor cursor);
  Type DecodedType(Cursor cursor);
  Type TextType(std::string_view text);
  std::vector<int64_t> Shape(Cursor& cursor);
  int64_t Integer(Cursor& cursor, const Type* type);
  void Locations(Cursor& cursor, size_t count, Attribute* attribute);
  // Returns the elements of a dense array or a constant.
  std::vector<int64_t> Elements(std::string_view bytes, const Type* element);

  const std::vector<std::string_view>& strings_;
  Module* module_;
  Damage* damage_;
  std::vector<Entry> attributes_, types_;
  int depth_ = 0;
};

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_ATTRIBUTE_TABLE_H_
