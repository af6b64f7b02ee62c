#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "mutate.h"
#include "workloads/hlo/hlo.pb.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/hlo/io/wire.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/workload.pb.h"

namespace tpusim::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::array<int64_t, 24> kIntegers = {0,
                                               1,
                                               -1,
                                               2,
                                               3,
                                               4,
                                               5,
                                               7,
                                               8,
                                               16,
                                               64,
                                               127,
                                               128,
                                               1000,
                                               65535,
                                               65536,
                                               int64_t{1} << 24,
                                               std::numeric_limits<int32_t>::max(),
                                               std::numeric_limits<int32_t>::min(),
                                               int64_t{1} << 32,
                                               int64_t{1} << 48,
                                               int64_t{1} << 62,
                                               std::numeric_limits<int64_t>::max(),
                                               std::numeric_limits<int64_t>::min()};

class Mutator {
 public:
  Mutator(Message* root, Random* random) : root_(*root), random_(*random) {}

  void MutateOnce() {
    all_.clear();
    Collect(&root_);
    Message* message = all_[Pick(all_.size())];
    const auto* descriptor = message->GetDescriptor();
    std::vector<const FieldDescriptor*> fields;
    // Mostly what is there.
    if (Pick(4) != 0) message->GetReflection()->ListFields(*message, &fields);
    if (fields.empty()) {
      if (descriptor->field_count() == 0) return;
      fields.push_back(descriptor->field(static_cast<int>(Pick(descriptor->field_count()))));
    }
    Mutate(message, fields[Pick(fields.size())]);
  }

 private:
  size_t Pick(size_t n) { return static_cast<size_t>(random_() % n); }

  void Collect(Message* message) {
    all_.push_back(message);
    const Reflection* reflection = message->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(*message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      if (!field->is_repeated()) {
        Collect(reflection->MutableMessage(message, field));
        continue;
      }
      for (int n = 0; n < reflection->FieldSize(*message, field); ++n) {
        Collect(reflection->MutableRepeatedMessage(message, field, n));
      }
    }
  }

  int64_t Integer(int64_t old) {
    switch (Pick(4)) {
      case 0:
        return static_cast<int64_t>(static_cast<uint64_t>(old) + 1);
      case 1:
        return static_cast<int64_t>(static_cast<uint64_t>(old) - 1);
      case 2:
        return static_cast<int64_t>(Pick(9));
      default:
        return kIntegers[Pick(kIntegers.size())];
    }
  }

  std::string Text(const FieldDescriptor* field, const std::string& old) {
    if (field->name() == "opcode" && Pick(16) != 0) {
      return std::string(hlo::OpcodeName(static_cast<hlo::Opcode>(Pick(hlo::kNumOpcodes))));
    }
    return Pick(4) == 0 ? "" : MutateBytes(old, &random_);
  }

  // Another message of the same type, from anywhere.
  const Message* Like(const Message& message) {
    std::vector<const Message*> same;
    for (const Message* other : all_) {
      if (other->GetDescriptor() == message.GetDescriptor() && other != &message) {
        same.push_back(other);
      }
    }
    return same.empty() ? nullptr : same[Pick(same.size())];
  }

  void CopyInto(Message* to) {
    // Making `to` may have taken another member of a oneof away.
    all_.clear();
    Collect(&root_);
    const Message* like = Like(*to);
    if (like == nullptr || like->ByteSizeLong() > 2000) return;
    // It may lie inside `to`, or `to` inside it.
    const std::string bytes = like->SerializePartialAsString();
    to->ParsePartialFromString(bytes);
  }

  void Mutate(Message* message, const FieldDescriptor* field) {
    const Reflection* r = message->GetReflection();
    if (Pick(12) == 0) return r->ClearField(message, field);
    if (!field->is_repeated()) return SetOne(message, field);
    const int size = r->FieldSize(*message, field);
    switch (size == 0 ? 0 : Pick(4)) {
      case 0:
        return AddOne(message, field);
      case 1:
        r->SwapElements(message, field, static_cast<int>(Pick(size)), size - 1);
        return r->RemoveLast(message, field);
      case 2:
        return r->SwapElements(message, field, static_cast<int>(Pick(size)),
                               static_cast<int>(Pick(size)));
      default:
        return SetElement(message, field, static_cast<int>(Pick(size)));
    }
  }

