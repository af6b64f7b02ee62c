#include "workloads/hlo/io/text_structures.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <type_traits>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/io/text_values.h"

namespace tpusim::hlo {
namespace {

template <typename Field>
absl::Status AddInts(TextCursor& text, Field* field) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, text.IntList());
  field->Add(values.begin(), values.end());
  return absl::OkStatus();
}

template <typename Message, typename Value>
absl::Status SetInt(TextCursor& text, Message* to, void (Message::*set)(Value)) {
  ASSIGN_OR_RETURN(const int64_t value, text.Integer());
  (to->*set)(static_cast<Value>(value));
  return absl::OkStatus();
}

// One part of a window, such as `pad=0_1x2_2`, over its dimensions.
absl::Status ParseWindowPart(TextCursor& text, std::string_view part, pb::Window* window) {
  int d = 0;
  do {
    if (part == "size") {
      auto* dim = window->add_dimensions();
      dim->set_stride(1);
      dim->set_window_dilation(1);
      dim->set_base_dilation(1);
    }
    if (d >= window->dimensions_size()) return text.Error("more dimensions than sizes");
    auto* dim = window->mutable_dimensions(d++);
    ASSIGN_OR_RETURN(const int64_t value, text.Integer());
    if (part == "size") {
      dim->set_size(value);
    } else if (part == "stride") {
      dim->set_stride(value);
    } else if (part == "lhs_dilate") {
      dim->set_base_dilation(value);
    } else if (part == "rhs_dilate") {
      dim->set_window_dilation(value);
    } else if (part == "rhs_reversal") {
      dim->set_window_reversal(value != 0);
    } else {
      RETURN_IF_ERROR(text.Expect("_"));
      ASSIGN_OR_RETURN(const int64_t high, text.Integer());
      dim->set_padding_low(value);
      dim->set_padding_high(high);
    }
  } while (text.Take("x"));
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseSlice(TextCursor& text, pb::HloInstructionProto& proto) {
  RETURN_IF_ERROR(text.Expect("{"));
  if (text.Take("}")) return absl::OkStatus();
  do {
    auto* dim = proto.add_slice_dimensions();
    RETURN_IF_ERROR(text.Expect("["));
    RETURN_IF_ERROR(SetInt(text, dim, &std::remove_pointer_t<decltype(dim)>::set_start));
    RETURN_IF_ERROR(text.Expect(":"));
    RETURN_IF_ERROR(SetInt(text, dim, &std::remove_pointer_t<decltype(dim)>::set_limit));
    dim->set_stride(1);
    if (text.Take(":")) {
      RETURN_IF_ERROR(SetInt(text, dim, &std::remove_pointer_t<decltype(dim)>::set_stride));
    }
    RETURN_IF_ERROR(text.Expect("]"));
  } while (text.Take(","));
  return text.Expect("}");
}

// 0_1x2_2_1; nothing where there is no dimension.
absl::Status ParsePadding(TextCursor& text, pb::HloInstructionProto& proto) {
  auto* padding = proto.mutable_padding_config();
  if (text.Peek() != '-' && std::isdigit(static_cast<unsigned char>(text.Peek())) == 0) {
    return absl::OkStatus();
  }
  do {
    auto* dim = padding->add_dimensions();
    ASSIGN_OR_RETURN(const int64_t low, text.Integer());
    RETURN_IF_ERROR(text.Expect("_"));
    ASSIGN_OR_RETURN(const int64_t high, text.Integer());
    dim->set_edge_padding_low(low);
    dim->set_edge_padding_high(high);
    if (text.Take("_")) {
      ASSIGN_OR_RETURN(const int64_t interior, text.Integer());
      dim->set_interior_padding(interior);
    }
  } while (text.Take("x"));
  return absl::OkStatus();
}

absl::Status ParseWindow(TextCursor& text, pb::HloInstructionProto& proto) {
  static constexpr std::string_view kParts[] = {"size",       "stride",     "pad",
                                                "lhs_dilate", "rhs_dilate", "rhs_reversal"};
  pb::Window* window = proto.mutable_window();
  RETURN_IF_ERROR(text.Expect("{"));
  while (!text.Take("}")) {
    const size_t begin = text.Begin();
    const std::string_view part = text.Word();
    if (std::find(std::begin(kParts), std::end(kParts), part) == std::end(kParts)) {
      return text.ErrorAt(begin, "no part of a window is called so");
    }
    RETURN_IF_ERROR(text.Expect("="));
    RETURN_IF_ERROR(ParseWindowPart(text, part, window));
  }
  return absl::OkStatus();
}

// bf01_oi01->bf01
absl::Status ParseConvolutionLabels(TextCursor& text, pb::HloInstructionProto& proto) {
  const size_t begin = text.Begin();
  const std::string_view labels = text.Word("?>");
  const size_t underscore = labels.find('_'), arrow = labels.find("->");
  if (underscore == std::string::npos || arrow == std::string::npos || arrow < underscore) {
    return text.ErrorAt(begin, "labels such as bf01_oi01->bf01 are expected here");
  }
  auto& numbers = *proto.mutable_convolution_dimension_numbers();
  const auto place = [](std::string_view part, char label) {
    const size_t at = part.find(label);
    return at == std::string_view::npos ? int64_t{-1} : static_cast<int64_t>(at);
  };
  const auto spatial = [&](std::string_view part, auto* dims) {
    for (char label = '0'; label <= '9' && part.find(label) != std::string_view::npos; ++label) {
      dims->Add(place(part, label));
    }
  };
  const std::string_view input = labels.substr(0, underscore);
  const std::string_view kernel = labels.substr(underscore + 1, arrow - underscore - 1);
  const std::string_view output = labels.substr(arrow + 2);
  numbers.set_input_batch_dimension(place(input, 'b'));
  numbers.set_input_feature_dimension(place(input, 'f'));
  spatial(input, numbers.mutable_input_spatial_dimensions());
  numbers.set_kernel_input_feature_dimension(place(kernel, 'i'));
  numbers.set_kernel_output_feature_dimension(place(kernel, 'o'));
  spatial(kernel, numbers.mutable_kernel_spatial_dimensions());
  numbers.set_output_batch_dimension(place(output, 'b'));
  numbers.set_output_feature_dimension(place(output, 'f'));
  spatial(output, numbers.mutable_output_spatial_dimensions());
  return absl::OkStatus();
}

// {op_name="f" source="f.py:3"}, or XLA's source_file and source_line.
absl::Status ParseMetadata(TextCursor& text, pb::HloInstructionProto& proto) {
  pb::OpMetadata& metadata = *proto.mutable_metadata();
  RETURN_IF_ERROR(text.Expect("{"));
  while (!text.Take("}")) {
    const std::string_view key = text.Word();
    RETURN_IF_ERROR(text.Expect("="));
    if (key == "op_name" || key == "op_type" || key == "source_file" || key == "source") {
      ASSIGN_OR_RETURN(std::string value, text.Quoted());
      if (key == "op_name") {
        metadata.set_op_name(std::move(value));
      } else if (key == "op_type") {
        metadata.set_op_type(std::move(value));
      } else if (key == "source_file") {
        metadata.set_source_file(std::move(value));
      } else {
        const size_t colon = value.rfind(':');
        int line = 0;
        if (colon != std::string::npos) {
          std::from_chars(value.data() + colon + 1, value.data() + value.size(), line);
        }
        metadata.set_source_file(value.substr(0, colon));
        metadata.set_source_line(line);
      }
    } else if (key == "source_line") {
      RETURN_IF_ERROR(SetInt(text, &metadata, &pb::OpMetadata::set_source_line));
    } else if (key == "stack_frame_id") {
      RETURN_IF_ERROR(SetInt(text, &metadata, &pb::OpMetadata::set_stack_frame_id));
    } else {
      RETURN_IF_ERROR(text.Value().status());  // of interest to XLA's tools alone
    }
    text.Take(",");
  }
  return absl::OkStatus();
}

// {kind="sharding", entry={...}, exit={...}}
absl::Status ParseDomain(TextCursor& text, pb::HloInstructionProto& proto) {
  RETURN_IF_ERROR(text.Expect("{"));
  while (!text.Take("}")) {
    const size_t begin = text.Begin();
    const std::string_view key = text.Word();
    RETURN_IF_ERROR(text.Expect("="));
    if (key == "kind") {
      RETURN_IF_ERROR(text.Quoted().status());
    } else if (key == "entry" || key == "exit") {
      ASSIGN_OR_RETURN(pb::OpSharding sharding, ParseSharding(text));
      (key == "entry" ? *proto.mutable_domain_entry_sharding()
                      : *proto.mutable_domain_exit_sharding()) = std::move(sharding);
    } else {
      return text.ErrorAt(begin, "no part of a domain is called so");
    }
    text.Take(",");
  }
  return absl::OkStatus();
}

// {{0}: (1, {}), {1}: (0, {})}
absl::Status ParseOutputAliasing(TextCursor& text, pb::HloInstructionProto& proto) {
  RETURN_IF_ERROR(text.Expect("{"));
  while (!text.Take("}")) {
    auto* alias = proto.add_output_operand_aliasing();
    RETURN_IF_ERROR(AddInts(text, alias->mutable_output_shape_index()));
    RETURN_IF_ERROR(text.Expect(":"));
    RETURN_IF_ERROR(text.Expect("("));
    RETURN_IF_ERROR(SetInt(text, alias, &pb::OutputOperandAliasing::set_operand_index));
    RETURN_IF_ERROR(text.Expect(","));
    RETURN_IF_ERROR(AddInts(text, alias->mutable_operand_shape_index()));
    RETURN_IF_ERROR(text.Expect(")"));
    text.Take(",");
  }
  return absl::OkStatus();
}

// JSON as it is, or quoted.
absl::Status ParseBackendConfig(TextCursor& text, pb::HloInstructionProto& proto) {
  if (text.Peek() == '"') {
    ASSIGN_OR_RETURN(std::string config, text.Quoted());
    proto.set_backend_config(std::move(config));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string_view config, text.Balanced());
  proto.set_backend_config(std::string(config));
  return absl::OkStatus();
}

}  // namespace tpusim::hlo
