#include "tools/tpusim/pipeline/trace_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "configs/number_text.h"
#include "configs/status_macros.h"
#include "sim/results/page/page.h"
#include "sim/results/report/atomic_file.h"
#include "sim/results/report/report.h"
#include "sim/results/report/text.h"
#include "sim/results/trace/perfetto.h"
#include "sim/results/trace/trace_model.h"
#include "sim/results/trace/xplane.h"
#include "sim/simulate.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/output/console.h"

namespace tpusim::tools {
namespace {

constexpr std::string_view kAll = "all";
constexpr std::string_view kDistinct = "distinct";
constexpr std::string_view kOps = "ops";
constexpr std::string_view kBlocks = "blocks";
constexpr int64_t kMostBlocks = 1'000'000'000;
// Traces from this size on are announced by a warning.
constexpr int64_t kLargeTrace = kGiB;
// So many distinct programs are shown by default, one device of each.
constexpr size_t kMostPrograms = 4;
// The parts of operations are in the trace of so many devices: a train step of 30 layers has
// 9 MB per device with them and 1 MB without.
constexpr size_t kMostDevicesInDetail = 16;

// "0,3" -> {0, 3}; false if it is not a list of chips.
bool ParseChips(const std::string& text, std::vector<int64_t>* chips) {
  const std::optional<std::vector<int64_t>> listed = configs::NumbersIn(text);
  if (!listed || std::ranges::min(*listed) < 0) return false;
  *chips = *listed;
  return true;
}

std::string CheckChips(const std::string& text) {
  std::vector<int64_t> ignored;
  if (text == kAll || text == kDistinct || ParseChips(text, &ignored)) return "";
  return fmt::format("\"{}\" is neither 'all' nor 'distinct' nor a list of chips such as 0,3",
                     text);
}

// "64" -> 64, "all" and "0" -> 0; false if it is neither.
bool ParseBlocks(const std::string& text, int64_t* blocks) {
  *blocks = text == kAll ? 0 : configs::NumberIn<int64_t>(text).value_or(-1);
  return *blocks >= 0 && *blocks <= kMostBlocks;
}

std::string CheckBlocks(const std::string& text) {
  int64_t ignored = 0;
  if (ParseBlocks(text, &ignored)) return "";
  return fmt::format("\"{}\" is neither 'all' nor a number up to {}", text, kMostBlocks);
}

// Returns the devices of the chips that are asked for.
absl::StatusOr<std::vector<int32_t>> DevicesToRecord(const TraceFlags& flags,
                                                     const Prepared& prepared) {
  if (flags.chips.empty() || flags.chips == kDistinct) {
    std::vector<int32_t> devices = sim::Representatives(prepared.compiled.program);
    if (flags.chips.empty() && devices.size() > kMostPrograms) devices.resize(1);
    return devices;
  }
  const configs::Topology& topology = prepared.config.topology;
  std::vector<int64_t> chips;
  if (flags.chips == kAll) {
    for (int64_t chip = 0; chip < topology.chips(); ++chip) chips.push_back(chip);
  } else {
    TPUSIM_CHECK(ParseChips(flags.chips, &chips), "the parser lets no other form through");
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
        {fmt::format("the trace will take about {}; --trace-chips with fewer chips, --trace-detail "
                     "ops and --trace-blocks with a smaller number shorten it",
                     results::BytesText(Bytes(estimated_bytes)))});
  }

  void Written(int64_t bytes) override {
    if (!shows_ || bytes < shown_ + kStep) return;
    shown_ = bytes;
    ShowProgress(fmt::format("trace: {} of about {}", results::BytesText(Bytes(bytes)),
                             results::BytesText(Bytes(std::max(bytes, estimated_)))));
  }

  ~TraceProgress() override {
    if (shown_ > 0) ShowProgress("");
  }

 private:
  static constexpr int64_t kStep = 5 * kMiB;
  const bool shows_;
  int64_t estimated_ = 0, shown_ = 0;
};

absl::Status WriteTrace(const TraceFlags& flags, const Prepared& prepared,
                        const sim::Timeline& timeline, bool quiet) {
  if (flags.trace.empty()) return absl::OkStatus();
  TraceProgress progress(quiet);
  ASSIGN_OR_RETURN(
      const results::TraceTotals totals,
      results::WritePerfettoTrace(flags.trace, prepared.config, prepared.compiled.program.info,
                                  timeline, &progress));
  if (flags.totals.empty()) return absl::OkStatus();
  return results::WriteFileAtomically(flags.totals, results::ToJson(totals, ThisProducer()));
}

absl::Status WritePage(const TraceFlags& flags, const Prepared& prepared,
                       const Simulated& simulated) {
  if (flags.html.empty()) return absl::OkStatus();
  const results::Report& report = simulated.report;
  ASSIGN_OR_RETURN(
      std::string timeline,
      results::TimelineJson(prepared.config, prepared.compiled.program.info, simulated.timeline));
  const std::string title = fmt::format("{} on {}", report.workload, report.config);
  return results::WriteFileAtomically(
      flags.html,
      results::PageOfRuns(title, {{title, results::ToJson(report, results::JsonDetail::kExchange),
                                   std::move(timeline)}}));
}

}  // namespace

