// tpusim kernel: where the time of one kernel goes, unit by unit.
#include <fmt/format.h>
#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "configs/printable.h"
#include "configs/status_macros.h"
#include "models/timing/kernel_pressure.h"
#include "models/timing/kernel_time.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/kernel_text.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "tools/tpusim/subcommands/kernel_body.h"
#include "workloads/compiler/session.h"
#include "workloads/kernels/opaque/custom_cost.h"

namespace tpusim::tools {
namespace {

using timing::KernelPressure;
using Json = nlohmann::ordered_json;

// Kernels that an error names.
constexpr size_t kNamedKernels = 5;

struct KernelFlags {
  std::string workload, config, name;
  bool json = false, body = false;
  ProgramFlags program;
};

// A kernel of the program, and the operation that it is.
struct NamedKernel {
  const isa::OpInfo* op = nullptr;
  isa::Kernel kernel;
};

// Each operation once, in program order.
void AddKernels(const isa::Body& body, const isa::PodProgram& program, std::vector<int32_t>& inside,
                std::set<int32_t>& seen, std::vector<NamedKernel>& kernels) {
  const auto add = [&](isa::Kernel kernel) {
    if (inside.empty() || !seen.insert(inside.back()).second) return;
    kernels.push_back({&program.info.ops[static_cast<size_t>(inside.back())], std::move(kernel)});
  };
  const auto go_on = [&](const isa::SharedBody& inner) {
    if (inner != nullptr) AddKernels(*inner, program, inside, seen, kernels);
  };
  for (const isa::Instruction& instruction : body) {
    const isa::InstructionKind& kind = instruction.kind;
    if (const auto* label = std::get_if<isa::Label>(&kind)) {
      if (label->begin) {
        inside.push_back(label->op);
      } else if (!inside.empty()) {
        inside.pop_back();
      }
    } else if (const auto* kernel = std::get_if<isa::Kernel>(&kind)) {
      add(*kernel);
    } else if (const auto* block = std::get_if<isa::Block>(&kind)) {
      add({{}, {}, *block});
    } else if (const auto* loop = std::get_if<isa::Loop>(&kind)) {
      go_on(loop->body);
    } else if (const auto* call = std::get_if<isa::Call>(&kind)) {
      go_on(call->body);
    } else if (const auto* start = std::get_if<isa::Start>(&kind)) {
      go_on(start->body);
    } else if (const auto* branch = std::get_if<isa::Branch>(&kind)) {
      for (const isa::SharedBody& inner : branch->bodies) go_on(inner);
    }
  }
}

std::vector<NamedKernel> KernelsOf(const isa::PodProgram& program) {
  std::vector<NamedKernel> kernels;
  std::vector<int32_t> inside;
  std::set<int32_t> seen;
  for (const isa::SharedBody& body : program.programs) {
    AddKernels(*body, program, inside, seen, kernels);
  }
  return kernels;
}

// Returns the calls of Pallas kernels that their author calls so.
std::set<std::string> CallsNamed(const hlo::Module& module, const std::string& name) {
  std::set<std::string> calls;
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) {
      if (kernels::IsPallasCall(*i) && kernels::IsNamed(*i, name)) calls.insert(i->name());
    }
  }
  return calls;
}

// Returns the kernels whose operation is called so or is one of `calls`.
absl::StatusOr<std::vector<NamedKernel>> Matching(std::vector<NamedKernel> kernels,
                                                  const std::string& name,
                                                  const std::set<std::string>& calls,
                                                  const configs::ChipParams& chip) {
  const auto matches = [&](const NamedKernel& kernel) {
    const std::string& operation = kernel.op->name;
    return fnmatch(name.c_str(), operation.c_str(), 0) == 0 || calls.contains(operation);
  };
  std::vector<NamedKernel> chosen;
  std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(chosen), matches);
  if (!chosen.empty()) return chosen;
  if (kernels.empty()) return UserError("the program has no kernels");
  std::vector<std::pair<Picoseconds, const NamedKernel*>> longest;
  for (const NamedKernel& kernel : kernels) {
    longest.emplace_back(timing::KernelTime(chip, kernel.kernel), &kernel);
  }
  std::stable_sort(longest.begin(), longest.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string names;
  for (size_t n = 0; n < longest.size() && n < kNamedKernels; ++n) {
    names += fmt::format("{}{}", n == 0 ? "" : ", ", longest[n].second->op->name);
  }
  return UserError(fmt::format("the program has no kernel '{}'; its longest are {}", name, names));
}

