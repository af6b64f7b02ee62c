// tpusim advise: what would make a step shorter, each answer by a simulation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "configs/status_macros.h"
#include "sim/results/text.h"
#include "tools/tpusim/advice_variants.h"
#include "tools/tpusim/advise_memory.h"
#include "tools/tpusim/children.h"
#include "tools/tpusim/command.h"
#include "tools/tpusim/console.h"
#include "tools/tpusim/help.h"
#include "tools/tpusim/pipeline.h"
#include "tools/tpusim/producer.h"
#include "tools/tpusim/progress.h"
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

// What a run comes to.
struct Outcome {
  Picoseconds step{0};
  Bytes peak{0}, usable{0};
};

// Changes that are smaller are none; of memory those from here on have a line.
constexpr double kSmallestChange = 0.0005, kWorthALine = 0.01;

absl::StatusOr<std::string> Measured(const Prepared& prepared, const MachineFlags& machine) {
  ASSIGN_OR_RETURN(const Simulated simulated, Simulate(prepared, machine, /*record_devices=*/{}));
  const results::Report& r = simulated.report;
  return Json({{"step", r.step_time.value()},
               {"peak", r.peak.hbm().value()},
               {"usable", r.usable.hbm().value()}})
      .dump();
}

absl::StatusOr<std::string> Measured(const AdviseFlags& flags, const Variant& variant) {
  const absl::StatusOr<Prepared> prepared =
      Prepare(flags.workload, variant.config, variant.program, CompileOptionsOf(variant.program));
  if (const std::optional<Bytes> needed = buffers::NeededHbm(prepared.status())) {
    return UserError(fmt::format("does not fit in HBM: it needs {}", results::BytesText(*needed)));
  }
  RETURN_IF_ERROR(prepared.status());
  return Measured(*prepared, flags.machine);
}

Outcome OutcomeOf(const std::string& text) {
  const Json j = Json::parse(text);
  return {Picoseconds(j.at("step").get<int64_t>()), Bytes(j.at("peak").get<int64_t>()),
          Bytes(j.at("usable").get<int64_t>())};
}

// As it comes: "links x2: 275.5 us".
std::string AdviceRowText(const std::string& name, const absl::StatusOr<std::string>& answer) {
  return fmt::format(
      "{}: {}", name,
      answer.ok() ? results::TimeText(OutcomeOf(*answer).step) : OneLine(Message(answer.status())));
}

// A variant that ran, and what it changes; negative is better.
struct Row {
  const Variant* variant = nullptr;
  Outcome outcome;
  double step = 0, peak = 0;
};

double Change(double before, double after) { return before == 0 ? 0 : after / before - 1; }

std::string ChangeText(double share) {
  return std::abs(share) < kSmallestChange ? "-" : fmt::format("{:+.1f}%", share * 100);
}

class Advice {
 public:
  Advice(std::string name, std::string config, Outcome base)
      : name_(std::move(name)), config_(std::move(config)), base_(base) {}

  void Add(const Variant& variant, const Outcome& outcome) {
    const auto number = [](auto quantity) { return static_cast<double>(quantity.value()); };
    rows_.push_back({&variant, outcome, Change(number(base_.step), number(outcome.step)),
                     Change(number(base_.peak), number(outcome.peak))});
  }
  void AddFailure(const Variant& variant, const std::string& reason) {
    failures_.emplace_back(&variant, reason);
  }
  // What gains most comes first.
  void Sort() {
    std::ranges::stable_sort(rows_, {}, [](const Row& row) { return row.outcome.step; });
  }

