// tpusim check: reports against limits and against what steps took before, for CI.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/number_text.h"
#include "configs/quantity_text.h"
#include "configs/status_macros.h"
#include "sim/results/report/atomic_file.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/output/outputs.h"

namespace tpusim::tools {
namespace {

using Json = nlohmann::ordered_json;
using results::BytesText;
using results::PercentText;
using results::TimeText;

struct CheckFlags {
  std::vector<std::string> reports;
  std::string baseline, write_baseline;
  std::optional<Picoseconds> most_time;
  std::optional<Bytes> most_memory;
  std::optional<double> least_mfu;
  double tolerance = 0.005;
  bool two_sided = false, json = false, verbose = false, quiet = false;

  bool Limits() const { return most_time || most_memory || least_mfu || !baseline.empty(); }
};

// The figures of a step that are compared.
struct ReportedStep {
  std::string workload, config;
  std::string bound_by = "";
  Picoseconds time{0};
  Bytes peak{0};
  double mfu = 0;
  std::string problem = "";  // why there is no step

  std::pair<std::string, std::string> key() const { return {workload, config}; }
  std::string name() const { return fmt::format("{} on {}", workload, config); }
};

enum class LimitUnit { kTime, kBytes, kShare };

struct Limit {
  std::string what;
  LimitUnit unit = LimitUnit::kTime;
  double measured = 0, limit = 0;  // nanoseconds, bytes, a share
  std::string allowed;             // for people: "at most 62.00 ms"
  bool holds = true;
};

struct Checked {
  ReportedStep step;
  std::vector<Limit> limits;
  std::string problem;  // why it could not be compared
  bool holds() const { return problem.empty() && std::ranges::all_of(limits, &Limit::holds); }
};

// Throws where a figure is none that a step can have.
double Figure(const char* key, double value, double least, double most) {
  if (value >= least && value <= most) return value;
  throw std::runtime_error(fmt::format("no step of a report: {} is {}", key, value));
}

// The fields that every version of the schema has.
ReportedStep StepOf(const Json& j, const std::string& workload, const std::string& config) {
  // Half a picosecond is no time, and more picoseconds or bytes than this are not counted.
  constexpr double kLeastNs = 0.0005, kMostNs = 9e15, kMostBytes = 9e18;
  constexpr double kMostMfu = 1e6;  // a baseline of before may have more than 1
  ReportedStep step{.workload = workload, .config = config};
  step.bound_by = j.value("bound_by", "");
  const double time = Figure("step_time_ns", j.at("step_time_ns").get<double>(), kLeastNs, kMostNs);
  step.time = Picoseconds(static_cast<int64_t>(std::llround(time * 1e3)));
  Figure("peak_hbm_bytes", j.at("peak_hbm_bytes").get<double>(), 0, kMostBytes);
  step.peak = Bytes(j.at("peak_hbm_bytes").get<int64_t>());
  step.mfu = Figure("mfu", j.value("mfu", 0.0), 0, kMostMfu);
  return step;
}

std::vector<ReportedStep> StepsOf(const Json& j) {
  std::vector<ReportedStep> steps;
  const auto text = [](const Json& of, const char* key) { return of.at(key).get<std::string>(); };
  const std::string schema = text(j, "schema");
  if (schema == "tpusim.report/1") {
    steps.push_back(StepOf(j, text(j, "workload"), text(j, "config")));
  } else if (schema == "tpusim.baseline/1") {
    for (const Json& s : j.at("steps")) {
      steps.push_back(StepOf(s, text(s, "workload"), text(s, "config")));
    }
  } else if (schema == "tpusim.compare/1") {
    for (const Json& c : j.at("compared")) {
      if (c.contains("report")) {
        steps.push_back(StepOf(c["report"], text(c, "workload"), text(c, "config")));
      } else {
        steps.push_back({.workload = text(c, "workload"), .config = text(c, "config")});
        steps.back().problem = text(c, "problem");
      }
    }
  } else {
    throw std::runtime_error(fmt::format("its schema is {}", schema));
  }
  return steps;
}

absl::StatusOr<std::vector<ReportedStep>> ReadSteps(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  try {
    return StepsOf(Json::parse(text));
  } catch (const std::exception& e) {
    return UserError(fmt::format(
        "{}: no report of `tpusim run --report` or `compare --report`, and no baseline of `check "
        "--write-baseline`: {}",
        path, e.what()));
  }
}

Limit AtMost(std::string what, LimitUnit unit, double measured, double limit, std::string text) {
  return {std::move(what), unit, measured, limit, "at most " + std::move(text), measured <= limit};
}

// Against the same step of before: no more than the tolerance longer or larger, or two-sided
// shorter or smaller.
Limit Near(std::string what, LimitUnit unit, double measured, double before,
           const CheckFlags& flags, std::string text) {
  const double change = before == 0 ? (measured == 0 ? 0 : 1) : measured / before - 1;
  const bool holds = change <= flags.tolerance && (!flags.two_sided || change >= -flags.tolerance);
  return {std::move(what),
          unit,
          measured,
          before,
          fmt::format("{} of {}, now {:+.2f}%",
                      (flags.two_sided ? "within " : "up to ") +
                          fmt::format("{:g}%", 100 * flags.tolerance),
                      text, 100 * change),
          holds};
}

void CheckLimits(const CheckFlags& flags, Checked& checked) {
  const ReportedStep& s = checked.step;
  const double time = ToNanoseconds(s.time), peak = static_cast<double>(s.peak.value());
  if (flags.most_time) {
    checked.limits.push_back(AtMost("step time", LimitUnit::kTime, time,
                                    ToNanoseconds(*flags.most_time), TimeText(*flags.most_time)));
  }
  if (flags.most_memory) {
    checked.limits.push_back(AtMost("peak HBM", LimitUnit::kBytes, peak,
                                    static_cast<double>(flags.most_memory->value()),
                                    BytesText(*flags.most_memory)));
  }
  if (flags.least_mfu) {
    checked.limits.push_back({"MFU", LimitUnit::kShare, s.mfu, *flags.least_mfu,
                              "at least " + PercentText(*flags.least_mfu),
                              s.mfu >= *flags.least_mfu});
  }
}

void CheckBaseline(const CheckFlags& flags, const std::vector<ReportedStep>& baseline,
                   Checked& checked) {
  const ReportedStep& now = checked.step;
  const auto before = std::ranges::find(baseline, now.key(), &ReportedStep::key);
  if (before == baseline.end()) {
    checked.problem = fmt::format("{} has no such step", flags.baseline);
    return;
  }
  if (!before->problem.empty()) {
    checked.problem = fmt::format("{}: {}", flags.baseline, before->problem);
    return;
  }
  checked.limits.push_back(Near("step time against baseline", LimitUnit::kTime,
                                ToNanoseconds(now.time), ToNanoseconds(before->time), flags,
                                TimeText(before->time)));
  checked.limits.push_back(
      Near("peak HBM against baseline", LimitUnit::kBytes, static_cast<double>(now.peak.value()),
           static_cast<double>(before->peak.value()), flags, BytesText(before->peak)));
}

std::string MeasuredText(const Limit& limit) {
  switch (limit.unit) {
    case LimitUnit::kTime:
      return TimeText(Picoseconds(std::llround(limit.measured * 1e3)));
    case LimitUnit::kBytes:
      return BytesText(Bytes(std::llround(limit.measured)));
    case LimitUnit::kShare:
      break;
  }
  return PercentText(limit.measured);
}

// Returns a table of all rows of a few steps; of many steps only of rows that fail.
std::string Table(const std::vector<Checked>& all, bool verbose) {
  constexpr size_t kFew = 8;
  const bool whole = verbose || all.size() <= kFew;
  std::vector<std::vector<std::string>> rows = {{"step", "<", "measured", "<limit", "<what"}};
  size_t limits = 0, held = 0, problems = 0;
  for (const Checked& c : all) {
    for (const Limit& limit : c.limits) {
      ++limits;
      held += limit.holds ? 1 : 0;
      if (limit.holds && !whole) continue;
      rows.push_back({c.step.name(), limit.holds ? "ok" : "BROKEN", MeasuredText(limit),
                      limit.allowed, limit.what});
    }
    if (c.problem.empty()) continue;
    ++problems;
    rows.push_back({c.step.name(), "BROKEN", "", c.problem, ""});
  }
  std::string text;
  if (rows.size() > 1) {
    text += results::TableText(rows, ResultColumns());
    text += "\n";
  }
  text += fmt::format("{} of {} limits of {} steps hold", held, limits, all.size());
  if (problems > 0) text += fmt::format("; {} could not be compared", problems);
  return text + "\n";
}

std::string AsJson(const std::vector<Checked>& all) {
  Json j = results::HeadOf("tpusim.check/1", ThisProducer());
  j["holds"] = std::ranges::all_of(all, &Checked::holds);
  j["steps"] = Json::array();
  static constexpr const char* kUnits[] = {"ns", "bytes", "share"};
  for (const Checked& c : all) {
    Json step = {{"workload", c.step.workload},
                 {"config", c.step.config},
                 {"holds", c.holds()},
                 {"limits", Json::array()}};
    for (const Limit& limit : c.limits) {
      step["limits"].push_back({{"what", limit.what},
                                {"measured", limit.measured},
                                {"limit", limit.limit},
                                {"unit", kUnits[static_cast<int>(limit.unit)]},
                                {"holds", limit.holds}});
    }
    if (!c.problem.empty()) step["problem"] = c.problem;
    j["steps"].push_back(std::move(step));
  }
  return results::JsonText(j);
}

// A line per step, so that a change shows which steps it moves.
std::string BaselineJson(std::vector<ReportedStep> steps) {
  std::ranges::sort(steps, {}, &ReportedStep::key);
  const auto dump = [](const Json& j) {
    return j.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text = dump(results::HeadOf("tpusim.baseline/1", ThisProducer()));
  text.pop_back();
  text += ",\"steps\":[";
  for (const ReportedStep& step : steps) {
    text += text.back() == '[' ? "\n" : ",\n";
    text += dump({{"workload", step.workload},
                  {"config", step.config},
                  {"step_time_ns", ToNanoseconds(step.time)},
                  {"peak_hbm_bytes", step.peak.value()},
                  {"bound_by", step.bound_by}});
  }
  return text + "\n]}\n";
}

// Error: two steps have one name.
absl::Status CheckUnique(const std::vector<ReportedStep>& steps, const std::string& where) {
  std::map<std::pair<std::string, std::string>, int> seen;
  for (const ReportedStep& step : steps) {
    if (++seen[step.key()] > 1) {
      return UserError(fmt::format("{}: two reports have the name \"{}\"; names must be unique",
                                   where, step.name()));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteBaseline(const CheckFlags& flags, const std::vector<ReportedStep>& steps) {
  for (const ReportedStep& step : steps) {
    if (!step.problem.empty()) {
      return UserError(fmt::format("{}: no baseline: {}", step.name(), step.problem));
    }
  }
  return results::WriteFileAtomically(flags.write_baseline, BaselineJson(steps));
}

absl::Status Check(const CheckFlags& flags) {
  std::vector<InputPath> inputs;
  for (const std::string& report : flags.reports) inputs.push_back({"report", report});
  // The file that is compared with may be written anew: it has been read by then.
  RETURN_IF_ERROR(CheckOutputs({{"--write-baseline", flags.write_baseline}}, inputs));
  std::vector<ReportedStep> steps, baseline;
  for (const std::string& report : flags.reports) {
    ASSIGN_OR_RETURN(std::vector<ReportedStep> read, ReadSteps(report));
    std::ranges::move(read, std::back_inserter(steps));
  }
  RETURN_IF_ERROR(CheckUnique(steps, "reports"));
  if (!flags.baseline.empty()) {
    ASSIGN_OR_RETURN(baseline, ReadSteps(flags.baseline));
    RETURN_IF_ERROR(CheckUnique(baseline, flags.baseline));
  }
  if (!flags.write_baseline.empty()) RETURN_IF_ERROR(WriteBaseline(flags, steps));
  if (!flags.Limits()) return absl::OkStatus();

  std::vector<Checked> all;
  for (ReportedStep& step : steps) {
    Checked checked{std::move(step), {}, ""};
    checked.problem = checked.step.problem;
    if (checked.problem.empty()) {
      CheckLimits(flags, checked);
      if (!flags.baseline.empty()) CheckBaseline(flags, baseline, checked);
    }
    all.push_back(std::move(checked));
  }
  if (flags.json) {
    RETURN_IF_ERROR(PrintResult(AsJson(all)));
  } else if (!flags.quiet) {
    RETURN_IF_ERROR(PrintResult(Table(all, flags.verbose)));
  }
  const auto broken = std::ranges::find_if_not(all, &Checked::holds);
  if (broken == all.end()) return absl::OkStatus();
  const auto limit = std::ranges::find_if_not(broken->limits, &Limit::holds);
  const std::string why =
      limit == broken->limits.end()
          ? broken->problem
          : fmt::format("{} {}, {}", limit->what, MeasuredText(*limit), limit->allowed);
  const auto others = std::ranges::count_if(all, [](const Checked& c) { return !c.holds(); }) - 1;
  return absl::AbortedError(fmt::format(
      "{}: {}{}", broken->step.name(), why,
      others > 0 ? fmt::format("; and {} more step{}", others, others == 1 ? "" : "s") : ""));
}

// "0.5%" or 0.005.
std::optional<double> ParseShare(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  std::optional<double> value = configs::NumberIn<double>(text);
  if (value && percent) *value /= 100;
  return value && *value >= 0 && *value <= 1 ? value : std::nullopt;
}

template <typename Parse>
void AddParsed(CLI::App& app, const std::string& name, const std::string& type,
               const std::string& description, Parse parse) {
  app.add_option_function<std::string>(
         name,
         [name, parse](const std::string& text) {
           const std::string problem = parse(text);
           if (!problem.empty()) throw CLI::ValidationError(name, problem);
         },
         description)
      ->type_name(type);
}

}  // namespace

Command AddCheck(CLI::App& parent) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* app = parent.add_subcommand(
      "check", "Compare reports with limits and a baseline; exit code 3 if one is broken");
  app->add_option("reports", flags->reports,
                  "Files of run --report or compare --report; - is stdin")
      ->type_name("REPORT.json...")
      ->required();
  AddParsed(*app, "--max-step", "TIME", "Longest allowed step, such as 62ms",
            [flags](const std::string& text) -> std::string {
              const auto time = configs::ParseQuantity(text, "ns");
              const bool fits = time && !time->factor && time->value > 0 && time->value < 1e15;
              if (!fits || !text.ends_with('s')) return "\"" + text + "\" is no time such as 62ms";
              flags->most_time = FromSeconds(time->value * 1e-9);
              return "";
            });
  AddParsed(*app, "--max-peak", "BYTES", "Highest allowed peak of HBM, such as 14GiB",
            [flags](const std::string& text) -> std::string {
              const auto size = configs::ParseQuantity(text, "bytes");
              const bool fits = size && !size->factor && size->value >= 1 && size->value < 1e18;
              if (!fits) return "\"" + text + "\" is no size such as 14GiB";
              flags->most_memory = Bytes(std::llround(size->value));
              return "";
            });
  AddParsed(*app, "--min-mfu", "SHARE", "Least allowed MFU, such as 40%",
            [flags](const std::string& text) -> std::string {
              flags->least_mfu = ParseShare(text);
              return flags->least_mfu ? "" : "\"" + text + "\" is no share such as 40% or 0.4";
            });
  CLI::Option* baseline =
      app->add_option("--baseline", flags->baseline,
                      "Reports, or a file of --write-baseline, with every step: a longer step "
                      "or a higher peak breaks a limit")
          ->type_name("OLD.json");
  AddParsed(*app, "--tolerance", "SHARE",
            "Allowed difference from the baseline (default: 0.5%)",
            [flags](const std::string& text) -> std::string {
              const std::optional<double> share = ParseShare(text);
              if (share) flags->tolerance = *share;
              return share ? "" : "\"" + text + "\" is no share such as 0.5% or 0.005";
            });
  app->get_option("--tolerance")->needs(baseline);
  app->add_flag("--two-sided", flags->two_sided,
                "A step shorter, or a peak lower, than the tolerance allows breaks a limit, "
                "too: the baseline is out of date")
      ->needs(baseline);
  app->add_option("--write-baseline", flags->write_baseline,
                  "Write the steps as a baseline, one per line")
      ->type_name("FILE");
  app->add_flag("--json", flags->json, "Print JSON");
  CLI::Option* quiet = app->add_flag("-q,--quiet", flags->quiet, "Print broken limits only");
  app->add_flag("-v,--verbose", flags->verbose, "Print all limits of many steps, too")
      ->excludes(quiet);
  AddExamples(
      *app,
      {{"tpusim check r.json --max-step 62ms --max-peak 14GiB", "fixed limits"},
       {"tpusim check r.json --baseline old.json --tolerance 1%", "no longer than before"},
       {"tpusim check *.json --write-baseline steps.json", "what to compare with"}},
      "Exit codes: 0 all limits hold; 3 one is broken, which stderr names; 1 a file cannot be "
      "read, or is something else.\n");
  app->callback([flags] {
    if (flags->Limits() || !flags->write_baseline.empty()) return;
    throw CLI::ValidationError("check",
                               "give a limit: --max-step, --max-peak, --min-mfu or --baseline");
  });
  return {app, [flags] { return Check(*flags); }};
}

}  // namespace tpusim::tools
