#include "workloads/hlo/io/text_attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/reflection.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/hlo/io/sharding_text.h"
#include "workloads/hlo/io/text_structures.h"
#include "workloads/hlo/io/text_values.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/shape_proto.h"

namespace tpusim::hlo {
namespace {

using google::protobuf::FieldDescriptor;

// The text that is read, and the fields that it fills.
struct AttributeReader {
  TextCursor& text;
  TextAttributes& out;
};

enum class Printed {
  kAlways,
  kIfSet,  // not if the field, or the text, is empty
  kIfAboveOne,
  kNever,  // read only
};
enum class Style { kPlain, kQuoted, kLower };

// An attribute of some opcodes. Most are a field of the instruction's message, which says by its
// type how it is read and printed; the others have two functions.
struct Attribute {
  std::string_view name;
  std::vector<Opcode> opcodes;  // none: any
  std::string_view field;       // a.b: field b of the message in field a
  Printed printed = Printed::kAlways;
  Style style = Style::kPlain;
  absl::Status (*parse)(AttributeReader&) = nullptr;
  std::string (*print)(const Instruction&) = nullptr;

  bool IsOf(Opcode opcode) const {
    return opcodes.empty() || std::find(opcodes.begin(), opcodes.end(), opcode) != opcodes.end();
  }
};

// ---- What has no field of its own ------------------------------------------

absl::StatusOr<std::vector<NameInText>> ParseNames(TextCursor& text) {
  std::vector<NameInText> names;
  RETURN_IF_ERROR(text.Expect("{"));
  if (text.Take("}")) return names;
  do {
    const size_t at = text.Begin();
    ASSIGN_OR_RETURN(std::string name, text.Name());
    names.push_back({std::move(name), at});
  } while (text.Take(","));
  RETURN_IF_ERROR(text.Expect("}"));
  return names;
}

template <typename Named>
std::vector<std::string> NamesText(const std::vector<Named*>& named) {
  std::vector<std::string> names;
  for (const Named* one : named) names.push_back("%" + NameText(one->name()));
  return names;
}

template <size_t place>
absl::Status ParseCalled(AttributeReader& r) {
  const size_t at = r.text.Begin();
  std::string name;
  if (r.text.Peek() == '{') {
    RETURN_IF_ERROR(r.text.Balanced().status());
  } else {
    ASSIGN_OR_RETURN(name, r.text.Name());
  }
  if (r.out.called.size() <= place) r.out.called.resize(place + 1);
  r.out.called[place] = {std::move(name), at};
  return absl::OkStatus();
}

template <size_t place>
std::string CalledText(const Instruction& i) {
  return place < i.called().size() ? "%" + NameText(i.called()[place]->name()) : "";
}

absl::Status ParseAllCalled(AttributeReader& r) {
  ASSIGN_OR_RETURN(r.out.called, ParseNames(r.text));
  return absl::OkStatus();
}

std::string AllCalledText(const Instruction& i) {
  if (i.called().empty()) return "";
  return fmt::format("{{{}}}", fmt::join(NamesText(i.called()), ","));
}

// Writes the callees of every opcode that has no names of its own for them.
std::string AppliedText(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kWhile:
    case Opcode::kSelectAndScatter:
    case Opcode::kFusion:
    case Opcode::kAsyncStart:
    case Opcode::kAsyncUpdate:
    case Opcode::kAsyncDone:
    case Opcode::kConditional:
    case Opcode::kCustomCall:
      return "";
    default:
      return CalledText<0>(i);
  }
}

absl::Status ParseControlPredecessors(AttributeReader& r) {
  ASSIGN_OR_RETURN(r.out.control_predecessors, ParseNames(r.text));
  return absl::OkStatus();
}

std::string ControlPredecessorsText(const Instruction& i) {
  if (i.control_predecessors().empty()) return "";
  return fmt::format("{{{}}}", fmt::join(NamesText(i.control_predecessors()), ", "));
}

// One of the list that other opcodes have as `dimensions`.
absl::Status ParseIotaDimension(AttributeReader& r) {
  ASSIGN_OR_RETURN(const int64_t dimension, r.text.Integer());
  r.out.proto.add_dimensions(dimension);
  return absl::OkStatus();
}

std::string IotaDimensionText(const Instruction& i) { return std::to_string(OnlyDimension(i)); }

std::string DimensionsText(const Instruction& i) {
  const auto& dimensions = i.attrs().dimensions();
  const bool none =
      i.opcode() == Opcode::kIota || (dimensions.empty() && i.opcode() != Opcode::kBroadcast);
  return none ? "" : fmt::format("{{{}}}", fmt::join(dimensions, ","));
}

// HloInstructionProto.is_associative of a scan, which is 0 where nothing is known.
constexpr int32_t kAssociative = 1, kNotAssociative = 2;

absl::Status ParseAssociative(AttributeReader& r) {
  ASSIGN_OR_RETURN(const bool value, r.text.Bool());
  r.out.proto.set_is_associative(value ? kAssociative : kNotAssociative);
  return absl::OkStatus();
}

std::string AssociativeText(const Instruction& i) {
  if (i.attrs().is_associative() == 0) return "";
  return i.attrs().is_associative() == kAssociative ? "true" : "false";
}

absl::Status ParseOutfeedShape(AttributeReader& r) {
  ASSIGN_OR_RETURN(const Shape shape, ParseShape(r.text));
  *r.out.proto.mutable_outfeed_shape() = ShapeToProto(shape);
  return absl::OkStatus();
}

std::string OutfeedShapeText(const Instruction& i) {
  if (!i.attrs().has_outfeed_shape()) return "";
  const absl::StatusOr<Shape> shape = ShapeFromProto(i.attrs().outfeed_shape());
  return shape.ok() ? shape->ToString(true) : "";
}

std::string ChannelText(const Instruction& i) {
  return HasChannel(i) ? std::to_string(i.attrs().channel_id()) : "";
}

absl::Status ParseShardingOf(AttributeReader& r) {
  ASSIGN_OR_RETURN(*r.out.proto.mutable_sharding(), ParseSharding(r.text));
  return absl::OkStatus();
}

std::string ShardingOf(const Instruction& i) {
  return i.attrs().has_sharding() ? ShardingText(i.attrs().sharding()) : "";
}

absl::Status ParseFrontend(AttributeReader& r) {
  return ParseFrontendAttributes(r.text, *r.out.proto.mutable_frontend_attributes());
}

std::string FrontendText(const Instruction& i) {
  const pb::FrontendAttributes& attributes = i.attrs().frontend_attributes();
  return attributes.map().empty() ? "" : FrontendAttributesText(attributes);
}

template <absl::Status (*parse)(TextCursor&, pb::HloInstructionProto&)>
absl::Status Parse(AttributeReader& r) {
  return parse(r.text, r.out.proto);
}

template <std::string (*print)(const pb::HloInstructionProto&)>
std::string Print(const Instruction& i) {
  return print(i.attrs());
}

Attribute Form(std::string_view name, std::vector<Opcode> opcodes,
               absl::Status (*parse)(AttributeReader&),
               std::string (*print)(const Instruction&) = nullptr,
               Printed printed = Printed::kIfSet) {
  if (print == nullptr) printed = Printed::kNever;
  return {name, std::move(opcodes), "", printed, Style::kPlain, parse, print};
}

// ---- The table -------------------------------------------------------------

// In the order in which attributes are printed. Where a name means different things, the first
// row is the one for opcodes that have none of them.
const std::vector<Attribute>& Attributes() {
  using enum Opcode;
  using enum Printed;
  using enum Style;
  // clang-format off
  static const auto* const rows = new std::vector<Attribute>{
      // What only some opcodes have.
      {"index", {kGetTupleElement}, "tuple_index"},
      {"direction", {kCompare}, "comparison_direction"},
      {"type", {kCompare}, "comparison_type", kIfSet},
      Form("slice", {kSlice}, Parse<ParseSlice>, Print<SliceText>),
      {"dynamic_slice_sizes", {kDynamicSlice}, "dynamic_slice_sizes"},
      Form("padding", {kPad}, Parse<ParsePadding>, Print<PaddingText>, kAlways),
      Form("iota_dimension", {kIota}, ParseIotaDimension, IotaDimensionText),
      {"kind", {kFusion}, "fusion_kind"},
      {"custom_call_target", {kCustomCall}, "custom_call_target", kAlways, kQuoted},
      {"custom_call_has_side_effect", {kCustomCall}, "custom_call_has_side_effect", kIfSet},
      Form("output_to_operand_aliasing", {kCustomCall}, Parse<ParseOutputAliasing>, Print<OutputAliasingText>),
      {"api_version", {kCustomCall}, "custom_call_api_version", kNever},
      {"k", {kTopk}, "k"},
      {"largest", {kTopk}, "largest"},
      {"fft_type", {kFft}, "fft_type"},
      {"fft_length", {kFft}, "fft_length"},
      {"exponent_bits", {kReducePrecision}, "exponent_bits"},
      {"mantissa_bits", {kReducePrecision}, "mantissa_bits"},
      {"distribution", {kRng}, "distribution", kAlways, kLower},
      {"left_side", {kTriangularSolve}, "triangular_solve_options.left_side", kIfSet},
      {"lower", {kCholesky}, "cholesky_options.lower"},
      {"lower", {kTriangularSolve}, "triangular_solve_options.lower", kIfSet},
      {"unit_diagonal", {kTriangularSolve}, "triangular_solve_options.unit_diagonal", kIfSet},
      {"transpose_a", {kTriangularSolve}, "triangular_solve_options.transpose_a"},
      {"is_reverse", {kScan}, "is_reverse", kIfSet},
      {"num_carries", {kScan}, "num_carries"},
      Form("is_associative", {kScan}, ParseAssociative, AssociativeText),
      Form("domain", {kDomain}, Parse<ParseDomain>, Print<DomainText>),
      {"infeed_config", {kInfeed}, "infeed_config", kIfSet, kQuoted},
      {"outfeed_config", {kOutfeed}, "outfeed_config", kIfSet, kQuoted},
      Form("outfeed_shape", {kOutfeed}, ParseOutfeedShape, OutfeedShapeText),
      {"is_host_transfer", {kSend, kSendDone, kRecv, kRecvDone}, "is_host_transfer", kIfSet},
      {"cross_program_prefetch_index", {kCopyStart}, "cross_program_prefetch_index", kIfSet},
      {"async_execution_thread", {kAsyncStart}, "async_execution_thread", kIfSet, kQuoted},
      {"epsilon", {kBatchNormGrad, kBatchNormInference, kBatchNormTraining}, "epsilon"},
      {"feature_index", {kBatchNormGrad, kBatchNormInference, kBatchNormTraining}, "feature_index"},
      {"delta", {kRngGetAndUpdateState}, "delta"},
      Form("dim_labels", {kConvolution}, Parse<ParseConvolutionLabels>, Print<ConvolutionLabelsText>),
      {"feature_group_count", {kConvolution}, "feature_group_count", kIfAboveOne},
      {"batch_group_count", {kConvolution}, "batch_group_count", kIfAboveOne},
      // Products.
      Form("algorithm", {kDot}, Parse<ParseDotAlgorithm>),
      {"algorithm", {kRngBitGenerator}, "rng_algorithm"},
      {"lhs_batch_dims", {kDot, kScaledDot}, "dot_dimension_numbers.lhs_batch_dimensions", kIfSet},
      {"lhs_contracting_dims", {kDot, kScaledDot}, "dot_dimension_numbers.lhs_contracting_dimensions"},
      {"rhs_batch_dims", {kDot, kScaledDot}, "dot_dimension_numbers.rhs_batch_dimensions", kIfSet},
      {"rhs_contracting_dims", {kDot, kScaledDot}, "dot_dimension_numbers.rhs_contracting_dimensions"},
      {"lhs_batch_dims", {kRaggedDot}, "ragged_dot_dimension_numbers.dot_dimension_numbers.lhs_batch_dimensions", kIfSet},
      {"lhs_contracting_dims", {kRaggedDot}, "ragged_dot_dimension_numbers.dot_dimension_numbers.lhs_contracting_dimensions"},
      {"rhs_batch_dims", {kRaggedDot}, "ragged_dot_dimension_numbers.dot_dimension_numbers.rhs_batch_dimensions", kIfSet},
      {"rhs_contracting_dims", {kRaggedDot}, "ragged_dot_dimension_numbers.dot_dimension_numbers.rhs_contracting_dimensions"},
      {"lhs_ragged_dims", {kDot, kScaledDot, kRaggedDot}, "ragged_dot_dimension_numbers.lhs_ragged_dimensions", kIfSet},
      {"rhs_group_dims", {kDot, kScaledDot, kRaggedDot}, "ragged_dot_dimension_numbers.rhs_group_dimensions", kIfSet},
      // Gather and scatter.
      {"offset_dims", {kGather}, "gather_dimension_numbers.offset_dims"},
      {"collapsed_slice_dims", {kGather}, "gather_dimension_numbers.collapsed_slice_dims"},
      {"start_index_map", {kGather}, "gather_dimension_numbers.start_index_map"},
      {"operand_batching_dims", {kGather}, "gather_dimension_numbers.operand_batching_dims", kIfSet},
      {"start_indices_batching_dims", {kGather}, "gather_dimension_numbers.start_indices_batching_dims", kIfSet},
      {"index_vector_dim", {kGather}, "gather_dimension_numbers.index_vector_dim"},
      {"slice_sizes", {kCollectivePermute, kCollectivePermuteStart}, "dynamic_slice_sizes", kIfSet},
      {"slice_sizes", {kGather}, "gather_slice_sizes"},
      {"update_window_dims", {kScatter}, "scatter_dimension_numbers.update_window_dims"},
      {"inserted_window_dims", {kScatter}, "scatter_dimension_numbers.inserted_window_dims"},
      {"scatter_dims_to_operand_dims", {kScatter}, "scatter_dimension_numbers.scatter_dims_to_operand_dims"},
      {"input_batching_dims", {kScatter}, "scatter_dimension_numbers.input_batching_dims", kIfSet},
      {"scatter_indices_batching_dims", {kScatter}, "scatter_dimension_numbers.scatter_indices_batching_dims", kIfSet},
      {"index_vector_dim", {kScatter}, "scatter_dimension_numbers.index_vector_dim"},
      // What several kinds of opcodes have.
      Form("window", {}, Parse<ParseWindow>, Print<WindowText>),
      {"dimensions", {}, "dimensions", kIfSet, kPlain, nullptr, DimensionsText},
      {"is_stable", {}, "is_stable", kIfSet},
      {"indices_are_sorted", {}, "indices_are_sorted", kIfSet},
      {"unique_indices", {}, "unique_indices", kIfSet},
      // Collectives.
      {"channel_id", {}, "channel_id", kIfSet, kPlain, nullptr, ChannelText},
      Form("replica_groups", {}, Parse<ParseReplicaGroups>, Print<ReplicaGroupsText>),
      Form("source_target_pairs", {}, Parse<ParseSourceTargetPairs>, Print<SourceTargetPairsText>),
      {"use_global_device_ids", {}, "use_global_device_ids", kIfSet},
      {"constrain_layout", {}, "constrain_layout", kNever},
      // Which computations are called.
      Form("condition", {kWhile}, ParseCalled<1>, CalledText<1>),
      Form("body", {kWhile}, ParseCalled<0>, CalledText<0>),
      Form("select", {kSelectAndScatter}, ParseCalled<0>, CalledText<0>),
      Form("scatter", {kSelectAndScatter}, ParseCalled<1>, CalledText<1>),
      Form("calls", {kFusion, kAsyncStart}, ParseCalled<0>, CalledText<0>),
      Form("true_computation", {kConditional}, ParseCalled<0>),
      Form("false_computation", {kConditional}, ParseCalled<1>),
      Form("branch_computations", {kConditional}, ParseAllCalled, AllCalledText),
      Form("called_computations", {kCustomCall}, ParseAllCalled, AllCalledText),
      Form("to_apply", {}, ParseCalled<0>, AppliedText),
      // What every instruction may have.
      Form("operand_precision", {}, Parse<ParsePrecision>, Print<PrecisionText>),
      Form("sharding", {}, ParseShardingOf, ShardingOf),
      Form("frontend_attributes", {}, ParseFrontend, FrontendText),
      Form("control-predecessors", {}, ParseControlPredecessors, ControlPredecessorsText),
      Form("metadata", {}, Parse<ParseMetadata>, MetadataText),
      {"backend_config", {}, "backend_config", kIfSet, kQuoted, Parse<ParseBackendConfig>},
  };
  // clang-format on
  return *rows;
}

// Attributes that XLA writes for its own later passes: they are read and left out.
constexpr std::string_view kOfNoInterest[] = {"operand_layout_constraints",
                                              "schedule",
                                              "origin",
                                              "statistics",
                                              "parameter_replication",
                                              "is_cross_program_prefetch",
                                              "result_accuracy",
                                              "all_reduce_id",
                                              "convolution_kind",
                                              "is_composite"};

// ---- Fields of the message -------------------------------------------------

// The fields of a path, from the outermost.
std::vector<const FieldDescriptor*> FieldsOf(std::string_view path) {
  std::vector<const FieldDescriptor*> fields;
  const auto* message = pb::HloInstructionProto::descriptor();
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    const FieldDescriptor* field = message->FindFieldByName(std::string(name));
    TPUSIM_CHECK(field != nullptr, "no field of an instruction: " + std::string(name));
    fields.push_back(field);
    message = field->message_type();
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  return fields;
}

// A row with the fields of its path.
struct AttributeRow {
  const Attribute* attribute = nullptr;
  std::vector<const FieldDescriptor*> path;
};

struct Table {
  std::vector<AttributeRow> rows;
  std::unordered_map<std::string_view, std::vector<const AttributeRow*>> by_name;
  std::array<std::vector<const AttributeRow*>, kNumOpcodes> printed;  // by opcode

