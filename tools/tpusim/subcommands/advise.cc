// tpusim advise: what would make a step shorter, each answer by a simulation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/advise/advice_variants.h"
#include "tools/tpusim/advise/advise_memory.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/find/pool.h"
#include "tools/tpusim/find/variant_judge.h"
#include "tools/tpusim/find/verdicts.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/buffers/fits.h"

namespace tpusim::tools {
namespace {

using Json = nlohmann::ordered_json;

struct AdviseFlags {
  std::string workload, config;
  size_t top = 12;
  bool json = false;
  ProgramFlags program;
  MachineFlags machine;
};

// Changes that are smaller are none; of memory those from here on have a line.
constexpr double kSmallestChange = 0.0005, kWorthALine = 0.01;

VerdictOr Measured(const AdviseFlags& flags, const Variant& variant, VariantJudge& judge) {
  ASSIGN_OR_RETURN(search::Verdict verdict,
                   judge.Of(variant.config, variant.program, &flags.machine));
  if (verdict.has_step()) return verdict;
  return UserError(
      fmt::format("does not fit in HBM: it needs {}", results::BytesText(verdict.peak)));
}

// Returns the line of progress, "275.5 us".
std::string AdviceText(const VerdictOr& verdict) {
  return verdict.ok() ? results::TimeText(verdict->step) : OneLine(Message(verdict.status()));
}

// A variant that ran, and what it changes; negative is better.
struct VariantRow {
  const Variant* variant = nullptr;
  Picoseconds step_time;
  Bytes peak_hbm;
  double step = 0, peak = 0;
};

double Change(double before, double after) { return before == 0 ? 0 : after / before - 1; }

std::string ChangeText(double share) {
  return std::abs(share) < kSmallestChange ? "-" : fmt::format("{:+.1f}%", share * 100);
}

class Advice {
 public:
  Advice(const Prepared& base, const results::Report& report, const Trials& trials)
      : name_(base.name), config_(base.config.name), base_(report), trials_(trials) {
    const auto number = [](auto quantity) { return static_cast<double>(quantity.value()); };
    for (const auto& [variant, verdict] : trials.ran) {
      rows_.push_back({variant, verdict.step, verdict.peak,
                       Change(number(base_.step_time), number(verdict.step)),
                       Change(number(base_.peak.hbm()), number(verdict.peak))});
    }
    // What gains most comes first.
    std::ranges::stable_sort(rows_, {}, &VariantRow::step_time);
  }

  std::string Text(size_t top) const {
    std::string text = fmt::format(
        "{:<14} {} on {}\n{:<14} {}, peak {} of {} usable HBM\n{:<14} {} variants simulated\n",
        "workload", name_, config_, "step time", results::TimeText(base_.step_time),
        results::BytesText(base_.peak.hbm()), results::BytesText(base_.usable.hbm()), "tried",
        rows_.size());
    const auto shorter = [](const VariantRow& row) { return row.step <= -kSmallestChange; };
    const auto of_chip = [](const VariantRow& row) { return row.variant->kind == kOfTheChip; };
    for (const VariantRow& row : rows_) {
      if (!of_chip(row) || !shorter(row)) continue;
      text += fmt::format("{:<14} to {}: {}\n", "most sensitive", row.variant->name,
                          ChangeText(row.step));
      break;
    }
    text += Table("what you can change", top,
                  [&](const VariantRow& row) { return shorter(row) && !of_chip(row); });
    text +=
        Table("a better chip", top,
              [&](const VariantRow& row) { return shorter(row) && of_chip(row); });
    std::vector<VariantRow> leaner = rows_;
    std::erase_if(leaner, [&](const VariantRow& row) {
      return row.peak > -kWorthALine || of_chip(row);
    });
    std::ranges::stable_sort(leaner, {}, &VariantRow::peak);
    text += Table("less memory", leaner, top);
    std::vector<std::string> same, longer;
    for (const VariantRow& row : rows_) {
      if (row.step >= kSmallestChange) {
        longer.push_back(fmt::format("{} {}", row.variant->name, ChangeText(row.step)));
      } else if (!shorter(row)) {
        same.push_back(row.variant->name);
      }
    }
    text += "\n";
    if (!same.empty()) text += fmt::format("{:<14} {}\n", "no change", fmt::join(same, "; "));
    if (!longer.empty()) text += fmt::format("{:<14} {}\n", "longer", fmt::join(longer, "; "));
    return text + trials_.FailedText();
  }

