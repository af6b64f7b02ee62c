#include "workloads/hlo/io/text_structures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/io/sharding_text.h"
#include "workloads/hlo/io/text_values.h"

namespace tpusim::hlo {

std::string WithCase(std::string_view text, int (*change)(int)) {
  std::string changed(text);
  for (char& c : changed) c = static_cast<char>(change(static_cast<unsigned char>(c)));
  return changed;
}

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

// Reads `{`, then items with commas between, then `}`.
template <typename Item>
absl::Status ParseItems(TextCursor& text, const Item& parse_item) {
  RETURN_IF_ERROR(text.Expect("{"));
  if (text.Take("}")) return absl::OkStatus();
  do {
    RETURN_IF_ERROR(parse_item());
  } while (text.Take(","));
  return text.Expect("}");
}

std::string InBraces(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{{{}}}", fmt::join(parts, separator));
}

// A part of a window: a number of every dimension, left out where all are the default. A file may
// say 0 for a factor of 1.
struct WindowPart {
  std::string_view name;
  int64_t omitted;
  int64_t (*get)(const pb::WindowDimension&);
  void (*set)(pb::WindowDimension&, int64_t);
};
using WindowDimension = pb::WindowDimension;
constexpr int64_t kNeverOmitted = -1;
constexpr WindowPart kWindowParts[] = {
    {"size", kNeverOmitted, [](const WindowDimension& d) { return d.size(); },
     [](WindowDimension& d, int64_t size) { d.set_size(size); }},
    {"stride", 1, [](const WindowDimension& d) { return d.stride() == 0 ? 1 : d.stride(); },
     [](WindowDimension& d, int64_t stride) { d.set_stride(stride); }},
    {"pad", 0, [](const WindowDimension& d) { return d.padding_low(); },
     [](WindowDimension& d, int64_t low) { d.set_padding_low(low); }},
    {"lhs_dilate", 1,
     [](const WindowDimension& d) { return d.base_dilation() == 0 ? 1 : d.base_dilation(); },
     [](WindowDimension& d, int64_t factor) { d.set_base_dilation(factor); }},
    {"rhs_dilate", 1,
     [](const WindowDimension& d) { return d.window_dilation() == 0 ? 1 : d.window_dilation(); },
     [](WindowDimension& d, int64_t factor) { d.set_window_dilation(factor); }},
    {"rhs_reversal", 0,
     [](const WindowDimension& d) { return static_cast<int64_t>(d.window_reversal()); },
     [](WindowDimension& d, int64_t value) { d.set_window_reversal(value != 0); }},
};
const WindowPart& kSize = kWindowParts[0];
const WindowPart& kPad = kWindowParts[2];

// One part, such as `pad=0_1x2_2`, over its dimensions.
absl::Status ParseWindowPart(TextCursor& text, const WindowPart& part, pb::Window* window) {
  int d = 0;
  do {
    if (&part == &kSize) {
      auto* dim = window->add_dimensions();
      dim->set_stride(1);
      dim->set_window_dilation(1);
      dim->set_base_dilation(1);
    }
    if (d >= window->dimensions_size()) return text.Error("more dimensions than sizes");
    WindowDimension& dim = *window->mutable_dimensions(d++);
    ASSIGN_OR_RETURN(const int64_t value, text.Integer());
    if (&part == &kPad) {
      RETURN_IF_ERROR(text.Expect("_"));
      RETURN_IF_ERROR(SetInt(text, &dim, &WindowDimension::set_padding_high));
    }
    part.set(dim, value);
  } while (text.Take("x"));
  return absl::OkStatus();
}

}  // namespace

