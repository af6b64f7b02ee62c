#include "workloads/hlo/io/text_parser.h"

#include <fmt/format.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "configs/number_text.h"
#include "configs/status_macros.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/late_operands.h"
#include "workloads/hlo/io/text_attributes.h"
#include "workloads/hlo/io/text_cursor.h"
#include "workloads/hlo/io/text_structures.h"
#include "workloads/hlo/io/text_values.h"
#include "workloads/hlo/rules/op_rules.h"

namespace tpusim::hlo {
namespace {

constexpr std::string_view kModule = "HloModule";
constexpr int kMostNestedOperands = 64;

class TextParser {
 public:
  explicit TextParser(std::string_view text) : text_(text) {}

  absl::StatusOr<ParsedText> Parse() {
    RETURN_IF_ERROR(ParseHeader());
    RETURN_IF_ERROR(ParseStackFrames());
    Computation* last = nullptr;
    while (!text_.AtEnd()) {
      ASSIGN_OR_RETURN(last, ParseComputation());
    }
    Module& module = *parsed_.module;
    if (last == nullptr) return text_.Error("a computation is expected here");
    if (module.entry() == nullptr) module.set_entry(last);
    if (module.name().empty()) module.set_name(module.entry()->name());
    if (scheduled_) {
      for (Computation* c : ControlComputations(module)) c->set_schedule(c->instructions());
    }
    JoinLateOperands(module);
    ReadOperandsThemselves(module);
    RETURN_IF_ERROR(Verify(module));
    return std::move(parsed_);
  }

 private:
  // A text without a header has nothing but computations.
  absl::Status ParseHeader() {
    std::string name;
    if (text_.Take(kModule)) {
      ASSIGN_OR_RETURN(name, text_.Name());
    }
    parsed_.module = std::make_unique<Module>(std::move(name));
    pb::HloModuleProto& fields = parsed_.module->mutable_fields();
    while (text_.Take(",")) {
      const std::string_view key = text_.Word();
      RETURN_IF_ERROR(text_.Expect("="));
      if (key == "is_scheduled") {
        ASSIGN_OR_RETURN(scheduled_, text_.Bool());
      } else if (key == "num_partitions") {
        ASSIGN_OR_RETURN(parsed_.num_partitions, text_.Integer());
      } else if (key == "replica_count") {
        ASSIGN_OR_RETURN(const int64_t replicas, text_.Integer());
        if (parsed_.num_partitions == 0) parsed_.num_partitions = replicas;
      } else if (key == "input_output_alias") {
        RETURN_IF_ERROR(ParseAliases(*fields.mutable_input_output_alias()));
      } else if (key == "buffer_donor") {
        RETURN_IF_ERROR(ParseDonors(*fields.mutable_buffer_donor()));
      } else if (key == "frontend_attributes") {
        RETURN_IF_ERROR(ParseFrontendAttributes(text_, *fields.mutable_frontend_attributes()));
      } else {
        RETURN_IF_ERROR(text_.Value().status());  // layouts of the entry, XLA's own settings
      }
    }
    return absl::OkStatus();
  }

  template <typename Field>
  absl::Status ParseIndex(Field* field) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> index, text_.IntList());
    field->Add(index.begin(), index.end());
    return absl::OkStatus();
  }

  // { {0}: (1, {}, may-alias), ... }
  absl::Status ParseAliases(pb::HloInputOutputAliasProto& aliases) {
    RETURN_IF_ERROR(text_.Expect("{"));
    while (!text_.Take("}")) {
      auto* alias = aliases.add_entries();
      RETURN_IF_ERROR(ParseIndex(alias->mutable_output_shape_index()));
      RETURN_IF_ERROR(text_.Expect(":"));
      RETURN_IF_ERROR(text_.Expect("("));
      ASSIGN_OR_RETURN(const int64_t parameter, text_.Integer());
      alias->set_parameter_number(parameter);
      RETURN_IF_ERROR(text_.Expect(","));
      RETURN_IF_ERROR(ParseIndex(alias->mutable_parameter_shape_index()));
      const bool must = text_.Take(",") && text_.Word() == "must-alias";
      alias->set_kind(must ? pb::HloInputOutputAliasProto::MUST_ALIAS
                           : pb::HloInputOutputAliasProto::MAY_ALIAS);
      RETURN_IF_ERROR(text_.Expect(")"));
      text_.Take(",");
    }
    return absl::OkStatus();
  }