  std::string Text(size_t top) const {
    std::string text = fmt::format(
        "{:<14} {} on {}\n{:<14} {}, peak {} of {} usable HBM\n{:<14} {} variants simulated\n",
        "workload", name_, config_, "step time", results::TimeText(base_.step),
        results::BytesText(base_.peak), results::BytesText(base_.usable), "tried", rows_.size());
    const auto shorter = [](const Row& row) { return row.step <= -kSmallestChange; };
    const auto of_chip = [](const Row& row) { return row.variant->kind == kOfTheChip; };
    for (const Row& row : rows_) {
      if (!of_chip(row) || !shorter(row)) continue;
      text += fmt::format("{:<14} most by what {} would change: {}\n", "bound", row.variant->name,
                          ChangeText(row.step));
      break;
    }
    text += Table("what you can change", top,
                  [&](const Row& row) { return shorter(row) && !of_chip(row); });
    text +=
        Table("a better chip", top, [&](const Row& row) { return shorter(row) && of_chip(row); });
    std::vector<Row> leaner = rows_;
    std::erase_if(leaner, [&](const Row& row) { return row.peak > -kWorthALine || of_chip(row); });
    std::ranges::stable_sort(leaner, {}, &Row::peak);
    text += Table("less memory", leaner, top);
    std::vector<std::string> same, longer;
    for (const Row& row : rows_) {
      if (row.step >= kSmallestChange) {
        longer.push_back(fmt::format("{} {}", row.variant->name, ChangeText(row.step)));
      } else if (!shorter(row)) {
        same.push_back(row.variant->name);
      }
    }
    text += "\n";
    if (!same.empty()) text += fmt::format("{:<14} {}\n", "no change", fmt::join(same, "; "));
    if (!longer.empty()) text += fmt::format("{:<14} {}\n", "longer", fmt::join(longer, "; "));
    for (const auto& [variant, reason] : failures_) {
      text += fmt::format("{:<14} {}: {}\n", "not possible", variant->name, reason);
    }
    return text;
  }

  Json ToJson() const {
    Json j = results::HeadOf("tpusim.advise/1", ThisProducer());
    j.update(Json{{"workload", name_},
                  {"config", config_},
                  {"step_time_ns", ToNanoseconds(base_.step)},
                  {"peak_hbm_bytes", base_.peak.value()},
                  {"usable_hbm_bytes", base_.usable.value()},
                  {"variants", Json::array()},
                  {"chip", Json::array()},
                  {"not_possible", Json::array()}});
    for (const Row& row : rows_) {
      const bool of_chip = row.variant->kind == kOfTheChip;
      j[of_chip ? "chip" : "variants"].push_back({{"kind", row.variant->kind},
                                                  {"name", row.variant->name},
                                                  {"why", row.variant->why},
                                                  {"options", row.variant->options},
                                                  {"step_time_ns", ToNanoseconds(row.outcome.step)},
                                                  {"change", row.step},
                                                  {"peak_hbm_bytes", row.outcome.peak.value()},
                                                  {"peak_change", row.peak}});
    }
    for (const auto& [variant, reason] : failures_) {
      j["not_possible"].push_back({{"kind", variant->kind},
                                   {"name", variant->name},
                                   {"options", variant->options},
                                   {"reason", reason}});
    }
    return j;
  }

 private:
  template <typename Wanted>
  std::string Table(std::string_view title, size_t top, const Wanted& wanted) const {
    std::vector<Row> rows;
    std::ranges::copy_if(rows_, std::back_inserter(rows), wanted);
    return Table(title, rows, top);
  }

  static std::string Table(std::string_view title, const std::vector<Row>& rows, size_t top) {
    if (rows.empty()) return "";
    std::vector<std::vector<std::string>> cells = {
        {std::string(title), "step time", "change", "peak HBM", "change", "<why or how"}};
    for (size_t i = 0; i < std::min(top, rows.size()); ++i) {
      const Row& row = rows[i];
      cells.push_back({row.variant->name, results::TimeText(row.outcome.step), ChangeText(row.step),
                       results::BytesText(row.outcome.peak), ChangeText(row.peak),
                       WhyOf(*row.variant)});
    }
    std::string text = "\n";
    // Reasons and options are not cut.
    text += results::TableText(cells, ResultColumns(), results::LastColumn::kBelow);
    return text;
  }

  const std::string name_, config_;
  const Outcome base_;
  std::vector<Row> rows_;
  std::vector<std::pair<const Variant*, std::string>> failures_;
};

// The program of the run, on machines with other speeds: `lower` makes it from the program that
// the compiler has scheduled for the chip as it is.
absl::StatusOr<std::string> Measured(const AdviseFlags& flags, const Variant& variant,
                                     const compiler::LowerFor& lower) {
  Prepared prepared;
  ASSIGN_OR_RETURN(prepared.config, configs::LoadConfig(variant.config, variant.program.overrides));
  ASSIGN_OR_RETURN(prepared.compiled.program, lower(prepared.config));
  return Measured(prepared, flags.machine);
}

