// tpusim run: simulates one step and says where the time goes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "sim/results/atomic_file.h"
#include "sim/results/memory_text.h"
#include "sim/results/perfetto.h"
#include "sim/results/report.h"
#include "sim/results/summary.h"
#include "sim/results/trace_model.h"
#include "sim/simulate.h"
#include "tools/tpusim/command.h"
#include "tools/tpusim/console.h"
#include "tools/tpusim/outputs.h"
#include "tools/tpusim/pipeline.h"
#include "tools/tpusim/rollup_flags.h"

namespace tpusim::tools {
namespace {

struct RunFlags {
  std::string workload, config;
  std::string trace, trace_chips, trace_totals, report;
  std::string trace_blocks = "16";
  bool memory = false;
  RollupFlags rollup;
  ProgramFlags program;
  MachineFlags machine;
};

constexpr std::string_view kAll = "all";
// Of each table of --memory.
constexpr size_t kMemoryRows = 10;
constexpr int64_t kMostBlocks = 1'000'000'000;
// Traces from this size on are announced by a warning.
constexpr int64_t kLargeTrace = 1'000'000'000;

// "0,3" -> {0, 3}; false if it is not a list of chips.
bool ParseChips(const std::string& text, std::vector<int64_t>* chips) {
  const char* at = text.data();
  const char* const last = text.data() + text.size();
  while (true) {
    int64_t chip = 0;
    const auto [end, error] = std::from_chars(at, last, chip);
    if (error != std::errc() || chip < 0) return false;
    chips->push_back(chip);
    if (end == last) return true;
    if (*end != ',') return false;
    at = end + 1;
  }
}

std::string CheckChips(const std::string& text) {
  std::vector<int64_t> ignored;
  if (text == kAll || ParseChips(text, &ignored)) return "";
  return fmt::format("\"{}\" is neither 'all' nor a list of chips such as 0,3", text);
}

// "64" -> 64, "all" and "0" -> 0; false if it is neither.
bool ParseBlocks(const std::string& text, int64_t* blocks) {
  *blocks = 0;
  if (text == kAll) return true;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *blocks);
  return error == std::errc() && end == text.data() + text.size() && *blocks >= 0 &&
         *blocks <= kMostBlocks;
}

std::string CheckBlocks(const std::string& text) {
  int64_t ignored = 0;
  if (ParseBlocks(text, &ignored)) return "";
  return fmt::format("\"{}\" is neither 'all' nor a number up to {}", text, kMostBlocks);
}

// The devices whose spans the trace shows: one per distinct program, all, or
// those of the chips asked for.
absl::StatusOr<std::vector<int32_t>> DevicesToRecord(const RunFlags& flags,
                                                     const Prepared& prepared) {
  if (flags.trace.empty()) return std::vector<int32_t>();
  if (flags.trace_chips.empty()) return sim::Representatives(prepared.compiled.program);
  const configs::Topology& topology = prepared.config.topology;
  std::vector<int64_t> chips;
  if (flags.trace_chips == kAll) {
    for (int64_t chip = 0; chip < topology.chips(); ++chip) chips.push_back(chip);
  } else {
    TPUSIM_CHECK(ParseChips(flags.trace_chips, &chips), "the parser lets no other form through");
  }
  std::vector<bool> wanted(topology.devices(), false);
  for (const int64_t chip : chips) {
    if (chip >= topology.chips()) {
      return UserError(fmt::format("--trace-chips: there is no chip {}; {} has chips 0 to {}", chip,
                                   prepared.config.name, topology.chips() - 1));
    }
    for (int64_t i = 0; i < topology.devices_per_chip(); ++i) {
      wanted[chip * topology.devices_per_chip() + i] = true;
    }
  }
  std::vector<int32_t> devices;
  for (int64_t device = 0; device < topology.devices(); ++device) {
    if (wanted[device]) devices.push_back(static_cast<int32_t>(device));
  }
  return devices;
}

// Warns of a large trace; on a terminal, says how far a long one is.
class TraceProgress : public results::TraceListener {
 public:
  explicit TraceProgress(bool quiet) : shows_(!quiet && IsTerminal()) {}

  void Begins(int64_t estimated_bytes) override {
    estimated_ = estimated_bytes;
    if (estimated_bytes < kLargeTrace) return;
    PrintWarnings(
        {fmt::format("the trace will take about {:.1f} GB; --trace-chips with fewer "
                     "chips and --trace-blocks with a smaller number shorten it",
                     static_cast<double>(estimated_bytes) * 1e-9)});
  }

  void Written(int64_t bytes) override {
    if (!shows_ || bytes < shown_ + kStep) return;
    shown_ = bytes;
    ShowProgress(fmt::format("trace: {} of about {} MB", bytes / 1'000'000,
                             std::max(bytes, estimated_) / 1'000'000));
  }

