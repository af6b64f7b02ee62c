#include "sim/results/report/rollup_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

// Without the scopes that all have in common.
std::string NameText(const RollupRow& row, const std::string& common) {
  const std::string name = row.name.starts_with(common) ? row.name.substr(common.size()) : row.name;
  return row.members > 1 ? fmt::format("{} ({})", name, row.members) : name;
}

// Scopes that all lines are in, with the slash behind; they are told once.
std::string CommonScope(const std::vector<RollupLine>& lines) {
  std::optional<std::string> common;
  for (const RollupLine& line : lines) {
    const std::string& name = line.row.name;
    if (name == kIdle || name.starts_with('(')) continue;
    if (!common) common = name;
    const auto [end, ignored] =
        std::mismatch(common->begin(), common->end(), name.begin(), name.end());
    common->erase(end, common->end());
    common->erase(common->find_last_of('/') + 1);
  }
  return common.value_or("");
}

// "operation (4 of 12)", "scope in jit(step)".
std::string Head(RollupBy by, size_t top, size_t rows, const std::string& common) {
  const std::string what = by == RollupBy::kOp     ? "operation"
                           : by == RollupBy::kPath ? "critical path"
                                                   : std::string(RollupName(by));
  if (!common.empty()) return fmt::format("{} in {}", what, common.substr(0, common.size() - 1));
  if (rows <= top + 1 || by == RollupBy::kScope) return what;
  return fmt::format("{} ({} of {})", what, top, rows);
}

// A row and its share of the step, printed behind the row's name.
struct Cell {
  const RollupRow& row;
  const std::string& share;
};
struct Column {
  std::string_view head;
  std::string (*cell)(const Cell& c);
};

std::string CountText(const Cell& c) {
  return c.row.count == 0 ? "" : fmt::format("{}", c.row.count);
}
// "" of a kind of collectives that is never in flight.
std::string IfInFlight(const Cell& c, std::string text) {
  return c.row.in_flight == Picoseconds(0) ? "" : std::move(text);
}

constexpr Column kCount = {"count", CountText};
constexpr Column kTime = {"time", [](const Cell& c) { return TimeText(c.row.time); }};
constexpr Column kStep = {"step", [](const Cell& c) { return c.share; }};
constexpr Column kCompute = {"compute", [](const Cell& c) { return TimeText(c.row.compute); }};
constexpr Column kExposed = {"exposed", [](const Cell& c) { return TimeText(c.row.exposed); }};
constexpr Column kSource = {"<source", [](const Cell& c) { return c.row.source; }};
constexpr Column kBy = {"<by", [](const Cell& c) { return c.row.category; }};
constexpr Column kCategory = {"<category", [](const Cell& c) { return Clip(c.row.category, 26); }};
constexpr Column kTransfers = {"count", [](const Cell& c) { return IfInFlight(c, CountText(c)); }};
constexpr Column kInFlight = {
    "in flight", [](const Cell& c) { return IfInFlight(c, TimeText(c.row.in_flight)); }};
constexpr Column kHidden = {"hidden",
                            [](const Cell& c) { return IfInFlight(c, TimeText(c.row.hidden)); }};

constexpr Column kOfOps[] = {kCategory, kCount, kTime, kStep, kSource};
constexpr Column kOfScopes[] = {kTime, kStep, kCompute, kExposed};
constexpr Column kOfGroups[] = {kCount, kTime, kStep, kCompute, kExposed};
constexpr Column kOfCollectives[] = {kTransfers, kTime, kStep, kInFlight, kHidden};
constexpr Column kOfPath[] = {kBy, kTime, kStep, kSource};

// In the order of RollupBy.
std::span<const Column> ColumnsOf(RollupBy by) {
  static constexpr std::array<std::span<const Column>, kRollups.size()> kColumns = {
      kOfOps, kOfScopes, kOfGroups, kOfGroups, kOfGroups, kOfCollectives, kOfPath};
  return kColumns[static_cast<size_t>(by)];
}

}  // namespace

std::vector<std::vector<std::string>> RollupCells(const Report& report, RollupBy by, size_t top) {
  const std::vector<RollupRow>& rows = report.rollups.Of(by);
  const std::vector<RollupLine> lines = TopLines(rows, by, top);
  std::vector<Picoseconds> times;
  for (const RollupLine& line : lines) times.push_back(line.row.time);
  const std::vector<std::string> shares = SharesText(times);

  const std::string common = by == RollupBy::kScope ? CommonScope(lines) : "";
  std::vector<std::vector<std::string>> cells = {{Head(by, top, rows.size(), common)}};
  const std::span<const Column> columns = ColumnsOf(by);
  for (const Column& column : columns) cells[0].emplace_back(column.head);
  for (size_t i = 0; i < lines.size(); ++i) {
    cells.push_back({NameText(lines[i].row, common)});
    for (const Column& column : columns) {
      cells.back().push_back(column.cell({lines[i].row, shares[i]}));
    }
  }
  return cells;
}

std::vector<std::vector<std::string>> RollupCells(const std::vector<Report>& reports, RollupBy by,
                                                  size_t top,
                                                  const std::vector<std::string>& labels) {
  std::vector<const std::vector<RollupRow>*> tables;
  for (const Report& report : reports) tables.push_back(&report.rollups.Of(by));
  const std::vector<RollupRow> merged = Merge(tables, by);
  const std::vector<RollupLine> lines = TopLines(merged, by, top);
  const std::string common = by == RollupBy::kScope ? CommonScope(lines) : "";
  std::vector<std::vector<std::string>> cells = {{Head(by, top, merged.size(), common)}};
  cells[0].insert(cells[0].end(), labels.begin(), labels.end());
  std::vector<std::map<std::string, Picoseconds>> times(reports.size());
  for (size_t r = 0; r < reports.size(); ++r) {
    for (const RollupRow& row : *tables[r]) times[r][KeyOf(row)] += row.time;
  }
  for (const RollupLine& line : lines) {
    std::string name = NameText(line.row, common);
    if (!line.row.category.empty()) name += ", " + line.row.category;
    cells.push_back({name});
    for (const std::map<std::string, Picoseconds>& of : times) {
      Picoseconds sum{0};
      for (const size_t row : line.rows) {
        const auto at = of.find(KeyOf(merged[row]));
        if (at != of.end()) sum += at->second;
      }
      cells.back().push_back(TimeText(sum));
    }
  }
  return cells;
}

}  // namespace tpusim::results
