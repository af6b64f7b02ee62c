#include "workloads/hlo/io/text_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/hlo/io/text_structures.h"
#include "workloads/hlo/io/text_values.h"

namespace tpusim::hlo {
namespace {

// What is read, and where it goes.
struct Reader {
  TextCursor& text;
  Opcode opcode;
  TextAttributes& out;
  pb::HloInstructionProto& proto = out.proto;
};

using Handler = absl::Status (*)(Reader&);

template <typename Field>
absl::Status Ints(Reader& r, Field* field) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, r.text.IntList());
  field->Clear();
  for (const int64_t value : values) field->Add(static_cast<typename Field::value_type>(value));
  return absl::OkStatus();
}

template <typename Message, typename Value>
absl::Status Int(Reader& r, Message* to, void (Message::*set)(Value)) {
  ASSIGN_OR_RETURN(const int64_t value, r.text.Integer());
  (to->*set)(static_cast<Value>(value));
  return absl::OkStatus();
}

template <typename Message>
absl::Status Flag(Reader& r, Message* to, void (Message::*set)(bool)) {
  ASSIGN_OR_RETURN(const bool value, r.text.Bool());
  (to->*set)(value);
  return absl::OkStatus();
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

// An enumerator, in capitals or not.
template <typename Enum>
absl::Status Enumerator(Reader& r, bool (*parse)(const std::string&, Enum*), Enum* value) {
  const size_t begin = r.text.Begin();
  const std::string word(r.text.Word());
  if (parse(word, value) || parse(Upper(word), value)) return absl::OkStatus();
  return r.text.ErrorAt(begin, fmt::format("there is no value '{}' here", word));
}

absl::Status Called(Reader& r, size_t place) {
  NameInText called;
  called.at = r.text.Begin();
  ASSIGN_OR_RETURN(called.name, r.text.Name());
  if (r.out.called.size() <= place) r.out.called.resize(place + 1);
  r.out.called[place] = std::move(called);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NameInText>> Names(Reader& r) {
  std::vector<NameInText> names;
  RETURN_IF_ERROR(r.text.Expect("{"));
  if (r.text.Take("}")) return names;
  do {
    NameInText name;
    name.at = r.text.Begin();
    ASSIGN_OR_RETURN(name.name, r.text.Name());
    names.push_back(std::move(name));
  } while (r.text.Take(","));
  RETURN_IF_ERROR(r.text.Expect("}"));
  return names;
}

absl::Status AllCalled(Reader& r) {
  ASSIGN_OR_RETURN(r.out.called, Names(r));
  return absl::OkStatus();
}

absl::Status Pairs(Reader& r) {
  RETURN_IF_ERROR(r.text.Expect("{"));
  if (r.text.Take("}")) return absl::OkStatus();
  do {
    const size_t begin = r.text.Begin();
    ASSIGN_OR_RETURN(const std::vector<int64_t> pair, r.text.IntList());
    if (pair.size() != 2) return r.text.ErrorAt(begin, "source and target are two numbers");
    auto* to = r.proto.add_source_target_pairs();
    to->set_source(pair[0]);
    to->set_target(pair[1]);
  } while (r.text.Take(","));
  return r.text.Expect("}");
}

absl::Status Precision(Reader& r) {
  RETURN_IF_ERROR(r.text.Expect("{"));
  if (r.text.Take("}")) return absl::OkStatus();
  do {
    pb::PrecisionConfig::Precision precision = pb::PrecisionConfig::DEFAULT;
    RETURN_IF_ERROR(Enumerator(r, pb::PrecisionConfig::Precision_Parse, &precision));
    r.proto.mutable_precision_config()->add_operand_precision(precision);
  } while (r.text.Take(","));
  return r.text.Expect("}");
}

// Of random generators, or of products.
absl::Status Algorithm(Reader& r) {
  if (r.opcode == Opcode::kRngBitGenerator) {
    pb::RandomAlgorithm algorithm = pb::RNG_DEFAULT;
    RETURN_IF_ERROR(Enumerator(r, pb::RandomAlgorithm_Parse, &algorithm));
    r.proto.set_rng_algorithm(algorithm);
    return absl::OkStatus();
  }
  const size_t begin = r.text.Begin();
  const std::string word = "ALG_" + Upper(r.text.Word());
  pb::PrecisionConfig::Algorithm algorithm = pb::PrecisionConfig::ALG_UNSET;
  if (!pb::PrecisionConfig::Algorithm_Parse(word, &algorithm)) {
    return r.text.ErrorAt(begin, "no algorithm is called so");
  }
  r.proto.mutable_precision_config()->set_algorithm(algorithm);
  return absl::OkStatus();
}

template <absl::Status (*parse)(TextCursor&, pb::HloInstructionProto&)>
absl::Status Structure(Reader& r) {
  return parse(r.text, r.proto);
}

pb::DotDimensionNumbers& DotOf(Reader& r) {
  return r.opcode == Opcode::kRaggedDot
             ? *r.proto.mutable_ragged_dot_dimension_numbers()->mutable_dot_dimension_numbers()
             : *r.proto.mutable_dot_dimension_numbers();
}

template <void (pb::HloInstructionProto::*set)(std::string&&)>
absl::Status QuotedOrWord(Reader& r) {
  if (r.text.Peek() == '"') {
    ASSIGN_OR_RETURN(std::string value, r.text.Quoted());
    (r.proto.*set)(std::move(value));
  } else {
    (r.proto.*set)(std::string(r.text.Word()));
  }
  return absl::OkStatus();
}

using Proto = pb::HloInstructionProto;

const std::map<std::string_view, Handler>& Handlers() {
  static const auto* const handlers = new std::map<std::string_view, Handler>{
      // Which computations are called.
      {"to_apply", [](Reader& r) { return Called(r, 0); }},
      {"calls", [](Reader& r) { return Called(r, 0); }},
      {"body", [](Reader& r) { return Called(r, 0); }},
      {"condition", [](Reader& r) { return Called(r, 1); }},
      {"select", [](Reader& r) { return Called(r, 0); }},
      {"scatter", [](Reader& r) { return Called(r, 1); }},
      {"true_computation", [](Reader& r) { return Called(r, 0); }},
      {"false_computation", [](Reader& r) { return Called(r, 1); }},
      {"branch_computations", AllCalled},
      {"called_computations", AllCalled},
      {"control-predecessors",
       [](Reader& r) -> absl::Status {
         ASSIGN_OR_RETURN(r.out.control_predecessors, Names(r));
         return absl::OkStatus();
       }},
      // What only some opcodes have.
      {"index", [](Reader& r) { return Int(r, &r.proto, &Proto::set_tuple_index); }},
      {"direction",
       [](Reader& r) {
         r.proto.set_comparison_direction(std::string(r.text.Word()));
         return absl::OkStatus();
       }},
      {"type",
       [](Reader& r) {
         r.proto.set_comparison_type(std::string(r.text.Word()));
         return absl::OkStatus();
       }},
      {"slice", Structure<ParseSlice>},
      {"dynamic_slice_sizes",
       [](Reader& r) { return Ints(r, r.proto.mutable_dynamic_slice_sizes()); }},
      {"slice_sizes",
       [](Reader& r) {
         return Ints(r, r.opcode == Opcode::kGather ? r.proto.mutable_gather_slice_sizes()
                                                    : r.proto.mutable_dynamic_slice_sizes());
       }},
      {"padding", Structure<ParsePadding>},
      {"dimensions", [](Reader& r) { return Ints(r, r.proto.mutable_dimensions()); }},
      {"iota_dimension",
       [](Reader& r) -> absl::Status {
         ASSIGN_OR_RETURN(const int64_t dimension, r.text.Integer());
         r.proto.add_dimensions(dimension);
         return absl::OkStatus();
       }},
      {"kind", QuotedOrWord<&Proto::set_fusion_kind>},
      {"custom_call_target", QuotedOrWord<&Proto::set_custom_call_target>},
      {"custom_call_has_side_effect",
       [](Reader& r) { return Flag(r, &r.proto, &Proto::set_custom_call_has_side_effect); }},
      {"output_to_operand_aliasing", Structure<ParseOutputAliasing>},
      {"api_version",
       [](Reader& r) -> absl::Status {
         pb::CustomCallApiVersion version = pb::API_VERSION_UNSPECIFIED;
         RETURN_IF_ERROR(Enumerator(r, pb::CustomCallApiVersion_Parse, &version));
         r.proto.set_custom_call_api_version(version);
         return absl::OkStatus();
       }},
      {"k", [](Reader& r) { return Int(r, &r.proto, &Proto::set_k); }},
      {"largest", [](Reader& r) { return Flag(r, &r.proto, &Proto::set_largest); }},
      {"fft_type",
       [](Reader& r) -> absl::Status {
         pb::FftType type = pb::FFT;
         RETURN_IF_ERROR(Enumerator(r, pb::FftType_Parse, &type));
         r.proto.set_fft_type(type);
         return absl::OkStatus();
       }},
      {"fft_length", [](Reader& r) { return Ints(r, r.proto.mutable_fft_length()); }},
      {"exponent_bits", [](Reader& r) { return Int(r, &r.proto, &Proto::set_exponent_bits); }},
      {"mantissa_bits", [](Reader& r) { return Int(r, &r.proto, &Proto::set_mantissa_bits); }},
      {"distribution",
       [](Reader& r) -> absl::Status {
         pb::RandomDistribution distribution = pb::RNG_INVALID;
         RETURN_IF_ERROR(Enumerator(r, pb::RandomDistribution_Parse, &distribution));
         r.proto.set_distribution(distribution);
         return absl::OkStatus();
       }},
      {"lower",
       [](Reader& r) -> absl::Status {
         ASSIGN_OR_RETURN(const bool lower, r.text.Bool());
         if (r.opcode == Opcode::kTriangularSolve) {
           r.proto.mutable_triangular_solve_options()->set_lower(lower);
         } else {
           r.proto.mutable_cholesky_options()->set_lower(lower);
         }
         return absl::OkStatus();
       }},
      {"left_side",
       [](Reader& r) {
         return Flag(r, r.proto.mutable_triangular_solve_options(),
                     &pb::TriangularSolveOptions::set_left_side);
       }},
      {"unit_diagonal",
       [](Reader& r) {
         return Flag(r, r.proto.mutable_triangular_solve_options(),
                     &pb::TriangularSolveOptions::set_unit_diagonal);
       }},
      {"transpose_a",
       [](Reader& r) -> absl::Status {
         auto transpose = pb::TriangularSolveOptions::TRANSPOSE_INVALID;
         RETURN_IF_ERROR(Enumerator(r, pb::TriangularSolveOptions::Transpose_Parse, &transpose));
         r.proto.mutable_triangular_solve_options()->set_transpose_a(transpose);
         return absl::OkStatus();
       }},
      {"domain", Structure<ParseDomain>},
      {"infeed_config", QuotedOrWord<&Proto::set_infeed_config>},
      {"outfeed_config", QuotedOrWord<&Proto::set_outfeed_config>},
      {"is_host_transfer",
       [](Reader& r) { return Flag(r, &r.proto, &Proto::set_is_host_transfer); }},
      {"cross_program_prefetch_index",
       [](Reader& r) { return Int(r, &r.proto, &Proto::set_cross_program_prefetch_index); }},
      {"async_execution_thread", QuotedOrWord<&Proto::set_async_execution_thread>},
      {"epsilon",
       [](Reader& r) -> absl::Status {
         ASSIGN_OR_RETURN(const double epsilon, r.text.Real());
         r.proto.set_epsilon(static_cast<float>(epsilon));
         return absl::OkStatus();
       }},
      {"feature_index", [](Reader& r) { return Int(r, &r.proto, &Proto::set_feature_index); }},
      {"delta", [](Reader& r) { return Int(r, &r.proto, &Proto::set_delta); }},
      {"algorithm", Algorithm},
      {"operand_precision", Precision},
      {"dim_labels", Structure<ParseConvolutionLabels>},
      {"feature_group_count",
       [](Reader& r) { return Int(r, &r.proto, &Proto::set_feature_group_count); }},
      {"batch_group_count",
       [](Reader& r) { return Int(r, &r.proto, &Proto::set_batch_group_count); }},
      {"window", Structure<ParseWindow>},
      {"is_stable", [](Reader& r) { return Flag(r, &r.proto, &Proto::set_is_stable); }},
      // Products.
      {"lhs_batch_dims",
       [](Reader& r) { return Ints(r, DotOf(r).mutable_lhs_batch_dimensions()); }},
      {"rhs_batch_dims",
       [](Reader& r) { return Ints(r, DotOf(r).mutable_rhs_batch_dimensions()); }},
      {"lhs_contracting_dims",
       [](Reader& r) { return Ints(r, DotOf(r).mutable_lhs_contracting_dimensions()); }},
      {"rhs_contracting_dims",
       [](Reader& r) { return Ints(r, DotOf(r).mutable_rhs_contracting_dimensions()); }},
      {"lhs_ragged_dims",
       [](Reader& r) {
         return Ints(
             r, r.proto.mutable_ragged_dot_dimension_numbers()->mutable_lhs_ragged_dimensions());
       }},
      {"rhs_group_dims",
       [](Reader& r) {
         return Ints(
             r, r.proto.mutable_ragged_dot_dimension_numbers()->mutable_rhs_group_dimensions());
       }},
      // Gather and scatter.
      {"offset_dims",
       [](Reader& r) {
         return Ints(r, r.proto.mutable_gather_dimension_numbers()->mutable_offset_dims());
       }},
      {"collapsed_slice_dims",
       [](Reader& r) {
         return Ints(r, r.proto.mutable_gather_dimension_numbers()->mutable_collapsed_slice_dims());
       }},
      {"start_index_map",
       [](Reader& r) {
         return Ints(r, r.proto.mutable_gather_dimension_numbers()->mutable_start_index_map());
       }},
      {"operand_batching_dims",
       [](Reader& r) {
         return Ints(r,
                     r.proto.mutable_gather_dimension_numbers()->mutable_operand_batching_dims());
       }},
      {"start_indices_batching_dims",
       [](Reader& r) {
         return Ints(
             r, r.proto.mutable_gather_dimension_numbers()->mutable_start_indices_batching_dims());
       }},
      {"index_vector_dim",
       [](Reader& r) -> absl::Status {
         ASSIGN_OR_RETURN(const int64_t dimension, r.text.Integer());
         if (r.opcode == Opcode::kScatter) {
           r.proto.mutable_scatter_dimension_numbers()->set_index_vector_dim(dimension);
         } else {
           r.proto.mutable_gather_dimension_numbers()->set_index_vector_dim(dimension);
         }
         return absl::OkStatus();
       }},
      {"update_window_dims",
       [](Reader& r) {
         return Ints(r, r.proto.mutable_scatter_dimension_numbers()->mutable_update_window_dims());
       }},
      {"inserted_window_dims",
       [](Reader& r) {
         return Ints(r,
                     r.proto.mutable_scatter_dimension_numbers()->mutable_inserted_window_dims());
       }},
      {"scatter_dims_to_operand_dims",
       [](Reader& r) {
         return Ints(
             r,
             r.proto.mutable_scatter_dimension_numbers()->mutable_scatter_dims_to_operand_dims());
       }},
      {"input_batching_dims",
       [](Reader& r) {
         return Ints(r, r.proto.mutable_scatter_dimension_numbers()->mutable_input_batching_dims());
       }},
      {"scatter_indices_batching_dims",
       [](Reader& r) {
         return Ints(
             r,
             r.proto.mutable_scatter_dimension_numbers()->mutable_scatter_indices_batching_dims());
       }},
      {"indices_are_sorted",
       [](Reader& r) { return Flag(r, &r.proto, &Proto::set_indices_are_sorted); }},
      {"unique_indices", [](Reader& r) { return Flag(r, &r.proto, &Proto::set_unique_indices); }},
      // Collectives.
      {"channel_id", [](Reader& r) { return Int(r, &r.proto, &Proto::set_channel_id); }},
      {"replica_groups", [](Reader& r) { return ParseReplicaGroups(r.text, r.proto); }},
      {"source_target_pairs", Pairs},
      {"use_global_device_ids",
       [](Reader& r) { return Flag(r, &r.proto, &Proto::set_use_global_device_ids); }},
      {"constrain_layout",
       [](Reader& r) { return Flag(r, &r.proto, &Proto::set_constrain_layout); }},
      // What every instruction may have.
      {"sharding",
       [](Reader& r) -> absl::Status {
         ASSIGN_OR_RETURN(*r.proto.mutable_sharding(), ParseSharding(r.text));
         return absl::OkStatus();
       }},
      {"frontend_attributes",
       [](Reader& r) {
         return ParseFrontendAttributes(r.text, *r.proto.mutable_frontend_attributes());
       }},
      {"metadata", Structure<ParseMetadata>},
      {"backend_config", Structure<ParseBackendConfig>},
  };
  return *handlers;
}

// What XLA says for its own later passes: read and left.
constexpr std::string_view kOfNoInterest[] = {"operand_layout_constraints",
                                              "schedule",
                                              "origin",
                                              "statistics",
                                              "parameter_replication",
                                              "is_cross_program_prefetch",
                                              "result_accuracy",
                                              "all_reduce_id",
                                              "is_composite"};

}  // namespace

absl::Status ParseAttributes(TextCursor& text, Opcode opcode, TextAttributes& attributes) {
  Reader reader{text, opcode, attributes};
  while (text.Take(",")) {
    const size_t begin = text.Begin();
    const std::string_view name = text.Word();
    RETURN_IF_ERROR(text.Expect("="));
    const auto handler = Handlers().find(name);
    if (handler != Handlers().end()) {
      RETURN_IF_ERROR(handler->second(reader));
    } else if (std::find(std::begin(kOfNoInterest), std::end(kOfNoInterest), name) !=
               std::end(kOfNoInterest)) {
      RETURN_IF_ERROR(text.Value().status());
    } else {
      return text.ErrorAt(begin, fmt::format("there is no attribute '{}'", name));
    }
  }
  return absl::OkStatus();
}

absl::Status ParseFrontendAttributes(TextCursor& text, pb::FrontendAttributes& attributes) {
  RETURN_IF_ERROR(text.Expect("{"));
  while (!text.Take("}")) {
    ASSIGN_OR_RETURN(const std::string key, text.Peek() == '"' ? text.Quoted() : text.Name());
    RETURN_IF_ERROR(text.Expect("="));
    if (text.Peek() == '"') {
      ASSIGN_OR_RETURN((*attributes.mutable_map())[key], text.Quoted());
    } else {
      ASSIGN_OR_RETURN(const std::string_view value, text.Value());
      (*attributes.mutable_map())[key] = std::string(value);
    }
    text.Take(",");
  }
  return absl::OkStatus();
}

}  // namespace tpusim::hlo
