#include "workloads/mosaic/bytecode.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/mosaic/attribute_table.h"
#include "workloads/mosaic/cursor.h"

namespace tpusim::mosaic {
namespace {

constexpr std::string_view kMagic("ML\xEFR", 4);  // number: letters
constexpr uint64_t kNewestVersion = 6;  // number: versions of MLIR bytecode
// Since when it has what: versions of dialects, regions in sections of their own, orders of uses,
// arguments without a place, properties beside attributes.
// number: versions of MLIR bytecode
constexpr uint64_t kDialectVersions = 1, kLazyRegions = 2, kUseLists = 3, kNoPlaces = 4,
                   kProperties = 5;  // number: versions of MLIR bytecode

enum SectionId : uint8_t {  // number: codes of MLIR bytecode
  kStrings = 0,
  kDialects = 1,
  kAttributes = 2,
  kAttributeOffsets = 3,
  kIr = 4,
  kPropertyTable = 8,
  kSections = 9,
};

// The parts that an operation has.
enum Has : uint8_t {  // number: codes of MLIR bytecode
  kHasAttributes = 1,
  kHasResults = 2,
  kHasOperands = 4,
  kHasSuccessors = 8,
  kHasRegions = 16,
  kHasUseLists = 32,
  kHasProperties = 64,
};

// Regions that are inside of one another; more is no kernel.
constexpr int kDeepestRegion = 100;  // number: more is no kernel
// Names of operations that are kept from one version of Mosaic to the next begin so.
constexpr std::string_view kStable = "stable_mosaic.";

class Reader {
 public:
  Reader(std::string_view bytes, Module* module, Damage* damage)
      : bytes_(bytes), module_(module), damage_(damage), table_(strings_, module, damage) {}

  void Read() {
    Cursor file(bytes_, damage_);
    if (file.Bytes(kMagic.size()) != kMagic) return file.Fail("it is no MLIR bytecode");
    version_ = file.VarInt();
    if (version_ > kNewestVersion) {
      return file.Fail(fmt::format("its version {} of MLIR's bytecode is not known", version_));
    }
    file.CString();  // Who wrote it.
    while (!file.AtEnd()) {
      const auto [id, bytes] = Section(file);
      if (id < kSections) sections_[id] = bytes;
    }
    ReadStrings();
    ReadDialects();
    table_.Read(Cursor(sections_[kAttributeOffsets], damage_), sections_[kAttributes]);
    ReadProperties();
    Cursor ir(sections_[kIr], damage_);
    ReadBlock(ir, &module_->top);
  }

 private:
  std::pair<uint8_t, std::string_view> Section(Cursor& cursor) {
    const uint8_t id = cursor.Byte();
    const uint64_t size = cursor.VarInt();
    if ((id & 0x80) != 0) cursor.Align(cursor.VarInt());
    return {id & 0x7f, cursor.Bytes(size)};
  }

  void ReadStrings() {
    Cursor cursor(sections_[kStrings], damage_);
    std::vector<uint64_t> sizes(cursor.Count());
    for (uint64_t& size : sizes) size = cursor.VarInt();
    // The last one's comes first; a zero ends each.
    for (auto size = sizes.rbegin(); size != sizes.rend() && cursor.ok(); ++size) {
      std::string_view text = cursor.Bytes(*size);
      if (!text.empty()) text.remove_suffix(1);
      strings_.push_back(text);
    }
  }

  void ReadDialects() {
    Cursor cursor(sections_[kDialects], damage_);
    std::vector<std::string_view> dialects(cursor.Count());
    for (std::string_view& dialect : dialects) {
      uint64_t name = cursor.VarInt();
      if (version_ >= kDialectVersions) {
        if ((name & 1) != 0) Section(cursor);
        name >>= 1;
      }
      dialect = table_.StringAt(name);
    }
    if (version_ >= kProperties) cursor.VarInt();  // How many names there are.
    while (!cursor.AtEnd()) {
      const uint64_t dialect = cursor.VarInt();
      if (dialect >= dialects.size())
        return cursor.Fail("it names a dialect that it does not have");
      for (size_t left = cursor.Count(); left > 0 && cursor.ok(); --left) {
        uint64_t name = cursor.VarInt();
        if (version_ >= kProperties) name >>= 1;
        std::string full = fmt::format("{}.{}", dialects[dialect], table_.StringAt(name));
        if (full.starts_with(kStable)) full.erase(0, kStable.size());
        names_.push_back(std::move(full));
      }
    }
  }

  // Properties of operations whose dialect is not there to encode them: a dictionary's number.
  void ReadProperties() {
    if (sections_[kPropertyTable].empty()) return;
    Cursor cursor(sections_[kPropertyTable], damage_);
    for (size_t left = cursor.Count(); left > 0 && cursor.ok(); --left) {
      properties_.push_back(cursor.Bytes(cursor.VarInt()));
    }
  }

  void ReadBlock(Cursor& cursor, Block* block) {
    const uint64_t encoding = cursor.VarInt();
    if ((encoding & 1) != 0) {
      for (size_t left = cursor.Count(); left > 0 && cursor.ok(); --left) {
        uint64_t type = cursor.VarInt();
        bool placed = true;
        if (version_ >= kNoPlaces) {
          placed = (type & 1) != 0;
          type >>= 1;
        }
        if (placed) cursor.VarInt();
        block->arguments.push_back(Define(table_.TypeAt(type), nullptr));
      }
      if (version_ >= kUseLists && cursor.Byte() != 0) SkipUseLists(cursor);
    }
    for (uint64_t left = encoding >> 1; left > 0 && cursor.ok(); --left) {
      block->operations.push_back(ReadOperation(cursor));
    }
  }

