#include "tests/workloads/passes/pass_test.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/text_parser.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/passes.h"
#include "workloads/passes/pipeline/pipeline.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Operands and control predecessors before users, from parameters and the root on; what neither
// needs comes last.
std::vector<const Instruction*> Walk(const Computation& computation) {
  std::vector<const Instruction*> order;
  if (!computation.schedule().empty()) {
    order.assign(computation.schedule().begin(), computation.schedule().end());
    return order;
  }
  std::unordered_set<const Instruction*> seen;
  std::vector<std::pair<const Instruction*, size_t>> stack;
  const auto visit = [&](const Instruction* start) {
    if (!seen.insert(start).second) return;
    stack.emplace_back(start, 0);
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      const size_t operands = i->operands().size();
      if (next < operands + i->control_predecessors().size()) {
        const Instruction* before =
            next < operands ? i->operand(next) : i->control_predecessors()[next - operands];
        ++next;
        if (seen.insert(before).second) stack.emplace_back(before, 0);
        continue;
      }
      order.push_back(i);
      stack.pop_back();
    }
  };
  for (const Instruction* parameter : computation.parameters()) visit(parameter);
  visit(computation.root());
  for (const Instruction* i : computation.instructions()) visit(i);
  return order;
}

class Rewriter {
 public:
  explicit Rewriter(const hlo::Module& from) : to_("m") {
    to_.mutable_fields() = from.fields();
    to_.mutable_fields().clear_stack_frame_index();
    to_.set_entry(Copy(*from.entry()));
  }
  std::string Text() const { return hlo::ToString(to_); }

 private:
  // Modules of tests call few computations in each other.
  Computation* Copy(const Computation& from) {
    const auto known = copies_.find(&from);
    if (known != copies_.end()) return known->second;
    const std::vector<const Instruction*> order = Walk(from);
    for (const Instruction* i : order) {
      for (const Computation* called : i->called()) Copy(*called);
    }
    Computation* to = to_.AddComputation(fmt::format("c{}", copies_.size()));
    copies_[&from] = to;
    std::unordered_map<const Instruction*, Instruction*> copy_of;
    std::vector<Instruction*> schedule;
    for (const Instruction* i : order) {
      std::vector<Instruction*> operands;
      for (const Instruction* operand : i->operands()) operands.push_back(copy_of.at(operand));
      Instruction* copy =
          to->Add(i->opcode(), i->shape(), operands, hlo::OpcodeName(i->opcode()), i);
      copy->mutable_attrs().clear_metadata();
      std::vector<Computation*> called;
      for (const Computation* c : i->called()) called.push_back(copies_.at(c));
      copy->set_called(called);
      for (const Instruction* before : i->control_predecessors()) {
        copy->AddControlPredecessor(copy_of.at(before));
      }
      copy_of[i] = copy;
      schedule.push_back(copy);
    }
    to->set_root(copy_of.at(from.root()));
    if (!from.schedule().empty()) to->set_schedule(schedule);
    return to;
  }

  hlo::Module to_;
  std::unordered_map<const Computation*, Computation*> copies_;
};

std::unique_ptr<hlo::Module> Parsed(std::string_view text) {
  absl::StatusOr<hlo::ParsedText> parsed = hlo::ParseHloText(text);
  TPUSIM_CHECK(parsed.ok(), Message(parsed.status()));
  return std::move(parsed->module);
}

}  // namespace

std::string Canonical(const hlo::Module& module) { return Rewriter(module).Text(); }
std::string Canonical(std::string_view text) { return Canonical(*Parsed(text)); }

PassText::PassText(std::string_view text, const std::string& config)
    : config_(configs::LoadConfig(config, {}).value()), target_(config_), module_(Parsed(text)) {
  costs_.machine = &target_;
}

absl::StatusOr<bool> PassText::Run(std::string_view passes) {
  ASSIGN_OR_RETURN(const Pipeline pipeline, ParsePipeline(passes));
  std::vector<PassRun> runs;
  return RunPipeline(pipeline, *module_, {target_, &costs_}, {}, runs);
}

bool HasLines(std::string_view text, std::string_view wanted) {
  const auto take_line = [](std::string_view& from) {
    const size_t end = std::min(from.find('\n'), from.size());
    std::string_view line = from.substr(0, end);
    from.remove_prefix(std::min(end + 1, from.size()));
    const size_t first = line.find_first_not_of(' ');
    return std::string(first == std::string_view::npos ? "" : line.substr(first));
  };
  while (!wanted.empty()) {
    const std::string line = take_line(wanted);
    if (line.empty()) continue;
    // Brackets are meant as they are.
    std::string pattern = "*";
    for (const char c : line) {
      if (c == '[' || c == ']' || c == '?' || c == '\\') pattern += '\\';
      pattern += c;
    }
    pattern += '*';
    bool found = false;
    while (!found && !text.empty())
      found = fnmatch(pattern.c_str(), take_line(text).c_str(), 0) == 0;
    if (!found) return false;
  }
  return true;
}

}  // namespace tpusim::passes