  Json ToJson() const {
    Json j = results::HeadOf("tpusim.advise/1", ThisProducer());
    j.update(Json{{"workload", name_},
                  {"config", config_},
                  {"step_time_ns", ToNanoseconds(base_.step_time)},
                  {"peak_hbm_bytes", base_.peak.hbm().value()},
                  {"usable_hbm_bytes", base_.usable.hbm().value()},
                  {"variants", Json::array()},
                  {"chip", Json::array()},
                  {"not_possible", trials_.FailedJson()}});
    for (const VariantRow& row : rows_) {
      const bool of_chip = row.variant->kind == kOfTheChip;
      j[of_chip ? "chip" : "variants"].push_back({{"kind", row.variant->kind},
                                                  {"name", row.variant->name},
                                                  {"why", row.variant->why},
                                                  {"options", row.variant->options},
                                                  {"step_time_ns", ToNanoseconds(row.step_time)},
                                                  {"change", row.step},
                                                  {"peak_hbm_bytes", row.peak_hbm.value()},
                                                  {"peak_change", row.peak}});
    }
    return j;
  }

 private:
  template <typename Wanted>
  std::string Table(std::string_view title, size_t top, const Wanted& wanted) const {
    std::vector<VariantRow> rows;
    std::ranges::copy_if(rows_, std::back_inserter(rows), wanted);
    return Table(title, rows, top);
  }

  static std::string Table(std::string_view title, const std::vector<VariantRow>& rows,
                           size_t top) {
    if (rows.empty()) return "";
    std::vector<std::vector<std::string>> cells = {
        {std::string(title), "step time", "change", "peak HBM", "change", "<why or how"}};
    for (size_t i = 0; i < std::min(top, rows.size()); ++i) {
      const VariantRow& row = rows[i];
      cells.push_back({row.variant->name, results::TimeText(row.step_time), ChangeText(row.step),
                       results::BytesText(row.peak_hbm), ChangeText(row.peak),
                       WhyOf(*row.variant)});
    }
    // Reasons and options are not cut.
    return "\n" + results::TableText(cells, ResultColumns(), results::LastColumn::kBelow);
  }

  const std::string name_, config_;
  const results::Report& base_;
  const Trials& trials_;
  std::vector<VariantRow> rows_;
};

// Simulates the program of the run, which the compiler has scheduled for the chip as it is, on a
// machine with other speeds.
VerdictOr Measured(const AdviseFlags& flags, const Variant& variant,
                   const compiler::ScheduledProgram& scheduled) {
  Prepared prepared;
  ASSIGN_OR_RETURN(prepared.config,
                   configs::LoadConfig(variant.config, variant.program.overrides,
                                       variant.program.compiler));
  ASSIGN_OR_RETURN(prepared.compiled.program, scheduled.LowerFor(prepared.config));
  ASSIGN_OR_RETURN(const Simulated simulated, Simulate(prepared, flags.machine));
  search::Verdict verdict;
  verdict.kind = search::Verdict::Kind::kSimulated;
  verdict.peak = simulated.report.peak.hbm();
  verdict.usable = simulated.report.usable.hbm();
  verdict.step = simulated.report.step_time;
  verdict.simulated = true;
  return verdict;
}

// Whether a variant changes no more than speeds.
absl::StatusOr<bool> ChangesSpeedsOnly(const AdviseFlags& flags, const configs::Config& machine,
                                       const Variant& variant) {
  if (flags.program.recompile) return false;
  ASSIGN_OR_RETURN(const configs::Config changed,
                   configs::LoadConfig(variant.config, variant.program.overrides,
                                       variant.program.compiler));
  return configs::WithoutSpeeds(variant.program.overrides, changed).size() ==
         configs::WithoutSpeeds(flags.program.overrides, machine).size();
}

// The run itself: where its time goes says what is worth trying.
absl::StatusOr<results::Report> ReportOf(const Prepared& base, const MachineFlags& machine) {
  const Task task = [&]() -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Simulated simulated, Simulate(base, machine));
    return results::ToJson(simulated.report, results::JsonDetail::kExchange);
  };
  const std::vector<absl::StatusOr<std::string>> texts = InChildren({task}, 1);
  RETURN_IF_ERROR(texts[0].status());
  return results::FromJson(*texts[0]);
}

