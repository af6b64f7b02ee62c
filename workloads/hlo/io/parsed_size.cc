#include "workloads/hlo/io/parsed_size.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>

#include <map>
#include <memory>
#include <vector>

namespace tpusim::hlo {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// An entry of a map is a node of a hash table with two strings.
constexpr int64_t kMapEntryBytes = 160;
// A string beside its characters, with the pointer to it.
constexpr int64_t kStringBytes = 40;
// A number in a list; one of a field that the schema does not have is kept too.
constexpr int64_t kNumberBytes = 8, kUnknownBytes = 16;
constexpr int kMaxDepth = 100;  // the parser gives up there

// The facts of a message type that the walk needs.
struct Type {
  int64_t bytes = 0;  // of an empty one, with the pointer to it
  struct Field {
    bool known = false;
    const Type* message = nullptr;
    bool text = false;
  };
  std::vector<Field> fields;  // by number
};

// Types refer to each other in circles.
class MessageTypes {
 public:
  const Type& Of(const Descriptor& descriptor) {
    const auto [entry, is_new] = types_.try_emplace(&descriptor);
    if (!is_new) return *entry->second;
    entry->second = std::make_unique<Type>();
    Type& type = *entry->second;
    type.bytes = kMapEntryBytes;
    if (!descriptor.options().map_entry()) {
      const auto* empty =
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(&descriptor);
      type.bytes = static_cast<int64_t>(empty->SpaceUsedLong() + sizeof(void*));
    }
    for (int n = 0; n < descriptor.field_count(); ++n) {
      const FieldDescriptor& field = *descriptor.field(n);
      const auto number = static_cast<size_t>(field.number());
      if (type.fields.size() <= number) type.fields.resize(number + 1);
      type.fields[number] = {
          .known = true,
          .message = field.message_type() == nullptr ? nullptr : &Of(*field.message_type()),
          .text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING};
    }
    return type;
  }

 private:
  std::map<const Descriptor*, std::unique_ptr<Type>> types_;  // looked up, never iterated
};

class WireWalk {
 public:
  explicit WireWalk(int64_t limit) : limit_(limit) {}

  // False: damaged. Above the limit the rest is not looked at.
  bool Message(std::string_view wire, const Type& type, int depth) {
    size_ += type.bytes;
    while (!wire.empty()) {
      uint64_t tag = 0, value = 0;
      if (size_ > limit_) return true;
      if (!Varint(wire, tag)) return false;
      const uint64_t number = tag >> 3;
      const Type::Field field = number < type.fields.size() ? type.fields[number] : Type::Field();
      size_ += field.known ? 0 : kUnknownBytes;
      switch (tag & 7) {
        case 0:
          if (!Varint(wire, value)) return false;
          size_ += kNumberBytes;
          break;
        case 1:
        case 5: {
          const size_t width = (tag & 7) == 1 ? 8 : 4;
          if (wire.size() < width) return false;
          wire.remove_prefix(width);
          size_ += kNumberBytes;
          break;
        }
        case 2: {
          if (!Varint(wire, value) || value > wire.size()) return false;
          const std::string_view inside = wire.substr(0, value);
          wire.remove_prefix(value);
          if (field.message != nullptr && depth < kMaxDepth) {
            if (!Message(inside, *field.message, depth + 1)) return false;
          } else if (field.text || !field.known) {
            size_ += kStringBytes + static_cast<int64_t>(value);
          } else {
            size_ += kNumberBytes * static_cast<int64_t>(value);  // a byte can be a number
          }
          break;
        }
        case 3:  // a group, which no schema of ours has: its fields count as ours
        case 4:
          break;
        default:
          return false;
      }
    }
    return true;
  }

  int64_t size() const { return size_; }

 private:
  static bool Varint(std::string_view& wire, uint64_t& value) {
    value = 0;
    for (size_t n = 0; n < wire.size() && n < 10; ++n) {
      const auto byte = static_cast<unsigned char>(wire[n]);
      value |= static_cast<uint64_t>(byte & 0x7f) << (7 * n);
      if (byte < 0x80) {
        wire.remove_prefix(n + 1);
        return true;
      }
    }
    return false;
  }

  const int64_t limit_;
  int64_t size_ = 0;
};

}  // namespace

std::optional<int64_t> ParsedSize(std::string_view wire, const Descriptor& type, int64_t limit) {
  static MessageTypes& types = *new MessageTypes;
  WireWalk walk(limit);
  if (!walk.Message(wire, types.Of(type), 0)) return std::nullopt;
  return walk.size();
}

}  // namespace tpusim::hlo