std::string GridText(const isa::Kernel& kernel) {
  std::string text;
  for (const isa::GridDim& dim : kernel.grid) {
    text += fmt::format("{}{}", text.empty() ? "" : " x ", dim.count);
  }
  return text.empty() ? "1" : text;
}

std::string_view KindOf(const isa::Window& window) {
  return window.kind == isa::WindowKind::kInput ? "in" : "out";
}

std::string AxesText(const isa::Window& window) {
  std::string text;
  for (int axis = 0; axis < 32; ++axis) {
    if ((window.moves_with >> axis & 1U) != 0) {
      text += fmt::format("{}{}", text.empty() ? "" : ",", axis);
    }
  }
  return text.empty() ? "-" : text;
}

std::string TextOf(const NamedKernel& named, const KernelPressure& p) {
  const isa::Kernel& kernel = named.kernel;
  const auto us = [](Picoseconds t) { return ToMicroseconds(t); };
  const auto share = [&](Picoseconds t) {
    return p.time > Picoseconds(0) ? 100 * ToSeconds(t) / ToSeconds(p.time) : 0;
  };
  std::string text = fmt::format("{}", named.op->name);
  if (!named.op->category.empty()) text += fmt::format(" ({})", named.op->category);
  if (!named.op->source.empty()) text += fmt::format(", {}", named.op->source);
  text += fmt::format("\n  {:.3f} us, bound by {}\n", us(p.time), p.bound);
  text += fmt::format("  {} steps ({}), {:.3f} us of compute each\n", kernel.Steps(),
                      GridText(kernel), us(p.compute) / kernel.FullSteps());
  text += fmt::format(
      "  launch {:.3f} us ({:.1f} %), overhead of steps {:.3f} us ({:.1f} %), waits {:.3f} us "
      "({:.1f} %), stalls {:.3f} us ({:.1f} %)\n",
      us(p.launch), share(p.launch), us(p.overhead), share(p.overhead), us(p.waits), share(p.waits),
      us(p.stalls), share(p.stalls));
  text += "\n  unit           cycles   % of the time\n";
  for (const timing::UnitPressure& unit : p.units) {
    text += fmt::format("  {:<8}{:>13.0f}{:>16.1f}\n", unit.unit, unit.cycles, 100 * unit.share);
  }
  text += fmt::format("\n  windows ({} bytes of VMEM, {} bytes read, {} written)\n", p.vmem.value(),
                      p.read.value(), p.written.value());
  text += "        bytes  buffers  moves with axes\n";
  for (const isa::Window& window : kernel.windows) {
    text += fmt::format("  {:<4}{:>7}{:>9}  {}\n", KindOf(window), window.bytes.value(),
                        window.buffers, AxesText(window));
  }
  text += fmt::format(
      "\n  without input DMA   {:.3f} us\n  without output DMA  {:.3f} us\n"
      "  without compute     {:.3f} us\n",
      us(p.without_input), us(p.without_output), us(p.without_compute));
  return text;
}

Json JsonOf(const NamedKernel& named, const KernelPressure& p) {
  const auto ns = [](Picoseconds t) { return ToNanoseconds(t); };
  Json units = Json::array(), windows = Json::array(), grid = Json::array();
  for (const timing::UnitPressure& unit : p.units) {
    units.push_back({{"unit", unit.unit}, {"cycles", unit.cycles}, {"share", unit.share}});
  }
  for (const isa::Window& window : named.kernel.windows) {
    Json axes = Json::array();
    for (int axis = 0; axis < 32; ++axis) {
      if ((window.moves_with >> axis & 1U) != 0) axes.push_back(axis);
    }
    windows.push_back({{"kind", KindOf(window)},
                       {"bytes", window.bytes.value()},
                       {"buffers", window.buffers},
                       {"moves_with", std::move(axes)}});
  }
  for (const isa::GridDim& dim : named.kernel.grid) grid.push_back(dim.count);
  return Json{{"name", named.op->name},
              {"category", named.op->category},
              {"source", named.op->source},
              {"time_ns", ns(p.time)},
              {"bound_by", p.bound},
              {"grid", std::move(grid)},
              {"steps", named.kernel.Steps()},
              {"launch_ns", ns(p.launch)},
              {"compute_ns", ns(p.compute)},
              {"step_overhead_ns", ns(p.overhead)},
              {"waits_ns", ns(p.waits)},
              {"stalls_ns", ns(p.stalls)},
              {"units", std::move(units)},
              {"windows", std::move(windows)},
              {"vmem_bytes", p.vmem.value()},
              {"read_bytes", p.read.value()},
              {"written_bytes", p.written.value()},
              {"without_input_dma_ns", ns(p.without_input)},
              {"without_output_dma_ns", ns(p.without_output)},
              {"without_compute_ns", ns(p.without_compute)}};
}

}  // namespace

