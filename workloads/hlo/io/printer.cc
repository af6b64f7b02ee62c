// Text that reads like HLO.
#include "workloads/hlo/io/printer.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "configs/printable.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/io/literal_text.h"
#include "workloads/hlo/io/sharding_text.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/shape_proto.h"

namespace tpusim::hlo {
namespace {

// Where computations run that say nothing else.
constexpr std::string_view kMainThread = "main";

// Names of a text: `name=value` in the order in which they were added.
class AttributeList {
 public:
  void Add(std::string_view name, std::string_view value) {
    text_ += fmt::format(", {}={}", name, value);
  }
  template <typename Range>
  void AddList(std::string_view name, const Range& values) {
    Add(name, fmt::format("{{{}}}", fmt::join(values, ",")));
  }
  template <typename Range>
  void AddListIfAny(std::string_view name, const Range& values) {
    if (!values.empty()) AddList(name, values);
  }
  void AddIf(bool value, std::string_view name) {
    if (value) Add(name, "true");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string Quoted(const std::string& text) {
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

// Names of enumerators, as HLO writes them.
std::string Lower(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return name;
}

// A name in a file may hold what ends a name in text: then as \x20.
std::string Name(const std::string& name) {
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

// In quotes unless it is a word: what reads it takes other characters for the end of a name.
std::string KeyText(const std::string& key) {
  const bool is_word = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '+';
  });
  return is_word ? key : Quoted(key);
}

std::string FrontendText(const pb::FrontendAttributes& attributes) {
  // Sorted: a protobuf map has no order of its own.
  const std::map<std::string, std::string> sorted(attributes.map().begin(), attributes.map().end());
  std::vector<std::string> entries;
  for (const auto& [key, value] : sorted) entries.push_back(KeyText(key) + "=" + Quoted(value));
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}

std::string WindowText(const std::vector<WindowDim>& dims) {
  // Parts whose value is the default everywhere are left out, as XLA does.
  const auto part = [&](std::string_view name, auto value, auto is_default) -> std::string {
    if (std::all_of(dims.begin(), dims.end(), is_default)) return "";
    std::vector<std::string> values;
    for (const WindowDim& d : dims) values.push_back(value(d));
    return fmt::format(" {}={}", name, fmt::join(values, "x"));
  };
  const auto number = [](int64_t WindowDim::*member) {
    return [member](const WindowDim& d) { return fmt::format("{}", d.*member); };
  };
  const auto is_one = [](int64_t WindowDim::*member) {
    return [member](const WindowDim& d) { return d.*member == 1; };
  };
  std::string text;
  text += part("size", number(&WindowDim::size), [](const WindowDim&) { return false; });
  text += part("stride", number(&WindowDim::stride), is_one(&WindowDim::stride));
  text += part(
      "pad", [](const WindowDim& d) { return fmt::format("{}_{}", d.padding_low, d.padding_high); },
      [](const WindowDim& d) { return d.padding_low == 0 && d.padding_high == 0; });
  text += part("lhs_dilate", number(&WindowDim::base_dilation), is_one(&WindowDim::base_dilation));
  text +=
      part("rhs_dilate", number(&WindowDim::window_dilation), is_one(&WindowDim::window_dilation));
  text += part(
      "rhs_reversal", [](const WindowDim& d) { return std::string(d.reversal ? "1" : "0"); },
      [](const WindowDim& d) { return !d.reversal; });
  return "{" + (text.empty() ? text : text.substr(1)) + "}";
}

std::string PaddingText(const std::vector<PaddingDim>& dims) {
  std::vector<std::string> parts;
  for (const PaddingDim& d : dims) {
    parts.push_back(d.interior == 0 ? fmt::format("{}_{}", d.low, d.high)
                                    : fmt::format("{}_{}_{}", d.low, d.high, d.interior));
  }
  return fmt::format("{}", fmt::join(parts, "x"));
}

// "bf01_oi01->bf01"
std::string ConvolutionText(const pb::ConvolutionDimensionNumbers& n) {
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

void AddGather(const Instruction& i, AttributeList* out) {
  const auto& n = i.attrs().gather_dimension_numbers();
  out->AddList("offset_dims", n.offset_dims());
  out->AddList("collapsed_slice_dims", n.collapsed_slice_dims());
  out->AddList("start_index_map", n.start_index_map());
  out->AddListIfAny("operand_batching_dims", n.operand_batching_dims());
  out->AddListIfAny("start_indices_batching_dims", n.start_indices_batching_dims());
  out->Add("index_vector_dim", std::to_string(n.index_vector_dim()));
  out->AddList("slice_sizes", i.attrs().gather_slice_sizes());
}

void AddScatter(const Instruction& i, AttributeList* out) {
  const auto& n = i.attrs().scatter_dimension_numbers();
  out->AddList("update_window_dims", n.update_window_dims());
  out->AddList("inserted_window_dims", n.inserted_window_dims());
  out->AddList("scatter_dims_to_operand_dims", n.scatter_dims_to_operand_dims());
  out->AddListIfAny("input_batching_dims", n.input_batching_dims());
  out->AddListIfAny("scatter_indices_batching_dims", n.scatter_indices_batching_dims());
  out->Add("index_vector_dim", std::to_string(n.index_vector_dim()));
}

void AddCalled(const Instruction& i, AttributeList* out) {
  const auto& called = i.called();
  const auto name = [&](size_t n) { return "%" + Name(called[n]->name()); };
  if (called.empty()) return;
  switch (i.opcode()) {
    case Opcode::kWhile:
      if (called.size() < 2) return;
      out->Add("condition", name(1));
      out->Add("body", name(0));
      return;
    case Opcode::kSelectAndScatter:
      if (called.size() < 2) return;
      out->Add("select", name(0));
      out->Add("scatter", name(1));
      return;
    case Opcode::kFusion:
    case Opcode::kAsyncStart:
      out->Add("calls", name(0));
      return;
    case Opcode::kAsyncUpdate:
    case Opcode::kAsyncDone:
      return;
    case Opcode::kConditional:
    case Opcode::kCustomCall: {
      std::vector<std::string> names;
      for (size_t n = 0; n < called.size(); ++n) names.push_back(name(n));
      out->AddList(
          i.opcode() == Opcode::kConditional ? "branch_computations" : "called_computations",
          names);
      return;
    }
    default:
      out->Add("to_apply", name(0));
  }
}

// {{0}: (1, {})}
std::string OutputAliasingText(const pb::HloInstructionProto& a) {
  std::vector<std::string> parts;
  for (const auto& alias : a.output_operand_aliasing()) {
    parts.push_back(fmt::format("{{{}}}: ({}, {{{}}})", fmt::join(alias.output_shape_index(), ","),
                                alias.operand_index(),
                                fmt::join(alias.operand_shape_index(), ",")));
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

void AddOpAttributes(const Instruction& i, AttributeList* out) {
  const pb::HloInstructionProto& a = i.attrs();
  switch (i.opcode()) {
    case Opcode::kGetTupleElement:
      out->Add("index", std::to_string(a.tuple_index()));
      break;
    case Opcode::kCompare:
      out->Add("direction", a.comparison_direction());
      if (!a.comparison_type().empty()) out->Add("type", a.comparison_type());
      break;
    case Opcode::kSlice: {
      std::vector<std::string> parts;
      for (const SliceDim& d : GetSlice(i)) {
        parts.push_back(d.stride == 1 ? fmt::format("[{}:{}]", d.start, d.limit)
                                      : fmt::format("[{}:{}:{}]", d.start, d.limit, d.stride));
      }
      out->Add("slice", fmt::format("{{{}}}", fmt::join(parts, ", ")));
      break;
    }
    case Opcode::kDynamicSlice:
      out->AddList("dynamic_slice_sizes", a.dynamic_slice_sizes());
      break;
    case Opcode::kPad:
      out->Add("padding", PaddingText(GetPadding(i)));
      break;
    case Opcode::kIota:
      out->Add("iota_dimension", std::to_string(OnlyDimension(i)));
      break;
    case Opcode::kGather:
      AddGather(i, out);
      break;
    case Opcode::kScatter:
      AddScatter(i, out);
      break;
    case Opcode::kFusion:
      out->Add("kind", a.fusion_kind());
      break;
    case Opcode::kCustomCall:
      out->Add("custom_call_target", Quoted(a.custom_call_target()));
      out->AddIf(a.custom_call_has_side_effect(), "custom_call_has_side_effect");
      if (a.output_operand_aliasing_size() > 0) {
        out->Add("output_to_operand_aliasing", OutputAliasingText(a));
      }
      break;
    case Opcode::kTopk:
      out->Add("k", std::to_string(a.k()));
      out->Add("largest", a.largest() ? "true" : "false");
      break;
    case Opcode::kFft:
      out->Add("fft_type", pb::FftType_Name(a.fft_type()));
      out->AddList("fft_length", a.fft_length());
      break;
    case Opcode::kReducePrecision:
      out->Add("exponent_bits", std::to_string(a.exponent_bits()));
      out->Add("mantissa_bits", std::to_string(a.mantissa_bits()));
      break;
    case Opcode::kRng:
      out->Add("distribution", Lower(pb::RandomDistribution_Name(a.distribution())));
      break;
    case Opcode::kCholesky:
      out->Add("lower", a.cholesky_options().lower() ? "true" : "false");
      break;
    case Opcode::kTriangularSolve: {
      const pb::TriangularSolveOptions& options = a.triangular_solve_options();
      out->AddIf(options.left_side(), "left_side");
      out->AddIf(options.lower(), "lower");
      out->AddIf(options.unit_diagonal(), "unit_diagonal");
      out->Add("transpose_a", pb::TriangularSolveOptions::Transpose_Name(options.transpose_a()));
      break;
    }
    case Opcode::kDomain:
      out->Add("domain", fmt::format("{{kind=\"sharding\", entry={}, exit={}}}",
                                     ShardingText(a.domain_entry_sharding()),
                                     ShardingText(a.domain_exit_sharding())));
      break;
    case Opcode::kInfeed:
      if (!a.infeed_config().empty()) out->Add("infeed_config", Quoted(a.infeed_config()));
      break;
    case Opcode::kOutfeed:
      if (!a.outfeed_config().empty()) out->Add("outfeed_config", Quoted(a.outfeed_config()));
      break;
    case Opcode::kSend:
    case Opcode::kSendDone:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
      out->AddIf(a.is_host_transfer(), "is_host_transfer");
      break;
    case Opcode::kCopyStart:
      if (a.optional_cross_program_prefetch_index_case() ==
          pb::HloInstructionProto::kCrossProgramPrefetchIndex) {
        out->Add("cross_program_prefetch_index", std::to_string(a.cross_program_prefetch_index()));
      }
      break;
    case Opcode::kAsyncStart:
      if (!a.async_execution_thread().empty()) {
        out->Add("async_execution_thread", Quoted(a.async_execution_thread()));
      }
      break;
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
      out->AddListIfAny("slice_sizes", a.dynamic_slice_sizes());
      break;
    case Opcode::kBatchNormGrad:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormTraining:
      out->Add("epsilon", fmt::format("{:g}", a.epsilon()));
      out->Add("feature_index", std::to_string(a.feature_index()));
      break;
    case Opcode::kRngGetAndUpdateState:
      out->Add("delta", std::to_string(a.delta()));
      break;
    case Opcode::kRngBitGenerator:
      out->Add("algorithm", pb::RandomAlgorithm_Name(a.rng_algorithm()));
      break;
    case Opcode::kConvolution:
      out->Add("dim_labels", ConvolutionText(a.convolution_dimension_numbers()));
      if (FeatureGroupCount(i) > 1) {
        out->Add("feature_group_count", std::to_string(FeatureGroupCount(i)));
      }
      if (BatchGroupCount(i) > 1) out->Add("batch_group_count", std::to_string(BatchGroupCount(i)));
      break;
    case Opcode::kBroadcast:
      out->AddList("dimensions", a.dimensions());
      return;
    default:
      break;
  }
  if (i.opcode() == Opcode::kDot || i.opcode() == Opcode::kRaggedDot ||
      i.opcode() == Opcode::kScaledDot) {
    const DotDims dims = GetDotDims(i);
    out->AddListIfAny("lhs_batch_dims", dims.lhs_batch);
    out->AddList("lhs_contracting_dims", dims.lhs_contracting);
    out->AddListIfAny("rhs_batch_dims", dims.rhs_batch);
    out->AddList("rhs_contracting_dims", dims.rhs_contracting);
    const auto& ragged = a.ragged_dot_dimension_numbers();
    out->AddListIfAny("lhs_ragged_dims", ragged.lhs_ragged_dimensions());
    out->AddListIfAny("rhs_group_dims", ragged.rhs_group_dimensions());
  }
  if (a.has_window()) out->Add("window", WindowText(GetWindow(i)));
  if (i.opcode() != Opcode::kIota) out->AddListIfAny("dimensions", a.dimensions());
  out->AddIf(a.is_stable(), "is_stable");
  out->AddIf(a.indices_are_sorted(), "indices_are_sorted");
  out->AddIf(a.unique_indices(), "unique_indices");
}

void AddCollective(const Instruction& i, AttributeList* out) {
  const pb::HloInstructionProto& a = i.attrs();
  if (HasChannel(i)) out->Add("channel_id", std::to_string(a.channel_id()));
  const std::string groups = ReplicaGroupsText(a);
  if (!groups.empty()) out->Add("replica_groups", groups);
  if (a.source_target_pairs_size() > 0) {
    std::vector<std::string> pairs;
    for (const auto& [source, target] : SourceTargetPairs(i)) {
      pairs.push_back(fmt::format("{{{},{}}}", source, target));
    }
    out->AddList("source_target_pairs", pairs);
  }
  out->AddIf(a.use_global_device_ids(), "use_global_device_ids");
}

std::string MetadataText(const Instruction& i) {
  std::string text;
  if (!i.op_name().empty()) text = "op_name=" + Quoted(i.op_name());
  const std::string source = i.SourceLocation();
  if (!source.empty()) text += fmt::format("{}source={}", text.empty() ? "" : " ", Quoted(source));
  return text;
}

// One precision per operand, if any is not the default.
std::string PrecisionText(const pb::PrecisionConfig& config) {
  std::vector<std::string> names;
  bool any = false;
  for (int p : config.operand_precision()) {
    any |= p != pb::PrecisionConfig::DEFAULT;
    const std::string name =
        Lower(pb::PrecisionConfig::Precision_Name(static_cast<pb::PrecisionConfig::Precision>(p)));
    names.push_back(name.empty() ? std::to_string(p) : name);
  }
  return any ? fmt::format("{{{}}}", fmt::join(names, ",")) : "";
}

}  // namespace

std::string ToString(const Instruction& instruction, const PrintOptions& options) {
  std::string inside;
  if (instruction.opcode() == Opcode::kParameter) {
    inside = std::to_string(instruction.attrs().parameter_number());
  } else if (instruction.opcode() == Opcode::kConstant) {
    inside = LiteralText(instruction, options.large_constants);
  } else {
    for (const Instruction* operand : instruction.operands()) {
      inside += (inside.empty() ? "%" : ", %") + Name(operand->name());
    }
  }
  const pb::HloInstructionProto& attrs = instruction.attrs();
  AttributeList list;
  AddOpAttributes(instruction, &list);
  AddCollective(instruction, &list);
  AddCalled(instruction, &list);
  const std::string precision = PrecisionText(attrs.precision_config());
  if (!precision.empty()) list.Add("operand_precision", precision);
  if (attrs.has_sharding()) list.Add("sharding", ShardingText(attrs.sharding()));
  if (!attrs.frontend_attributes().map().empty()) {
    list.Add("frontend_attributes", FrontendText(attrs.frontend_attributes()));
  }
  if (!instruction.control_predecessors().empty()) {
    std::vector<std::string> names;
    for (const Instruction* before : instruction.control_predecessors()) {
      names.push_back("%" + Name(before->name()));
    }
    list.Add("control-predecessors", fmt::format("{{{}}}", fmt::join(names, ", ")));
  }
  const std::string metadata = MetadataText(instruction);
  if (!metadata.empty()) list.Add("metadata", "{" + metadata + "}");
  if (!attrs.backend_config().empty()) list.Add("backend_config", Quoted(attrs.backend_config()));
  return configs::Printable(fmt::format(
      "{}%{} = {} {}({}){}", instruction.IsRoot() ? "ROOT " : "", Name(instruction.name()),
      instruction.shape().ToString(true), OpcodeName(instruction.opcode()), inside, list.text()));
}

std::string ToString(const Computation& computation, const PrintOptions& options) {
  std::vector<std::string> parameters;
  for (const Instruction* parameter : computation.parameters()) {
    parameters.push_back(
        fmt::format("{}: {}", Name(parameter->name()), parameter->shape().ToString()));
  }
  const Module* module = computation.parent();
  const bool entry = module != nullptr && module->entry() == &computation;
  std::string text = configs::Printable(
      fmt::format("{}%{} ({}) -> {} {{", entry ? "ENTRY " : "", Name(computation.name()),
                  fmt::join(parameters, ", "),
                  computation.root() == nullptr ? "?" : computation.root()->shape().ToString()));
  text += '\n';
  for (const Instruction* instruction : computation.Order()) {
    text += "  " + ToString(*instruction, options) + "\n";
  }
  text += '}';
  const std::string& thread = computation.attrs().execution_thread();
  if (!thread.empty() && thread != kMainThread) {
    text += configs::Printable(fmt::format(", execution_thread={}", Quoted(thread)));
  }
  return text + '\n';
}

std::string ToString(const Module& module, const PrintOptions& options) {
  AttributeList list;
  if (module.entry() != nullptr && !module.entry()->schedule().empty()) {
    list.Add("is_scheduled", "true");
  }
  const auto& aliases = module.fields().input_output_alias().entries();
  if (!aliases.empty()) {
    std::vector<std::string> parts;
    for (const auto& a : aliases) {
      parts.push_back(fmt::format(
          "{{{}}}: ({}, {{{}}}, {})", fmt::join(a.output_shape_index(), ","), a.parameter_number(),
          fmt::join(a.parameter_shape_index(), ","),
          a.kind() == pb::HloInputOutputAliasProto::MUST_ALIAS ? "must-alias" : "may-alias"));
    }
    list.Add("input_output_alias", fmt::format("{{ {} }}", fmt::join(parts, ", ")));
  }
  const auto& donors = module.fields().buffer_donor().entries();
  if (!donors.empty()) {
    std::vector<std::string> parts;
    for (const auto& d : donors) {
      parts.push_back(fmt::format("({}, {{{}}})", d.parameter_number(),
                                  fmt::join(d.parameter_shape_index(), ",")));
    }
    list.Add("buffer_donor", fmt::format("{{ {} }}", fmt::join(parts, ", ")));
  }
  if (!module.fields().frontend_attributes().map().empty()) {
    list.Add("frontend_attributes", FrontendText(module.fields().frontend_attributes()));
  }
  std::string text =
      configs::Printable(fmt::format("HloModule {}{}", Name(module.name()), list.text())) + "\n";
  for (const Computation* computation : module.PostOrder()) {
    text += "\n" + ToString(*computation, options);
  }
  return text;
}

}  // namespace tpusim::hlo