  // { (0, {}), ... }
  absl::Status ParseDonors(pb::HloBufferDonorProto& donors) {
    RETURN_IF_ERROR(text_.Expect("{"));
    while (!text_.Take("}")) {
      auto* donor = donors.add_entries();
      RETURN_IF_ERROR(text_.Expect("("));
      ASSIGN_OR_RETURN(const int64_t parameter, text_.Integer());
      donor->set_parameter_number(parameter);
      RETURN_IF_ERROR(text_.Expect(","));
      RETURN_IF_ERROR(ParseIndex(donor->mutable_parameter_shape_index()));
      RETURN_IF_ERROR(text_.Expect(")"));
      text_.Take(",");
    }
    return absl::OkStatus();
  }

  // Tables of where operations come from, with numbered rows from 1.
  absl::Status ParseStackFrames() {
    pb::StackFrameIndexProto& index = *parsed_.module->mutable_fields().mutable_stack_frame_index();
    const auto is_row = [&] { return text_.Peek() >= '0' && text_.Peek() <= '9'; };
    for (const bool functions : {false, true}) {
      if (!text_.Take(functions ? "FunctionNames" : "FileNames")) continue;
      while (is_row()) {
        RETURN_IF_ERROR(text_.Integer().status());
        ASSIGN_OR_RETURN(std::string name, text_.Quoted());
        (functions ? index.add_function_names() : index.add_file_names())->swap(name);
      }
    }
    if (text_.Take("FileLocations")) {
      while (is_row()) RETURN_IF_ERROR(ParseRow(index.add_file_locations()));
    }
    if (text_.Take("StackFrames")) {
      while (is_row()) RETURN_IF_ERROR(ParseRow(index.add_stack_frames()));
    }
    if (index.file_names_size() == 0) parsed_.module->mutable_fields().clear_stack_frame_index();
    return absl::OkStatus();
  }