std::string KernelsText(const isa::PodProgram& program, const configs::ChipParams& chip) {
  std::string text;
  for (const NamedKernel& kernel : KernelsOf(program)) {
    text += (text.empty() ? "" : "\n") + TextOf(kernel, timing::PressureOf(chip, kernel.kernel));
  }
  return text;
}

namespace {

absl::Status PrintKernel(const KernelFlags& flags) {
  if (flags.body) {
    return PrintKernelBodies(flags.workload, flags.config, flags.name, flags.program, flags.json);
  }
  ASSIGN_OR_RETURN(const Source source, SourceOf(flags.workload));
  compiler::Session session;
  std::set<std::string> calls;
  const RunStages stages = [&](compiler::PartitionedProgram partitioned, const Machine& machine) {
    absl::StatusOr<compiler::CompileResult> compiled = compiler::Finish(
        std::move(partitioned), compiler::Stage::kStreams, machine.ToLowerFor());
    if (compiled.ok()) calls = CallsNamed(*compiled->module, flags.name);
    return compiled;
  };
  ASSIGN_OR_RETURN(const Prepared prepared,
                   Prepare(source, flags.config, flags.program, CompileOptionsOf(flags.program),
                           session, stages));
  const configs::ChipParams& chip = prepared.config.chip;
  ASSIGN_OR_RETURN(const std::vector<NamedKernel> kernels,
                   Matching(KernelsOf(prepared.compiled.program), flags.name, calls, chip));
  std::string text;
  Json list = Json::array();
  for (const NamedKernel& kernel : kernels) {
    const KernelPressure pressure = timing::PressureOf(chip, kernel.kernel);
    if (!text.empty()) text += "\n";
    text += TextOf(kernel, pressure);
    list.push_back(JsonOf(kernel, pressure));
  }
  if (!flags.program.quiet && !flags.json) PrintWarnings(WarningsOf(prepared));
  if (!flags.json) return PrintResult(configs::PrintableLines(text));
  Json json = results::HeadOf("tpusim.kernel/1", ThisProducer());
  json.update(Json{{"workload", prepared.name},
                   {"config", prepared.config.name},
                   {"kernels", std::move(list)},
                   {"warnings", WarningsOf(prepared)}});
  return PrintResult(results::JsonText(json));
}

}  // namespace

Command AddKernel(CLI::App& parent) {
  auto flags = std::make_shared<KernelFlags>();
  CLI::App* app =
      parent.add_subcommand("kernel", "Explain the time of one kernel, unit by unit");
  AddWorkloadFlags(*app, flags->workload, flags->config);
  app->add_option("name", flags->name,
                  "Name of an operation of the compiled program, as in reports, or of a Pallas "
                  "kernel; may be a glob")
      ->type_name("NAME")
      ->required();
  app->add_flag("--json", flags->json, "Print JSON");
  app->add_flag("--body", flags->body,
                "Print the work of one call of a Pallas kernel: FLOPs, bytes, matmuls, and "
                "loops that depend on data");
  AddProgramFlags(*app, flags->program);
  AddExamples(*app,
              {{"tpusim kernel step.pb dot.3", "what bounds this matmul"},
               {"tpusim kernel step.pb 'flash*' --body", "what these Pallas kernels do, by loops"},
               {"tpusim kernel step.pb 'pallas_call*' --json", "all of a kind, for programs"}});
  return {app, [flags] { return PrintKernel(*flags); }};
}

}  // namespace tpusim::tools