  void SetOne(Message* m, const FieldDescriptor* f) {
    const Reflection* r = m->GetReflection();
    switch (f->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return r->SetInt32(m, f, static_cast<int32_t>(Integer(r->GetInt32(*m, f))));
      case FieldDescriptor::CPPTYPE_INT64:
        return r->SetInt64(m, f, Integer(r->GetInt64(*m, f)));
      case FieldDescriptor::CPPTYPE_UINT32:
        return r->SetUInt32(m, f, static_cast<uint32_t>(Integer(r->GetUInt32(*m, f))));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r->SetUInt64(
            m, f, static_cast<uint64_t>(Integer(static_cast<int64_t>(r->GetUInt64(*m, f)))));
      case FieldDescriptor::CPPTYPE_BOOL:
        return r->SetBool(m, f, Pick(2) == 0);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return r->SetFloat(m, f, static_cast<float>(Integer(0)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return r->SetDouble(m, f, static_cast<double>(Integer(0)));
      case FieldDescriptor::CPPTYPE_ENUM:
        return r->SetEnumValue(m, f, static_cast<int>(Pick(f->enum_type()->value_count() + 1)));
      case FieldDescriptor::CPPTYPE_STRING:
        return r->SetString(m, f, Text(f, r->GetString(*m, f)));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return CopyInto(r->MutableMessage(m, f));
    }
  }

  void AddOne(Message* m, const FieldDescriptor* f) {
    const Reflection* r = m->GetReflection();
    switch (f->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return r->AddInt32(m, f, static_cast<int32_t>(Integer(0)));
      case FieldDescriptor::CPPTYPE_INT64:
        return r->AddInt64(m, f, Integer(0));
      case FieldDescriptor::CPPTYPE_UINT32:
        return r->AddUInt32(m, f, static_cast<uint32_t>(Integer(0)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r->AddUInt64(m, f, static_cast<uint64_t>(Integer(0)));
      case FieldDescriptor::CPPTYPE_BOOL:
        return r->AddBool(m, f, Pick(2) == 0);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return r->AddFloat(m, f, static_cast<float>(Integer(0)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return r->AddDouble(m, f, static_cast<double>(Integer(0)));
      case FieldDescriptor::CPPTYPE_ENUM:
        return r->AddEnumValue(m, f, static_cast<int>(Pick(f->enum_type()->value_count() + 1)));
      case FieldDescriptor::CPPTYPE_STRING:
        return r->AddString(m, f, Text(f, ""));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return CopyInto(r->AddMessage(m, f));
    }
  }

  void SetElement(Message* m, const FieldDescriptor* f, int n) {
    const Reflection* r = m->GetReflection();
    switch (f->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return r->SetRepeatedInt64(m, f, n, Integer(r->GetRepeatedInt64(*m, f, n)));
      case FieldDescriptor::CPPTYPE_INT32:
        return r->SetRepeatedInt32(m, f, n,
                                   static_cast<int32_t>(Integer(r->GetRepeatedInt32(*m, f, n))));
      case FieldDescriptor::CPPTYPE_STRING:
        return r->SetRepeatedString(m, f, n, Text(f, r->GetRepeatedString(*m, f, n)));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return CopyInto(r->MutableRepeatedMessage(m, f, n));
      default:  // one more and the old one away
        AddOne(m, f);
        r->SwapElements(m, f, n, r->FieldSize(*m, f) - 1);
        return r->RemoveLast(m, f);
    }
  }

  Message& root_;
  Random& random_;
  std::vector<Message*> all_;
};

void MutateSome(Message* message, Random* random) {
  const size_t count = 1 + static_cast<size_t>((*random)() % 4);
  for (size_t n = 0; n < count; ++n) Mutator(message, random).MutateOnce();
}

}  // namespace

std::optional<Input> ReadInput(const std::string& bytes) {
  const google::protobuf::LogSilencer silence;
  Input input;
  if (hlo::LooksLikeHloText(bytes)) {
    const auto parsed = hlo::ParseHloText(bytes);
    if (!parsed.ok()) return std::nullopt;
    input.module = hlo::ToProto(*parsed->module);
    if (parsed->num_partitions > 0) {
      input.workload.emplace();
      input.workload->set_format("tpusim.workload/1");
      input.workload->set_num_partitions(parsed->num_partitions);
    }
    return input;
  }
  tpusim::Workload workload;
  if (workload.ParsePartialFromString(bytes) && !workload.format().empty() &&
      input.module.ParsePartialFromString(workload.hlo_module())) {
    input.workload = std::move(workload);
    return input;
  }
  if (!input.module.ParsePartialFromString(bytes)) return std::nullopt;
  return input;
}

std::string WriteInput(Input input) {
  if (!input.workload.has_value()) return input.module.SerializePartialAsString();
  input.workload->set_hlo_module(input.module.SerializePartialAsString());
  return input.workload->SerializePartialAsString();
}

std::string MutateMessage(const std::string& bytes, Random* random) {
  std::optional<Input> input = ReadInput(bytes);
  if (!input.has_value()) return MutateBytes(bytes, random);
  if (input->workload.has_value() && (*random)() % 8 == 0) {
    MutateSome(&*input->workload, random);
  } else {
    MutateSome(&input->module, random);
  }
  return WriteInput(*std::move(input));
}

}  // namespace tpusim::fuzz