  const Operation* ReadOperation(Cursor& cursor) {
    Operation& operation = module_->operations.emplace_back();
    const uint64_t name = cursor.VarInt();
    if (name < names_.size()) {
      operation.name = names_[name];
    } else {
      cursor.Fail("it names an operation that it does not have");
    }
    const uint8_t has = cursor.Byte();
    operation.location = table_.AttributeAt(cursor.VarInt());
    if ((has & kHasAttributes) != 0) operation.attributes = table_.AttributeAt(cursor.VarInt());
    if ((has & kHasProperties) != 0) AddProperties(cursor.VarInt(), &operation);
    if ((has & kHasResults) != 0) {
      for (size_t left = cursor.Count(); left > 0 && cursor.ok(); --left) {
        operation.results.push_back(Define(table_.TypeAt(cursor.VarInt()), &operation));
      }
    }
    if ((has & kHasOperands) != 0) {
      for (size_t left = cursor.Count(); left > 0 && cursor.ok(); --left) {
        const Value* operand = Used(cursor.VarInt());
        if (operand != nullptr && operand->defined_by == &operation) {
          cursor.Fail("an operation in it uses its own result");
        }
        operation.operands.push_back(operand);
      }
    }
    if ((has & kHasSuccessors) != 0) {
      for (size_t left = cursor.Count(); left > 0 && cursor.ok(); --left) cursor.VarInt();
    }
    if ((has & kHasUseLists) != 0) SkipUseLists(cursor);
    if ((has & kHasRegions) != 0) {
      const uint64_t encoding = cursor.VarInt();
      for (uint64_t left = encoding >> 1; left > 0 && cursor.ok(); --left) {
        ReadRegion(cursor, (encoding & 1) != 0, &operation.regions.emplace_back());
      }
    }
    return &operation;
  }

  // Beside the attributes, or as them.
  void AddProperties(uint64_t number, Operation* operation) {
    if (number >= properties_.size()) return damage_->Set("it names properties it does not have");
    Cursor cursor(properties_[number], damage_);
    const Attribute* found = table_.AttributeAt(cursor.VarInt());
    if (found == nullptr || operation->attributes == nullptr) {
      operation->attributes = found;
      return;
    }
    Attribute& both = module_->attributes.emplace_back(*operation->attributes);
    both.entries.insert(both.entries.end(), found->entries.begin(), found->entries.end());
    operation->attributes = &both;
  }

  void SkipUseLists(Cursor& cursor) {
    size_t lists = cursor.Count();
    // One list is that of the only value there is; of several, each says whose it is.
    const bool one = lists == 1;
    for (; lists > 0 && cursor.ok(); --lists) {
      if (!one) cursor.VarInt();
      for (uint64_t left = cursor.VarInt() >> 1; left > 0 && cursor.ok(); --left) cursor.VarInt();
    }
  }

  void ReadRegion(Cursor& cursor, bool isolated, Region* region) {
    if (++depth_ > kDeepestRegion) return cursor.Fail("its regions are nested too deeply");
    if (isolated && version_ >= kLazyRegions) {
      Cursor section(Section(cursor).second, damage_);
      ReadBlocks(section, isolated, region);
    } else {
      ReadBlocks(cursor, isolated, region);
    }
    --depth_;
  }

  // Values are numbered through all regions around, unless nothing of those is seen inside. A
  // region has its numbers before the regions in it.
  void ReadBlocks(Cursor& cursor, bool isolated, Region* region) {
    const size_t blocks = cursor.Count();
    if (blocks == 0) return;
    const size_t values = cursor.Count();
    std::vector<const Value*> outside;
    if (isolated) outside.swap(values_);
    const size_t before = values_.size();
    const size_t next = std::exchange(next_, before);
    values_.resize(before + values);
    for (size_t n = 0; n < blocks && cursor.ok(); ++n) {
      ReadBlock(cursor, &region->blocks.emplace_back());
    }
    values_.resize(before);
    if (isolated) outside.swap(values_);
    next_ = next;
  }

  const Value* Define(const Type* type, const Operation* by) {
    const Value* value = &module_->values.emplace_back(Value{type, by});
    if (next_ < values_.size()) {
      values_[next_] = value;
    } else if (depth_ > 0) {
      damage_->Set("it has more values than it says");
    }
    ++next_;
    return value;
  }

  const Value* Used(uint64_t number) {
    if (number < values_.size() && values_[number] != nullptr) return values_[number];
    damage_->Set("a value in it is used before it is there");
    return nullptr;
  }

  std::string_view bytes_;
  Module* module_;
  Damage* damage_;
  uint64_t version_ = 0;
  std::array<std::string_view, kSections> sections_ = {};
  std::vector<std::string_view> strings_;
  AttributeTable table_;
  std::vector<std::string> names_;
  std::vector<std::string_view> properties_;
  std::vector<const Value*> values_;
  size_t next_ = 0;  // The number of the value that is defined next.
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ReadBytecode(std::string_view bytes) {
  auto module = std::make_unique<Module>();
  Damage damage;
  Reader reader(bytes, module.get(), &damage);
  reader.Read();
  if (!damage.what.empty()) {
    return UserError(fmt::format("the body of the kernel cannot be read: {}", damage.what));
  }
  // The operations of a file are those of the one module in it.
  if (module->top.operations.size() == 1 && module->top.operations[0]->name == "builtin.module" &&
      !module->top.operations[0]->regions.empty() &&
      module->top.operations[0]->regions[0].blocks.size() == 1) {
    Block functions = module->top.operations[0]->regions[0].blocks[0];
    module->top = std::move(functions);
  }
  return module;
}

}  // namespace tpusim::mosaic