std::string QuotedText(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string NameText(const std::string& name) {
  constexpr std::string_view kEnds = " ,(){}[]=\"";
  if (name.find_first_of(kEnds) == std::string::npos) return name;
  std::string text;
  for (const char c : name) {
    if (kEnds.find(c) == std::string_view::npos) {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text;
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

std::string FrontendAttributesText(const pb::FrontendAttributes& attributes) {
  // A key that is no word is quoted: what reads it takes other characters for its end.
  const auto is_word = [](const std::string& key) {
    return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("_.-+").find(c) != std::string_view::npos;
    });
  };
  // Sorted: a protobuf map has no order of its own.
  const std::map<std::string, std::string> sorted(attributes.map().begin(), attributes.map().end());
  std::vector<std::string> entries;
  for (const auto& [key, value] : sorted) {
    entries.push_back((is_word(key) ? key : QuotedText(key)) + "=" + QuotedText(value));
  }
  return InBraces(entries, ",");
}

absl::Status ParseSlice(TextCursor& text, pb::HloInstructionProto& proto) {
  using Dimension = pb::HloInstructionProto::SliceDimensions;
  return ParseItems(text, [&]() -> absl::Status {
    Dimension* dim = proto.add_slice_dimensions();
    RETURN_IF_ERROR(text.Expect("["));
    RETURN_IF_ERROR(SetInt(text, dim, &Dimension::set_start));
    RETURN_IF_ERROR(text.Expect(":"));
    RETURN_IF_ERROR(SetInt(text, dim, &Dimension::set_limit));
    dim->set_stride(1);
    if (text.Take(":")) RETURN_IF_ERROR(SetInt(text, dim, &Dimension::set_stride));
    return text.Expect("]");
  });
}

std::string SliceText(const pb::HloInstructionProto& proto) {
  std::vector<std::string> parts;
  for (const auto& d : proto.slice_dimensions()) {
    const std::string stride = d.stride() <= 1 ? "" : fmt::format(":{}", d.stride());
    parts.push_back(fmt::format("[{}:{}{}]", d.start(), d.limit(), stride));
  }
  return InBraces(parts, ", ");
}

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

std::string PaddingText(const pb::HloInstructionProto& proto) {
  std::vector<std::string> parts;
  for (const auto& d : proto.padding_config().dimensions()) {
    const int64_t interior = d.interior_padding();
    parts.push_back(fmt::format("{}_{}{}", d.edge_padding_low(), d.edge_padding_high(),
                                interior == 0 ? "" : fmt::format("_{}", interior)));
  }
  return fmt::format("{}", fmt::join(parts, "x"));
}

absl::Status ParseWindow(TextCursor& text, pb::HloInstructionProto& proto) {
  pb::Window* window = proto.mutable_window();
  RETURN_IF_ERROR(text.Expect("{"));
  while (!text.Take("}")) {
    const size_t begin = text.Begin();
    const std::string_view name = text.Word();
    const auto* part = std::find_if(std::begin(kWindowParts), std::end(kWindowParts),
                                    [&](const WindowPart& p) { return p.name == name; });
    if (part == std::end(kWindowParts)) {
      return text.ErrorAt(begin, "no part of a window is called so");
    }
    RETURN_IF_ERROR(text.Expect("="));
    RETURN_IF_ERROR(ParseWindowPart(text, *part, window));
  }
  return absl::OkStatus();
}

std::string WindowText(const pb::HloInstructionProto& proto) {
  if (!proto.has_window()) return "";
  const auto& dims = proto.window().dimensions();
  std::vector<std::string> parts;
  for (const WindowPart& part : kWindowParts) {
    const bool omitted = std::all_of(dims.begin(), dims.end(), [&](const WindowDimension& d) {
      return part.get(d) == part.omitted && (&part != &kPad || d.padding_high() == 0);
    });
    if (omitted) continue;
    std::vector<std::string> values;
    for (const WindowDimension& d : dims) {
      values.push_back(&part == &kPad ? fmt::format("{}_{}", d.padding_low(), d.padding_high())
                                      : std::to_string(part.get(d)));
    }
    parts.push_back(fmt::format("{}={}", part.name, fmt::join(values, "x")));
  }
  return InBraces(parts, " ");
}

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

std::string ConvolutionLabelsText(const pb::HloInstructionProto& proto) {
  const pb::ConvolutionDimensionNumbers& n = proto.convolution_dimension_numbers();
  const auto labels = [](int64_t first, int64_t second, const char* names, const auto& spatial) {
    std::string text(static_cast<size_t>(spatial.size()) + 2, '?');
    const auto set = [&](int64_t at, char c) {
      if (at >= 0 && at < static_cast<int64_t>(text.size())) text[at] = c;
    };
    set(first, names[0]);
    set(second, names[1]);
    for (int s = 0; s < spatial.size(); ++s) set(spatial[s], static_cast<char>('0' + s));
    return text;
  };
  return fmt::format("{}_{}->{}",
                     labels(n.input_batch_dimension(), n.input_feature_dimension(), "bf",
                            n.input_spatial_dimensions()),
                     labels(n.kernel_input_feature_dimension(), n.kernel_output_feature_dimension(),
                            "io", n.kernel_spatial_dimensions()),
                     labels(n.output_batch_dimension(), n.output_feature_dimension(), "bf",
                            n.output_spatial_dimensions()));
}

absl::Status ParseSourceTargetPairs(TextCursor& text, pb::HloInstructionProto& proto) {
  return ParseItems(text, [&]() -> absl::Status {
    const size_t begin = text.Begin();
    ASSIGN_OR_RETURN(const std::vector<int64_t> pair, text.IntList());
    if (pair.size() != 2) return text.ErrorAt(begin, "source and target are two numbers");
    auto* to = proto.add_source_target_pairs();
    to->set_source(pair[0]);
    to->set_target(pair[1]);
    return absl::OkStatus();
  });
}

std::string SourceTargetPairsText(const pb::HloInstructionProto& proto) {
  std::vector<std::string> pairs;
  for (const auto& p : proto.source_target_pairs()) {
    pairs.push_back(fmt::format("{{{},{}}}", p.source(), p.target()));
  }
  return pairs.empty() ? "" : InBraces(pairs, ",");
}

absl::Status ParsePrecision(TextCursor& text, pb::HloInstructionProto& proto) {
  return ParseItems(text, [&]() -> absl::Status {
    const size_t begin = text.Begin();
    const std::string word(text.Word());
    auto precision = pb::PrecisionConfig::DEFAULT;
    if (!pb::PrecisionConfig::Precision_Parse(word, &precision) &&
        !pb::PrecisionConfig::Precision_Parse(WithCase(word, std::toupper), &precision)) {
      return text.ErrorAt(begin, fmt::format("there is no value '{}' here", word));
    }
    proto.mutable_precision_config()->add_operand_precision(precision);
    return absl::OkStatus();
  });
}

std::string PrecisionText(const pb::HloInstructionProto& proto) {
  std::vector<std::string> names;
  bool any = false;
  for (const int p : proto.precision_config().operand_precision()) {
    any |= p != pb::PrecisionConfig::DEFAULT;
    const auto precision = static_cast<pb::PrecisionConfig::Precision>(p);
    const std::string name = WithCase(pb::PrecisionConfig::Precision_Name(precision), std::tolower);
    names.push_back(name.empty() ? std::to_string(p) : name);
  }
  return any ? InBraces(names, ",") : "";
}

absl::Status ParseDotAlgorithm(TextCursor& text, pb::HloInstructionProto& proto) {
  const size_t begin = text.Begin();
  const std::string word = "ALG_" + WithCase(text.Word(), std::toupper);
  pb::PrecisionConfig::Algorithm algorithm = pb::PrecisionConfig::ALG_UNSET;
  if (!pb::PrecisionConfig::Algorithm_Parse(word, &algorithm)) {
    return text.ErrorAt(begin, "no algorithm is called so");
  }
  proto.mutable_precision_config()->set_algorithm(algorithm);
  return absl::OkStatus();
}

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

std::string MetadataText(const Instruction& i) {
  std::vector<std::string> parts;
  if (!i.op_name().empty()) parts.push_back("op_name=" + QuotedText(i.op_name()));
  const std::string source = i.SourceLocation();
  if (!source.empty()) parts.push_back("source=" + QuotedText(source));
  return parts.empty() ? "" : InBraces(parts, " ");
}

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

std::string DomainText(const pb::HloInstructionProto& proto) {
  return fmt::format("{{kind=\"sharding\", entry={}, exit={}}}",
                     ShardingText(proto.domain_entry_sharding()),
                     ShardingText(proto.domain_exit_sharding()));
}

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

std::string OutputAliasingText(const pb::HloInstructionProto& proto) {
  std::vector<std::string> parts;
  for (const auto& alias : proto.output_operand_aliasing()) {
    parts.push_back(fmt::format("{{{}}}: ({}, {{{}}})", fmt::join(alias.output_shape_index(), ","),
                                alias.operand_index(),
                                fmt::join(alias.operand_shape_index(), ",")));
  }
  return parts.empty() ? "" : InBraces(parts, ", ");
}

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