absl::Status WriteTraces(const TraceFlags& flags, const Prepared& prepared,
                         const Simulated& simulated, bool quiet) {
  RETURN_IF_ERROR(WriteTrace(flags, prepared, simulated.timeline, quiet));
  RETURN_IF_ERROR(WritePage(flags, prepared, simulated));
  if (flags.xplane.empty()) return absl::OkStatus();
  const std::string run = fmt::format("{}-{}", simulated.report.workload, simulated.report.config);
  return results::WriteXPlanes(flags.xplane, run, prepared.config, prepared.compiled.program.info,
                               simulated.timeline);
}

absl::StatusOr<Recorded> RecordingOf(const TraceFlags& flags, const Prepared& prepared) {
  Recorded recorded;
  if (flags.trace.empty() && flags.html.empty() && flags.xplane.empty()) return recorded;
  ASSIGN_OR_RETURN(recorded.devices, DevicesToRecord(flags, prepared));
  TPUSIM_CHECK(ParseBlocks(flags.blocks, &recorded.steps), "the parser lets no other form through");
  recorded.work = flags.detail.empty()
                      ? !flags.trace.empty() && recorded.devices.size() <= kMostDevicesInDetail
                      : flags.detail == kBlocks;
  return recorded;
}

std::vector<OutputPath> OutputsOf(const TraceFlags& flags) {
  return {{"--trace", flags.trace}, {"--trace-totals", flags.totals}, {"--html", flags.html}};
}

absl::Status CheckFolders(const TraceFlags& flags) {
  return flags.xplane.empty() ? absl::OkStatus() : results::CheckXPlaneFolder(flags.xplane);
}

void AddRollupFlags(CLI::App& app, RollupFlags& flags) {
  std::vector<std::string> names;
  for (const results::RollupBy by : results::kRollups) names.emplace_back(results::RollupName(by));
  app.add_option("--by", flags.by,
                 "Table of the step's time, by this; unrolled layers share a row")
      ->type_name("scope|op|source|category|xprof|collective|path")
      ->check(CLI::IsMember(names));
  app.add_option("--top", flags.top, "Rows of tables (default: as many as fit one screen)")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
}

void AddTraceFlags(CLI::App& app, TraceFlags& flags) {
  app.add_option("--html", flags.html,
                 "Write a page for a browser: timeline, roofline, memory, links, ...")
      ->type_name("FILE");
  app.add_option("--xplane", flags.xplane,
                 "Write a profile for XProf and TensorBoard into a folder")
      ->type_name("DIR");
  CLI::Option* trace =
      app.add_option("--trace", flags.trace, "Write a Perfetto trace")->type_name("FILE");
  app.add_option("--trace-chips", flags.chips,
                 "Chips in the trace: 'all', 0,3 or 'distinct', one per distinct program "
                 "(default: distinct if those are at most 4, else the first)")
      ->type_name("all|distinct|0,3")
      ->check(CLI::Validator(CheckChips, ""));
  app.add_option("--trace-detail", flags.detail,
                 "'ops', or 'blocks', which adds grid steps of kernels and transfers on links "
                 "(default: blocks up to 16 devices)")
      ->type_name("ops|blocks")
      ->check(CLI::IsMember({std::string(kOps), std::string(kBlocks)}));
  app.add_option("--trace-blocks", flags.blocks,
                 "Most spans for the grid steps of an operation, per track; neighbours are "
                 "merged beyond that ('all' or 0: never)")
      ->type_name("N")
      ->capture_default_str()
      ->needs(trace)
      ->check(CLI::Validator(CheckBlocks, ""));
  app.add_option("--trace-totals", flags.totals,
                 "Write the totals that a reader of the trace must find, as JSON")
      ->type_name("FILE")
      ->needs(trace);
  app.callback([&flags] {
    const bool records = !flags.trace.empty() || !flags.html.empty() || !flags.xplane.empty();
    const std::string without = "--trace, --html or --xplane";
    if (!flags.chips.empty() && !records) throw CLI::RequiresError("--trace-chips", without);
    if (!flags.detail.empty() && flags.trace.empty()) {
      throw CLI::RequiresError("--trace-detail", "--trace");
    }
  });
}

}  // namespace tpusim::tools
