#include "sim/results/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/results/report/alignment_output.h"
#include "sim/results/report/rollup_text.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

Picoseconds Rest(const Report& r) { return r.step_time - r.compute_busy - r.exposed; }

Picoseconds Magnitude(Picoseconds t) { return std::max(t, Picoseconds(0) - t); }

std::map<std::string, Picoseconds> ExposedByKind(const Report& r) {
  std::map<std::string, Picoseconds> by_kind;
  for (const CollectiveReport& c : r.collectives) by_kind[c.kind] += c.exposed;
  return by_kind;
}

// The kind of collective behind a change of exposed communication.
std::string ExposedReason(const Report& a, const Report& b) {
  const std::map<std::string, Picoseconds> before = ExposedByKind(a), after = ExposedByKind(b);
  std::map<std::string, Picoseconds> change = after;
  for (const auto& [kind, t] : before) change[kind] -= t;
  std::string most;
  for (const auto& [kind, t] : change) {
    if (most.empty() || Magnitude(t) > Magnitude(change[most])) most = kind;
  }
  if (most.empty() || change[most].value() == 0) return "";
  if (!after.contains(most)) return most + " gone";
  if (!before.contains(most)) return "new: " + most;
  return fmt::format("{} {} -> {}", most, TimeText(before.at(most)), TimeText(after.at(most)));
}

std::string ComputeReason(const Report& a, const Report& b) {
  if (a.flops == b.flops) return "";
  return fmt::format("{} -> {}", FlopsText(a.flops), FlopsText(b.flops));
}

// Returns the error of simulations like this one against measurements.
std::string ErrorText(const ErrorBar& bar) {
  if (bar.rows == 0) return "-";
  return fmt::format("{}, worst {:+.1f}%", PercentText(bar.mean), 100 * bar.worst);
}

AlignBy AlignByOf(RollupBy by) {
  if (by == RollupBy::kScope) return AlignBy::kScope;
  return by == RollupBy::kSource ? AlignBy::kSource : AlignBy::kScopeAndSource;
}

struct StepDifference {
  std::string name;
  Picoseconds change;
  std::string reason;
};

}  // namespace

std::string ExplainDifference(const std::string& name_a, const Report& a, const std::string& name_b,
                              const Report& b) {
  const Picoseconds change = b.step_time - a.step_time;
  std::string text;
  if (Magnitude(change) * 1000 < a.step_time) {
    text = fmt::format("{} takes as long as {}", name_b, name_a);
  } else if (b.step_time.value() == 0 || a.step_time.value() == 0) {
    text = fmt::format("{} and {} do not compare: an empty step", name_b, name_a);
  } else {
    const bool faster = change < Picoseconds(0);
    text = fmt::format("{} is {:.2f}x {} than {} ({})", name_b,
                       faster ? Ratio(a.step_time, b.step_time) : Ratio(b.step_time, a.step_time),
                       faster ? "faster" : "slower", name_a, SignedTimeText(change));
  }

  std::vector<StepDifference> parts = {
      {"exposed communication", b.exposed - a.exposed, ExposedReason(a, b)},
      {"compute", b.compute_busy - a.compute_busy, ComputeReason(a, b)},
      {"waits for HBM, launches and latencies", Rest(b) - Rest(a), ""},
  };
  std::ranges::stable_sort(parts, std::greater<>(),
                           [](const StepDifference& part) { return Magnitude(part.change); });
  // What is under a twentieth of the largest part, or of no weight in the step, explains nothing.
  const Picoseconds largest = Magnitude(parts[0].change);
  bool first = true;
  for (const StepDifference& p : parts) {
    const Picoseconds size = Magnitude(p.change);
    if (size.value() == 0 || size * 20 < largest || size * 1000 < a.step_time) continue;
    text += fmt::format("{}{} {}", first ? ": " : ", ", p.name, SignedTimeText(p.change));
    if (!p.reason.empty()) text += fmt::format(" ({})", p.reason);
    first = false;
  }
  const Picoseconds hidden = b.hidden - a.hidden;
  if (Magnitude(hidden) * 100 >= a.step_time && hidden.value() != 0) {
    text += fmt::format("; hidden communication {}", SignedTimeText(hidden));
  }
  const int64_t memory = b.peak.hbm().value() - a.peak.hbm().value();
  if (std::max(memory, -memory) * 20 >= a.peak.hbm().value() && memory != 0) {
    text += fmt::format("; peak HBM {} -> {}", BytesText(a.peak.hbm()), BytesText(b.peak.hbm()));
  }
  return text;
}

