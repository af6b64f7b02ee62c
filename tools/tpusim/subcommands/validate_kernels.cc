#include "tools/tpusim/subcommands/validate_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "configs/status_macros.h"
#include "sim/results/measured/kernel_rows.h"
#include "sim/results/report/atomic_file.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/find/pool.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/outputs.h"
#include "tools/tpusim/output/progress.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/hlo/io/gzip.h"

namespace tpusim::tools {
namespace {

// The width where stdout is no terminal.
constexpr size_t kKernelColumns = 160;
// One row of so many is in the sample.
constexpr int64_t kSampled = 17;  // number: 102 of 1,727 rows

absl::StatusOr<std::vector<results::KernelRow>> RowsIn(const std::string& file) {
  constexpr int64_t kMostBytes = int64_t{1} << 28;  // number: more than any file of rows
  ASSIGN_OR_RETURN(std::string text, ReadText(file));
  if (hlo::IsGzip(text)) {
    ASSIGN_OR_RETURN(text, hlo::Gunzip(text, kMostBytes));
  }
  absl::StatusOr<std::vector<results::KernelRow>> rows = results::ParseKernelRows(text);
  if (!rows.ok()) return UserError(fmt::format("{}: {}", file, Message(rows.status())));
  return rows;
}

bool IsWanted(const results::KernelRow& row, const KernelsFlags& flags) {
  return (flags.all || row.number % kSampled == 0) &&
         (flags.chips.empty() || std::ranges::find(flags.chips, row.chip) != flags.chips.end());
}

}  // namespace

absl::Status CheckChips(const std::vector<std::string>& chips, const std::set<std::string>& known) {
  for (const std::string& chip : chips) {
    if (known.contains(chip)) continue;
    return UserError(fmt::format("--chip {}: nothing was measured on it; there are {}", chip,
                                 fmt::join(known, ", ")));
  }
  return absl::OkStatus();
}

absl::Status ValidateKernels(const KernelsFlags& flags, const ProgramFlags& program,
                             const MachineFlags& machine) {
  const std::filesystem::path folder = flags.folder;
  const std::string file = (folder / "rows.jsonl.gz").string();
  RETURN_IF_ERROR(CheckOutputs({{"--report", flags.report}}, {{"rows", file}}));
  ASSIGN_OR_RETURN(const std::vector<results::KernelRow> rows, RowsIn(file));
  std::set<std::string> known;
  for (const results::KernelRow& row : rows) known.insert(row.chip);
  RETURN_IF_ERROR(CheckChips(flags.chips, known));
  std::vector<results::KernelOutcome> outcomes;
  std::vector<Task> tasks;
  int64_t missing = 0;
  for (const results::KernelRow& row : rows) {
    if (!IsWanted(row, flags)) continue;
    const std::filesystem::path workload =
        folder / "programs" / fmt::format("{}.pb.gz", row.number);
    if (!std::filesystem::exists(workload)) {
      ++missing;
      continue;
    }
    outcomes.emplace_back().row = row;
    tasks.push_back([&program, &machine, path = workload.string()] {
      return SimulateToText(path, /*config=*/"", program, machine);
    });
  }
  if (outcomes.empty()) {
    return UserError(fmt::format("{}: no program of these rows is in {}", flags.folder,
                                 (folder / "programs").string()));
  }
  const std::vector<absl::StatusOr<std::string>> reports = InChildren(
      tasks, Processors(),
      [&](const TaskEnd& end) { ShowCount(end.count, tasks.size(), program.quiet); });
  for (size_t n = 0; n < reports.size(); ++n) {
    if (!reports[n].ok()) {
      outcomes[n].error = Message(reports[n].status());
      continue;
    }
    ASSIGN_OR_RETURN(const results::Report report, results::FromJson(*reports[n]));
    outcomes[n].time = report.step_time;
    outcomes[n].peak = report.peak.hbm();
  }
  if (!flags.report.empty()) {
    RETURN_IF_ERROR(results::WriteFileAtomically(flags.report,
                                                 results::ToJson(outcomes, ThisProducer())));
  }
  if (program.quiet || flags.report == results::kStdout) return absl::OkStatus();
  std::string text = results::FormatKernels(outcomes, ResultColumns(kKernelColumns));
  if (!flags.all) text += "\na sample: --long has all rows\n";
  if (missing > 0) {
    text += fmt::format(
        "\n{} rows have no program in {}: python tools/validation/measured_kernels.py {} makes "
        "them where tokamax is installed\n",
        missing, (folder / "programs").string(), flags.folder);
  }
  return PrintResult(text);
}

}  // namespace tpusim::tools