  Table() {
    for (const Attribute& a : Attributes()) rows.push_back({&a, FieldsOf(a.field)});
    for (const AttributeRow& row : rows) {
      by_name[row.attribute->name].push_back(&row);
      if (row.attribute->printed == Printed::kNever) continue;
      for (int o = 0; o < kNumOpcodes; ++o) {
        if (row.attribute->IsOf(static_cast<Opcode>(o))) printed[o].push_back(&row);
      }
    }
  }
};

const Table& TheTable() {
  static const Table* const table = new Table();
  return *table;
}

const AttributeRow* RowNamed(std::string_view name, Opcode opcode) {
  const auto found = TheTable().by_name.find(name);
  if (found == TheTable().by_name.end()) return nullptr;
  for (const AttributeRow* row : found->second) {
    if (row->attribute->IsOf(opcode)) return row;
  }
  return found->second.front();
}

// Reads {1,2} or lists of lists, {{1,2},{3}}, whose numbers are one after the other in the file.
absl::StatusOr<std::vector<int64_t>> IntsOfLists(TextCursor& text) {
  const size_t begin = text.at();
  RETURN_IF_ERROR(text.Expect("{"));
  std::vector<int64_t> all;
  if (text.Peek() != '{') {
    text.set_at(begin);
    return text.IntList();
  }
  do {
    ASSIGN_OR_RETURN(const std::vector<int64_t> values, text.IntList());
    all.insert(all.end(), values.begin(), values.end());
  } while (text.Take(","));
  RETURN_IF_ERROR(text.Expect("}"));
  return all;
}

absl::Status ParseField(TextCursor& text, const AttributeRow& row,
                        google::protobuf::Message& instruction) {
  google::protobuf::Message* message = &instruction;
  for (size_t i = 0; i + 1 < row.path.size(); ++i) {
    message = message->GetReflection()->MutableMessage(message, row.path[i]);
  }
  const auto* reflection = message->GetReflection();
  const FieldDescriptor* field = row.path.back();
  if (field->is_repeated()) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntsOfLists(text));
    reflection->ClearField(message, field);
    for (const int64_t value : values) reflection->AddInt64(message, field, value);
    return absl::OkStatus();
  }
  const size_t begin = text.Begin();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: {
      ASSIGN_OR_RETURN(const bool value, text.Bool());
      reflection->SetBool(message, field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      ASSIGN_OR_RETURN(const int64_t value, text.Integer());
      reflection->SetInt32(message, field, static_cast<int32_t>(value));
      break;
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      ASSIGN_OR_RETURN(const int64_t value, text.Integer());
      reflection->SetInt64(message, field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      ASSIGN_OR_RETURN(const double value, text.Real());
      reflection->SetFloat(message, field, static_cast<float>(value));
      break;
    }
    case FieldDescriptor::CPPTYPE_ENUM: {  // in capitals or not
      const std::string word(text.Word());
      const auto& values = *field->enum_type();
      const auto* value = values.FindValueByName(word);
      if (value == nullptr) value = values.FindValueByName(WithCase(word, std::toupper));
      if (value == nullptr) {
        return text.ErrorAt(begin, fmt::format("there is no value '{}' here", word));
      }
      reflection->SetEnum(message, field, value);
      break;
    }
    default: {
      const bool quoted = text.Peek() == '"';
      ASSIGN_OR_RETURN(std::string value, quoted ? text.Quoted() : std::string(text.Word()));
      reflection->SetString(message, field, std::move(value));
    }
  }
  return absl::OkStatus();
}