absl::Status Advise(const AdviseFlags& flags) {
  // A misspelt slice is said before a large file is read.
  if (!flags.config.empty()) {
    RETURN_IF_ERROR(
        configs::LoadConfig(flags.config, flags.program.overrides, flags.program.compiler)
            .status());
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<VariantJudge> judge,
                   VariantJudge::Of(flags.workload, flags.program));
  ASSIGN_OR_RETURN(const std::string slice, judge->SliceOf(flags.config));
  ASSIGN_OR_RETURN(const configs::Config machine,
                   configs::LoadConfig(slice, flags.program.overrides, flags.program.compiler));
  std::vector<Variant> speeds, others;
  for (Variant& variant : ChipVariants(machine, slice, flags.program)) {
    ASSIGN_OR_RETURN(const bool only_speeds, ChangesSpeedsOnly(flags, machine, variant));
    (only_speeds ? speeds : others).push_back(std::move(variant));
  }
  // Speeds are tried on the scheduled program, which is compiled once; all else is compiled anew.
  std::vector<VerdictOr> verdicts;
  const auto try_speeds = [&](const compiler::ScheduledProgram& scheduled) {
    verdicts = VerdictsOn(
        QuestionsOf(speeds), [&](size_t i) { return Measured(flags, speeds[i], scheduled); },
        AdviceText, flags.program);
  };
  const absl::StatusOr<Prepared> prepared =
      judge->Compiled(slice, flags.program, flags.machine, try_speeds);
  if (buffers::NeededHbm(prepared.status())) {
    return AdviseMemory(
        {slice, flags.top, flags.json, flags.program, flags.machine}, prepared.status(), *judge);
  }
  RETURN_IF_ERROR(prepared.status());
  const Prepared& base = *prepared;
  ASSIGN_OR_RETURN(const results::Report report, ReportOf(base, flags.machine));
  judge->Know(report);
  // What the user can change is tried before another chip, constraints first, and told behind it.
  std::vector<Variant> asked = ShardingVariants(report.reshard_sites, slice, flags.program);
  std::ranges::move(ProgramVariants(base, slice, flags.program), std::back_inserter(asked));
  const auto changeable = static_cast<std::ptrdiff_t>(asked.size());
  std::ranges::move(others, std::back_inserter(asked));
  std::vector<VerdictOr> compiled = VerdictsOn(
      QuestionsOf(asked), [&](size_t i) { return Measured(flags, asked[i], *judge); },
      AdviceText, flags.program);
  std::rotate(asked.begin(), asked.begin() + changeable, asked.end());
  std::rotate(compiled.begin(), compiled.begin() + changeable, compiled.end());
  std::ranges::move(compiled, std::back_inserter(verdicts));
  std::vector<Variant> variants = std::move(speeds);
  std::ranges::move(asked, std::back_inserter(variants));
  ASSIGN_OR_RETURN(const Trials trials, TrialsOf(variants, verdicts));
  const Advice advice(base, report, trials);
  if (flags.json) return PrintResult(results::JsonText(advice.ToJson()));
  RETURN_IF_ERROR(PrintResult(advice.Text(flags.top)));
  if (!flags.program.quiet) PrintWarnings(WarningsOf(base));
  return absl::OkStatus();
}

}  // namespace

Command AddAdvise(CLI::App& parent) {
  auto flags = std::make_shared<AdviseFlags>();
  CLI::App* app = parent.add_subcommand(
      "advise",
      "Find what makes a step shorter, or fit: simulate it with other meshes, device orders, "
      "slices, algorithms and compiler passes, and with each part of the chip twice as fast");
  AddWorkloadFlags(*app, flags->workload, flags->config);
  app->add_option("--top", flags->top, "Rows of tables")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  app->add_flag("--json", flags->json, "Print JSON");
  AddProgramFlags(*app, flags->program);
  AddMachineFlags(*app, flags->machine);
  AddExamples(*app, {{"tpusim advise step.pb --config v5e-4x2", "what would make it shorter"},
                     {"tpusim advise step.pb --set chip.hbm.bytes=8GiB",
                      "what would make it fit into less memory"}});
  return {app, [flags] { return Advise(*flags); }};
}

}  // namespace tpusim::tools