std::string Compare(const std::vector<Compared>& compared, const CompareOptions& options) {
  std::vector<Report> reports;  // of those that have one, and their names
  std::vector<std::string> names;
  for (size_t i = 0; i < compared.size(); ++i) {
    if (!compared[i].report) continue;
    reports.push_back(*compared[i].report);
    names.push_back(LetterOf(i));
  }
  using Cell = std::function<std::string(const Report&)>;
  const std::vector<std::pair<std::string, Cell>> rows = {
      {"step time", [](const Report& r) { return TimeText(r.step_time); }},
      {"validated error", [](const Report& r) { return ErrorText(r.error_bar); }},
      {"speed",
       [&](const Report& r) {
         return r.step_time.value() == 0
                    ? "-"
                    : fmt::format("{:.2f}x", Ratio(reports[0].step_time, r.step_time));
       }},
      {"bound by",
       [](const Report& r) { return std::string(BindingName(BindingOf(r.critical_path))); }},
      {"compute busy", [](const Report& r) { return TimeText(r.compute_busy); }},
      {"exposed communication", [](const Report& r) { return TimeText(r.exposed); }},
      {"rest (waits, launches)", [](const Report& r) { return TimeText(Rest(r)); }},
      {"hidden communication", [](const Report& r) { return TimeText(r.hidden); }},
      {"compute bound", [](const Report& r) { return TimeText(r.bound.compute); }},
      {"hbm bound", [](const Report& r) { return TimeText(r.bound.hbm); }},
      {"ici bound", [](const Report& r) { return TimeText(r.bound.ici); }},
      {"MFU", [](const Report& r) { return PercentText(r.mfu); }},
      {"peak HBM", [](const Report& r) { return BytesText(r.peak.hbm()); }},
  };
  std::vector<std::vector<std::string>> table = {{""}, {"workload"}, {"config"}};
  for (size_t i = 0; i < compared.size(); ++i) {
    table[0].push_back(LetterOf(i));
    table[1].push_back(compared[i].workload);
    table[2].push_back(compared[i].config);
  }
  for (const auto& [name, cell] : rows) {
    table.emplace_back(1, name);
    for (const Compared& c : compared) {
      const bool first = &cell == &rows[0].second;
      table.back().push_back(c.report ? cell(*c.report) : first ? "does not fit" : "-");
    }
  }
  std::string text = TableText(table, options.width);
  if (!reports.empty()) {
    text += "\n";
    text += TableText(RollupCells(reports, options.by, options.top, names), options.width);
  }
  if (compared.size() > 1) text += "\n";
  for (size_t i = 1; i < reports.size(); ++i) {
    text += ExplainDifference(names[0], reports[0], names[i], reports[i]) + "\n";
  }
  for (size_t i = 0; i < compared.size(); ++i) {
    if (compared[i].report) continue;
    text += fmt::format("{}, {} on {}: {}\n", LetterOf(i), compared[i].workload, compared[i].config,
                        compared[i].problem);
  }
  for (const Alignment& alignment : Alignments(compared, AlignByOf(options.by))) {
    text += "\n" + AlignmentText(alignment, options.top, options.width);
  }
  return text;
}

std::string CompareJson(const std::vector<Compared>& compared, const Producer& producer) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (size_t i = 0; i < compared.size(); ++i) {
    const Compared& c = compared[i];
    Json one = {{"label", LetterOf(i)}, {"workload", c.workload}, {"config", c.config}};
    if (c.report) {
      one["report"] = Json::parse(ToJson(*c.report));
    } else {
      one["problem"] = c.problem;
    }
    all.push_back(std::move(one));
  }
  Json json = HeadOf("tpusim.compare/1", producer);
  json["compared"] = std::move(all);
  for (const Alignment& alignment : Alignments(compared)) {
    json["alignment"].push_back(AlignmentJson(alignment));
  }
  return JsonText(json);
}

}  // namespace tpusim::results