// Appends ", name=value", unless the value is one that is not printed.
void AppendField(const AttributeRow& row, const google::protobuf::Message& instruction,
                 std::string& out) {
  const google::protobuf::Message* message = &instruction;
  for (size_t i = 0; i + 1 < row.path.size(); ++i) {
    message = &message->GetReflection()->GetMessage(*message, row.path[i]);
  }
  const auto* reflection = message->GetReflection();
  const FieldDescriptor* field = row.path.back();
  const Attribute& attribute = *row.attribute;
  const auto append = [&](const auto& value) {
    out += fmt::format(", {}={}", attribute.name, value);
  };
  if (field->is_repeated()) {
    const auto& values = reflection->GetRepeatedFieldRef<int64_t>(*message, field);
    if (values.empty() && attribute.printed == Printed::kIfSet) return;
    append(fmt::format("{{{}}}", fmt::join(values.begin(), values.end(), ",")));
    return;
  }
  if (attribute.printed == Printed::kIfSet && !reflection->HasField(*message, field)) return;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return append(reflection->GetBool(*message, field));
    case FieldDescriptor::CPPTYPE_INT32:
      return append(reflection->GetInt32(*message, field));
    case FieldDescriptor::CPPTYPE_INT64: {
      const int64_t value = reflection->GetInt64(*message, field);
      if (attribute.printed != Printed::kIfAboveOne || value > 1) append(value);
      return;
    }
    case FieldDescriptor::CPPTYPE_FLOAT:
      return append(fmt::format("{:g}", reflection->GetFloat(*message, field)));
    case FieldDescriptor::CPPTYPE_ENUM: {
      // A number that has no name is one of a later version's.
      const auto* value =
          field->enum_type()->FindValueByNumber(reflection->GetEnumValue(*message, field));
      const std::string name(value == nullptr ? "" : value->name());
      return append(attribute.style == Style::kLower ? WithCase(name, std::tolower) : name);
    }
    default: {
      const std::string value = reflection->GetString(*message, field);
      return append(attribute.style == Style::kQuoted ? QuotedText(value) : value);
    }
  }
}

}  // namespace