  ~TraceProgress() override {
    if (shown_ > 0) ShowProgress("");
  }

 private:
  static constexpr int64_t kStep = 5'000'000;  // bytes
  const bool shows_;
  int64_t estimated_ = 0, shown_ = 0;
};

absl::Status WriteTrace(const RunFlags& flags, const Prepared& prepared,
                        const sim::Timeline& timeline) {
  if (flags.trace.empty()) return absl::OkStatus();
  TraceProgress progress(flags.program.quiet);
  ASSIGN_OR_RETURN(
      const results::TraceTotals totals,
      results::WritePerfettoTrace(flags.trace, prepared.config, prepared.compiled.program.info,
                                  timeline, &progress));
  if (flags.trace_totals.empty()) return absl::OkStatus();
  return results::WriteFileAtomically(flags.trace_totals, results::ToJson(totals));
}

absl::Status Run(const RunFlags& flags) {
  RETURN_IF_ERROR(CheckOutputs({{"--trace", flags.trace},
                                {"--trace-totals", flags.trace_totals},
                                {"--report", flags.report}},
                               InputsOf(flags.workload, flags.config)));
  ASSIGN_OR_RETURN(const Prepared prepared, Prepare(flags.workload, flags.config, flags.program,
                                                    CompileOptionsOf(flags.program)));
  ASSIGN_OR_RETURN(const std::vector<int32_t> devices, DevicesToRecord(flags, prepared));
  if (const std::string warning = ExpectedEventsWarning(prepared, flags.machine);
      !warning.empty() && !flags.program.quiet) {
    PrintWarnings({warning});
  }
  int64_t blocks = 0;
  TPUSIM_CHECK(ParseBlocks(flags.trace_blocks, &blocks), "the parser lets no other form through");
  const auto warn = [&](const std::string& warning) {
    if (!flags.program.quiet) PrintWarnings({warning});
  };
  ASSIGN_OR_RETURN(const Simulated simulated,
                   Simulate(prepared, flags.machine, devices, blocks, warn));
  if (flags.program.verbose) {
    PrintNote(fmt::format("simulating took {:.1f} ms, {} events", simulated.seconds * 1e3,
                          simulated.timeline.events));
  }

  RETURN_IF_ERROR(WriteTrace(flags, prepared, simulated.timeline));
  if (!flags.report.empty()) {
    RETURN_IF_ERROR(results::WriteFileAtomically(flags.report, results::ToJson(simulated.report)));
  }
  if (flags.program.quiet) return absl::OkStatus();
  RETURN_IF_ERROR(PrintResult(results::Summarize(
      simulated.report, {flags.rollup.By(results::RollupBy::kOp), flags.rollup.top})));
  if (flags.memory) {
    const size_t top = flags.rollup.top > 0 ? flags.rollup.top : kMemoryRows;
    RETURN_IF_ERROR(PrintResult(results::MemoryText(simulated.report, top)));
  }
  PrintWarnings(simulated.report.warnings);
  return absl::OkStatus();
}

}  // namespace

Command AddRun(CLI::App& parent) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* app = parent.add_subcommand("run", "Simulate one step and print a summary");
  AddWorkloadFlags(*app, flags->workload, flags->config);
  CLI::Option* trace =
      app->add_option("--trace", flags->trace, "Write a Perfetto trace")->type_name("FILE");
  app->add_option("--trace-chips", flags->trace_chips,
                  "Chips in the trace: 'all' or 0,3 (default: one per distinct program)")
      ->type_name("CHIPS")
      ->needs(trace)
      ->check(CLI::Validator(CheckChips, ""));
  app->add_option("--trace-blocks", flags->trace_blocks,
                  "Spans that the trace has of the grid steps of an operation, per track; more are "
                  "merged with their neighbours ('all' or 0: never)")
      ->type_name("N")
      ->capture_default_str()
      ->needs(trace)
      ->check(CLI::Validator(CheckBlocks, ""));
  app->add_option("--trace-totals", flags->trace_totals,
                  "Write what a reader of the trace must find, as JSON")
      ->type_name("FILE")
      ->needs(trace);
  app->add_option("--report", flags->report, "Write the report as JSON")->type_name("FILE");
  app->add_flag("--memory", flags->memory,
                "Also print what HBM holds at its peak: by owner, scope and array");
  AddRollupFlags(*app, flags->rollup);
  AddProgramFlags(*app, flags->program);
  AddMachineFlags(*app, flags->machine);
  return {app, [flags] { return Run(*flags); }};
}

}  // namespace tpusim::tools