  // 3 {line=4 column=7}: numbers of fields of the row, which are 0 where they are missing.
  absl::Status ParseRow(google::protobuf::Message* row) {
    RETURN_IF_ERROR(text_.Integer().status());
    RETURN_IF_ERROR(text_.Expect("{"));
    while (!text_.Take("}")) {
      const auto* field = row->GetDescriptor()->FindFieldByName(std::string(text_.Word()));
      RETURN_IF_ERROR(text_.Expect("="));
      ASSIGN_OR_RETURN(const int64_t value, text_.Integer());
      if (field == nullptr) continue;
      row->GetReflection()->SetInt32(row, field, static_cast<int32_t>(value));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Computation*> ParseComputation() {
    const bool entry = text_.Take("ENTRY ");
    const size_t begin = text_.Begin();
    ASSIGN_OR_RETURN(const std::string name, text_.Name());
    // What it takes and gives stands at its parameters and its root as well.
    if (text_.Peek() == '(') RETURN_IF_ERROR(text_.Balanced().status());
    if (text_.Take("->")) RETURN_IF_ERROR(ParseShape(text_).status());
    ASSIGN_OR_RETURN(Computation * computation, ParseBody(name, begin));
    if (!computations_.emplace(name, computation).second) {
      return text_.ErrorAt(begin, fmt::format("a second computation is called {}", name));
    }
    if (text_.Take(", execution_thread=")) {
      ASSIGN_OR_RETURN(std::string thread, text_.Quoted());
      computation->mutable_attrs().set_execution_thread(std::move(thread));
    }
    if (!entry) return computation;
    if (parsed_.module->entry() != nullptr) return text_.ErrorAt(begin, "a second ENTRY");
    parsed_.module->set_entry(computation);
    return computation;
  }

  // Parses the instructions between the brackets of a computation; `begin` is where an error is
  // shown.
  absl::StatusOr<Computation*> ParseBody(const std::string& name, size_t begin) {
    RETURN_IF_ERROR(text_.Expect("{"));
    Computation* computation = parsed_.module->AddComputation(name);
    instructions_.clear();
    while (!text_.Take("}")) {
      if (text_.AtEnd()) return text_.ErrorAt(begin, fmt::format("{} does not end", name));
      RETURN_IF_ERROR(ParseInstruction(computation));
    }
    if (computation->root() == nullptr) {
      if (computation->size() == 0) return text_.ErrorAt(begin, name + " is empty");
      computation->set_root(computation->instructions().back());
    }
    return computation;
  }

  // An opcode as the text has it; `slice-start` names the operation that it wraps.
  struct OpcodeInText {
    Opcode opcode = Opcode::kParameter;
    std::optional<Opcode> wrapped;
  };
  absl::StatusOr<OpcodeInText> ParseOpcode() {
    const size_t begin = text_.Begin();
    const std::string_view word = text_.Word();
    if (const auto opcode = OpcodeFromName(word)) return OpcodeInText{*opcode, std::nullopt};
    static constexpr std::pair<std::string_view, Opcode> kForms[] = {
        {"-start", Opcode::kAsyncStart},
        {"-update", Opcode::kAsyncUpdate},
        {"-done", Opcode::kAsyncDone}};
    for (const auto& [suffix, form] : kForms) {
      if (!word.ends_with(suffix)) continue;
      const auto wrapped = OpcodeFromName(word.substr(0, word.size() - suffix.size()));
      if (wrapped) return OpcodeInText{form, *wrapped};
    }
    return absl::Status(absl::StatusCode::kUnimplemented,
                        fmt::format("{}: unknown opcode '{}'", text_.Position(begin), word));
  }

  absl::Status ParseInstruction(Computation* computation) {
    const bool root = text_.Take("ROOT ");
    const size_t begin = text_.Begin();
    ASSIGN_OR_RETURN(const std::string name, text_.Name());
    RETURN_IF_ERROR(text_.Expect("="));
    std::optional<Shape> shape;
    if (!AtOperation()) {
      ASSIGN_OR_RETURN(shape, ParseShape(text_));
    }
    ASSIGN_OR_RETURN(Instruction * instruction,
                     ParseOperation(computation, begin, std::move(shape), name));
    if (!instructions_.emplace(name, instruction).second) {
      return text_.ErrorAt(begin, fmt::format("a second instruction is called {}", name));
    }
    if (!root) return absl::OkStatus();
    if (computation->root() != nullptr) return text_.ErrorAt(begin, "a second ROOT");
    computation->set_root(instruction);
    return absl::OkStatus();
  }

  // Whether an opcode comes next, where its shape may be left out: `add(`.
  bool AtOperation() {
    const size_t begin = text_.Begin();
    const bool operation = !text_.Word().empty() && text_.Peek() == '(';
    text_.set_at(begin);
    return operation;
  }

  // Parses from the opcode to the last attribute. `begin` is where an error is shown; without a
  // shape the operands imply it.
  absl::StatusOr<Instruction*> ParseOperation(Computation* computation, size_t begin,
                                              std::optional<Shape> shape, std::string_view name) {
    ASSIGN_OR_RETURN(const OpcodeInText opcode, ParseOpcode());
    if (!shape && RulesOf(opcode.opcode).states_shape) {
      return text_.ErrorAt(begin, fmt::format("the shape of {} must be written: its operands do "
                                              "not imply it",
                                              OpcodeName(opcode.opcode)));
    }
    RETURN_IF_ERROR(text_.Expect("("));
    TextAttributes attributes;
    std::vector<Instruction*> operands;
    if (opcode.opcode == Opcode::kParameter) {
      ASSIGN_OR_RETURN(const int64_t number, text_.Integer());
      attributes.proto.set_parameter_number(number);
    } else if (opcode.opcode == Opcode::kConstant) {
      ASSIGN_OR_RETURN(*attributes.proto.mutable_literal(), ParseLiteral(text_, *shape));
      if (!attributes.proto.literal().has_shape()) attributes.proto.clear_literal();
    } else {
      ASSIGN_OR_RETURN(operands, ParseOperands(computation));
    }
    RETURN_IF_ERROR(text_.Expect(")"));
    // Attributes of `slice-start` are those of the slice.
    const bool wraps = opcode.wrapped && opcode.opcode == Opcode::kAsyncStart;
    RETURN_IF_ERROR(ParseAttributes(text_, wraps ? *opcode.wrapped : opcode.opcode, name.empty(),
                                    attributes));
    ASSIGN_OR_RETURN(std::vector<Computation*> called, ComputationsOf(attributes));
    if (wraps) {
      if (!shape->IsTuple() || shape->tuple.size() < 2) {
        return text_.ErrorAt(begin, "the shape of a start is ((operands), result, ...)");
      }
      called = {Wrap(*opcode.wrapped, shape->tuple[1], operands, std::move(called), attributes)};
    }
    Opcode made = opcode.opcode;
    if (made == Opcode::kConstant && shape->rank() > 0 && attributes.proto.has_literal() &&
        attributes.proto.literal().shape().dimensions().empty()) {
      operands = {computation->Add(made, MakeScalarShape(shape->element_type), {})};
      operands[0]->mutable_attrs().mutable_literal()->Swap(attributes.proto.mutable_literal());
      attributes.proto.clear_literal();
      made = Opcode::kBroadcast;
    }
    const bool implied = !shape;
    if (implied) shape = operands.empty() ? MakeTupleShape({}) : operands[0]->shape();
    Instruction* instruction =
        computation->Add(made, *std::move(shape), std::move(operands), name);
    instruction->set_called(std::move(called));
    for (const NameInText& before : attributes.control_predecessors) {
      ASSIGN_OR_RETURN(Instruction * predecessor, Find(before));
      instruction->AddControlPredecessor(predecessor);
    }
    instruction->set_attrs(std::move(attributes.proto));
    if (implied) RETURN_IF_ERROR(SetImpliedShape(*instruction, begin));
    return instruction;
  }

  // Gives an instruction the shape that its operands, attributes and callees imply; as first guess
  // it has that of its first operand.
  absl::Status SetImpliedShape(Instruction& instruction, size_t begin) {
    if (instruction.opcode() == Opcode::kConditional && !instruction.called().empty()) {
      instruction.set_shape(instruction.called()[0]->root()->shape());
    }
    absl::StatusOr<Shape> shape = ImpliedShape(instruction);
    if (!shape.ok()) {
      return text_.ErrorAt(begin, fmt::format("{}: {}", OpcodeName(instruction.opcode()),
                                              Message(shape.status())));
    }
    instruction.set_shape(*std::move(shape));
    return absl::OkStatus();
  }

  // A computation of the operation alone; its attributes are no longer the start's.
  Computation* Wrap(Opcode opcode, const Shape& result, const std::vector<Instruction*>& operands,
                    std::vector<Computation*> called, TextAttributes& attributes) {
    Computation* inner = parsed_.module->AddComputation("async_computation");
    std::vector<Instruction*> parameters;
    for (const Instruction* operand : operands) {
      parameters.push_back(
          inner->AddParameter(static_cast<int64_t>(parameters.size()), operand->shape(), "param"));
    }
    Instruction* wrapped = inner->Add(opcode, result, parameters);
    wrapped->set_called(std::move(called));
    pb::HloInstructionProto outside;
    outside.set_async_execution_thread(attributes.proto.async_execution_thread());
    *outside.mutable_metadata() = attributes.proto.metadata();
    attributes.proto.clear_async_execution_thread();
    wrapped->set_attrs(std::move(attributes.proto));
    attributes.proto = std::move(outside);
    inner->set_root(wrapped);
    return inner;
  }

  absl::StatusOr<std::vector<Instruction*>> ParseOperands(Computation* computation) {
    std::vector<Instruction*> operands;
    if (text_.Peek() == ')') return operands;
    do {
      ASSIGN_OR_RETURN(Instruction * operand, ParseOperand(computation));
      operands.push_back(operand);
    } while (text_.Take(","));
    return operands;
  }

  // Parses a name, with the shape before it in older texts, or an operation without a name:
  // `f32[] constant(1)`.
  absl::StatusOr<Instruction*> ParseOperand(Computation* computation) {
    const size_t begin = text_.Begin();
    std::optional<Shape> shape;
    if (text_.Peek() != '%') {
      const bool has_shape =
          text_.Peek() == '(' || (!text_.Word().empty() && text_.Peek() == '[');
      text_.set_at(begin);
      if (has_shape) {
        ASSIGN_OR_RETURN(shape, ParseShape(text_));
      }
      if (AtOperation()) {
        if (++nested_ > kMostNestedOperands) return text_.Error("operands nested too deep");
        auto operation = ParseOperation(computation, begin, std::move(shape), "");
        --nested_;
        return operation;
      }
    }
    NameInText operand;
    operand.at = text_.Begin();
    ASSIGN_OR_RETURN(operand.name, text_.Name());
    return FindOperand(operand, computation);
  }

  // Newer texts name an element of a tuple where it is used: %t#1 is get-tuple-element(%t),
  // index=1.
  absl::StatusOr<Instruction*> FindOperand(const NameInText& name, Computation* computation) {
    const std::string_view text = name.name;
    size_t end = text.find('#');
    if (end == std::string_view::npos || instructions_.contains(name.name)) return Find(name);
    ASSIGN_OR_RETURN(Instruction * found, Find({name.name.substr(0, end), name.at}));
    while (end != std::string_view::npos) {
      const size_t begin = end + 1;
      end = text.find('#', begin);
      const auto index = configs::NumberIn<int64_t>(text.substr(begin, end - begin));
      const Shape& shape = found->shape();
      if (!index || !shape.IsTuple() || *index < 0 || *index >= std::ssize(shape.tuple)) {
        return text_.ErrorAt(name.at, fmt::format("{} has no element '{}'", found->name(),
                                                  text.substr(begin, end - begin)));
      }
      found = ElementOf(found, *index, std::string(text.substr(0, end)), computation);
    }
    return found;
  }

  // Returns the get-tuple-element of that name in the text, which all its uses share.
  Instruction* ElementOf(Instruction* tuple, int64_t index, const std::string& name,
                         Computation* computation) {
    Instruction*& element = instructions_[name];
    if (element != nullptr) return element;
    element = computation->Add(Opcode::kGetTupleElement, tuple->shape().tuple[index], {tuple}, name,
                               tuple);
    element->mutable_attrs().set_tuple_index(index);
    return element;
  }

  absl::StatusOr<Instruction*> Find(const NameInText& name) const {
    const auto found = instructions_.find(name.name);
    if (found != instructions_.end()) return found->second;
    return text_.ErrorAt(
        name.at,
        fmt::format("{} is no instruction that comes before in its computation", name.name));
  }

  absl::StatusOr<std::vector<Computation*>> ComputationsOf(const TextAttributes& attributes) {
    std::vector<Computation*> called;
    for (const NameInText& name : attributes.called) {
      if (name.name.empty()) {
        ASSIGN_OR_RETURN(Computation * written, ParseWrittenOut(name.at));
        called.push_back(written);
        continue;
      }
      const auto found = computations_.find(name.name);
      if (found == computations_.end()) {
        return text_.ErrorAt(name.at,
                             fmt::format("{} is no computation that comes before", name.name));
      }
      called.push_back(found->second);
    }
    return called;
  }

  // Parses a computation that stands where others have a name: `to_apply={ ... }`.
  absl::StatusOr<Computation*> ParseWrittenOut(size_t at) {
    if (++nested_ > kMostNestedOperands) return text_.ErrorAt(at, "computations nested too deep");
    const size_t after = text_.at();
    std::unordered_map<std::string, Instruction*> outer;
    outer.swap(instructions_);
    text_.set_at(at);
    ASSIGN_OR_RETURN(Computation * computation, ParseBody("computation", at));
    text_.set_at(after);
    outer.swap(instructions_);
    --nested_;
    return computation;
  }

  TextCursor text_;
  ParsedText parsed_;
  bool scheduled_ = false;
  int nested_ = 0;  // operations and computations that stand inside of others
  std::unordered_map<std::string, Computation*> computations_;
  std::unordered_map<std::string, Instruction*> instructions_;  // of the current computation
};

}  // namespace

bool LooksLikeHloText(std::string_view bytes) {
  TextCursor text(bytes);
  if (text.Take(kModule)) return true;
  constexpr size_t kLooked = 4096;
  const auto is_text = [](char c) { return c == '\n' || c == '\t' || c == '\r' || c >= ' '; };
  if (!std::ranges::all_of(bytes.substr(0, kLooked), is_text)) return false;
  if (text.Take("ENTRY ")) return true;
  // The first computation of a module without a header: `name {` or `%name (p: f32[]) -> f32[] {`.
  const size_t begin = text.Begin();
  if (const auto name = text.Name(); !name.ok() || *name == "module") return false;
  if (text.Peek() == '{') return true;
  return bytes[begin] == '%' && text.Peek() == '(';
}

absl::StatusOr<ParsedText> ParseHloText(std::string_view text) { return TextParser(text).Parse(); }

}  // namespace tpusim::hlo