absl::Status ParseAttributes(TextCursor& text, Opcode opcode, bool inside,
                             TextAttributes& attributes) {
  AttributeReader reader{text, attributes};
  for (size_t before = text.at(); text.Take(","); before = text.at()) {
    const size_t begin = text.Begin();
    const std::string_view name = text.Word();
    if (inside && text.Peek() != '=') {  // the next operand
      text.set_at(before);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(text.Expect("="));
    const AttributeRow* row = RowNamed(name, opcode);
    if (row != nullptr) {
      RETURN_IF_ERROR(row->attribute->parse != nullptr ? row->attribute->parse(reader)
                                                       : ParseField(text, *row, attributes.proto));
    } else if (std::ranges::find(kOfNoInterest, name) != std::end(kOfNoInterest)) {
      RETURN_IF_ERROR(text.Value().status());
    } else {
      return text.ErrorAt(begin, fmt::format("there is no attribute '{}'", name));
    }
  }
  return absl::OkStatus();
}

std::string AttributesText(const Instruction& instruction) {
  std::string out;
  for (const AttributeRow* row : TheTable().printed[static_cast<size_t>(instruction.opcode())]) {
    const Attribute& attribute = *row->attribute;
    if (attribute.print == nullptr) {
      AppendField(*row, instruction.attrs(), out);
      continue;
    }
    const std::string value = attribute.print(instruction);
    if (value.empty() && attribute.printed == Printed::kIfSet) continue;
    out += fmt::format(", {}={}", attribute.name, value);
  }
  return out;
}

}  // namespace tpusim::hlo
