// Text that reads like HLO.
#include "workloads/hlo/io/printer.h"

#include <string>
#include <vector>

#include "configs/printable.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/io/literal_text.h"
#include "workloads/hlo/io/text_attributes.h"
#include "workloads/hlo/io/text_structures.h"

namespace tpusim::hlo {
namespace {

// The thread of computations that name none.
constexpr std::string_view kMainThread = "main";

}  // namespace

std::string ToString(const Instruction& instruction, const PrintOptions& options) {
  std::string inside;
  if (instruction.opcode() == Opcode::kParameter) {
    inside = std::to_string(instruction.attrs().parameter_number());
  } else if (instruction.opcode() == Opcode::kConstant) {
    inside = LiteralText(instruction, options.large_constants);
  } else {
    for (const Instruction* operand : instruction.operands()) {
      inside += (inside.empty() ? "%" : ", %") + NameText(operand->name());
    }
  }
  return configs::Printable(
      fmt::format("{}%{} = {} {}({}){}", instruction.IsRoot() ? "ROOT " : "",
                  NameText(instruction.name()), instruction.shape().ToString(true),
                  OpcodeName(instruction.opcode()), inside, AttributesText(instruction)));
}

std::string ToString(const Computation& computation, const PrintOptions& options) {
  std::vector<std::string> parameters;
  for (const Instruction* parameter : computation.parameters()) {
    parameters.push_back(
        fmt::format("{}: {}", NameText(parameter->name()), parameter->shape().ToString()));
  }
  const Module* module = computation.parent();
  const bool entry = module != nullptr && module->entry() == &computation;
  std::string text = configs::Printable(
      fmt::format("{}%{} ({}) -> {} {{", entry ? "ENTRY " : "", NameText(computation.name()),
                  fmt::join(parameters, ", "),
                  computation.root() == nullptr ? "?" : computation.root()->shape().ToString()));
  text += '\n';
  for (const Instruction* instruction : computation.Order()) {
    text += "  " + ToString(*instruction, options) + "\n";
  }
  text += '}';
  const std::string& thread = computation.attrs().execution_thread();
  if (!thread.empty() && thread != kMainThread) {
    text += configs::Printable(fmt::format(", execution_thread={}", QuotedText(thread)));
  }
  return text + '\n';
}

std::string ToString(const Module& module, const PrintOptions& options) {
  std::string head = "HloModule " + NameText(module.name());
  if (module.entry() != nullptr && !module.entry()->schedule().empty()) {
    head += ", is_scheduled=true";
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
    head += fmt::format(", input_output_alias={{ {} }}", fmt::join(parts, ", "));
  }
  const auto& donors = module.fields().buffer_donor().entries();
  if (!donors.empty()) {
    std::vector<std::string> parts;
    for (const auto& d : donors) {
      parts.push_back(fmt::format("({}, {{{}}})", d.parameter_number(),
                                  fmt::join(d.parameter_shape_index(), ",")));
    }
    head += fmt::format(", buffer_donor={{ {} }}", fmt::join(parts, ", "));
  }
  if (!module.fields().frontend_attributes().map().empty()) {
    head +=
        ", frontend_attributes=" + FrontendAttributesText(module.fields().frontend_attributes());
  }
  if (options.num_partitions > 0) {
    head += fmt::format(", num_partitions={}", options.num_partitions);
  }
  std::string text = configs::Printable(head) + "\n";
  for (const Computation* computation : module.PostOrder()) {
    text += "\n" + ToString(*computation, options);
  }
  return text;
}

}  // namespace tpusim::hlo