// Whether a variant changes no more than speeds.
absl::StatusOr<bool> ChangesSpeedsOnly(const AdviseFlags& flags, const configs::Config& machine,
                                       const Variant& variant) {
  if (flags.program.recompile) return false;
  ASSIGN_OR_RETURN(const configs::Config changed,
                   configs::LoadConfig(variant.config, variant.program.overrides));
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
  ASSIGN_OR_RETURN(const std::string slice, SliceOf(flags.workload, flags.config));
  ASSIGN_OR_RETURN(const configs::Config machine,
                   configs::LoadConfig(slice, flags.program.overrides));
  std::vector<Variant> speeds, others;
  for (Variant& variant : ChipVariants(machine, slice, flags.program)) {
    ASSIGN_OR_RETURN(const bool only_speeds, ChangesSpeedsOnly(flags, machine, variant));
    (only_speeds ? speeds : others).push_back(std::move(variant));
  }
  // Speeds are tried on the scheduled program, which is compiled once; all else is compiled anew.
  std::vector<absl::StatusOr<std::string>> outcomes;
  compiler::CompileOptions options = CompileOptionsOf(flags.program);
  options.scheduled = [&](const compiler::LowerFor& lower) {
    std::vector<Task> tasks;
    for (const Variant& variant : speeds) {
      tasks.push_back([&] { return Measured(flags, variant, lower); });
    }
    Rows progress(tasks.size(), flags.program.quiet, flags.program.verbose);
    outcomes = InChildren(tasks, Processors(), [&](const TaskEnd& end) {
      progress.Add(AdviceRowText(speeds[end.task].name, end.answer));
    });
  };
  const absl::StatusOr<Prepared> prepared =
      Prepare(flags.workload, flags.config, flags.program, options);
  if (buffers::NeededHbm(prepared.status())) {
    return AdviseMemory(
        {flags.workload, slice, flags.top, flags.json, flags.program, flags.machine},
        prepared.status());
  }
  RETURN_IF_ERROR(prepared.status());
  const Prepared& base = *prepared;
  ASSIGN_OR_RETURN(const results::Report report, ReportOf(base, flags.machine));
  for (Variant& variant : ShardingVariants(report.reshard_sites, slice, flags.program)) {
    others.push_back(std::move(variant));
  }
  for (Variant& variant : ProgramVariants(base, slice, flags.program)) {
    others.push_back(std::move(variant));
  }
  std::vector<Task> tasks;
  for (const Variant& variant : others) {
    tasks.push_back([&] { return Measured(flags, variant); });
  }
  Rows progress(tasks.size(), flags.program.quiet, flags.program.verbose);
  const std::vector<absl::StatusOr<std::string>> compiled = InChildren(
      tasks, Processors(),
      [&](const TaskEnd& end) { progress.Add(AdviceRowText(others[end.task].name, end.answer)); });
  outcomes.insert(outcomes.end(), compiled.begin(), compiled.end());
  std::vector<const Variant*> variants;
  for (const Variant& variant : speeds) variants.push_back(&variant);
  for (const Variant& variant : others) variants.push_back(&variant);

  Advice advice(base.name, base.config.name,
                {report.step_time, report.peak.hbm(), report.usable.hbm()});
  for (size_t i = 0; i < variants.size(); ++i) {
    const absl::StatusOr<std::string>& outcome = outcomes[i];
    if (outcome.ok()) {
      advice.Add(*variants[i], OutcomeOf(*outcome));
      continue;
    }
    // A bug of ours says nothing about the variant.
    if (absl::IsInternal(outcome.status())) {
      return absl::InternalError(
          fmt::format("{}: {}", variants[i]->name, Message(outcome.status())));
    }
    advice.AddFailure(*variants[i], OneLine(Message(outcome.status())));
  }
  advice.Sort();
  if (flags.json) {
    return PrintResult(results::JsonText(advice.ToJson()));
  }
  RETURN_IF_ERROR(PrintResult(advice.Text(flags.top)));
  if (!flags.program.quiet) PrintWarnings(WarningsOf(base));
  return absl::OkStatus();
}

}  // namespace

Command AddAdvise(CLI::App& parent) {
  auto flags = std::make_shared<AdviseFlags>();
  CLI::App* app = parent.add_subcommand(
      "advise",
      "What would make a step shorter, or fit: simulates it with other device orders, slices, "
      "algorithms, compiler passes, memories, and with every part of the chip twice as fast");
  AddWorkloadFlags(*app, flags->workload, flags->config);
  app->add_option("--top", flags->top, "How many rows tables have")
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
