#include "sim/results/report/alignment_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/results/report/rollup.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

using isa::SourcePlace;
using AlignmentTable = std::vector<std::vector<std::string>>;
using AlignmentJsonValue = nlohmann::ordered_json;

std::string CompilerOf(const Alignment& alignment, size_t side) {
  return alignment.compiled == side ? "the TPU compiler" : "tpusim";
}

std::string SignedBytesText(Bytes b) {
  return b < Bytes(0) ? "-" + BytesText(Bytes(0) - b) : "+" + BytesText(b);
}

std::string TimeChange(const Both<Picoseconds>& times) {
  return SignedTimeText(times[1] - times[0]);
}

// Returns the text of a change; "" if there is none, for columns in which most rows are equal.
std::string IfChanged(Picoseconds change) {
  return change == Picoseconds(0) ? "" : SignedTimeText(change);
}

Both<Picoseconds> OfPart(const Both<PartTimes>& times, OpPart part) {
  return {times[0].In(part), times[1].In(part)};
}

std::string PartTitle(OpPart part) {
  static constexpr std::string_view kTitles[] = {"kernels", "collectives, waited for",
                                                 "copies, data formatting", "rest"};
  return std::string(kTitles[static_cast<size_t>(part)]);
}

// Without the folders: "block.py:12".
std::string LineText(const std::string& source) {
  return source.substr(source.find_last_of('/') + 1);
}

std::string PlaceText(const SourcePlace& place) {
  if (!place.source.empty()) return LineText(place.source);
  return place.scope.empty() ? std::string(kNoSource) : place.scope;
}

// Returns a place as printed beside another one: ":12" in the same file, its scope on the same
// line.
std::string TextBeside(const SourcePlace& place, const SourcePlace& other) {
  const auto file = [](const SourcePlace& p) {
    return p.source.substr(0, p.source.find_last_of(':'));
  };
  if (place.source.empty() || place.source == other.source) {
    return place.scope.substr(place.scope.find_last_of('/') + 1);
  }
  return file(place) == file(other) ? place.source.substr(place.source.find_last_of(':'))
                                    : LineText(place.source);
}

// Behind what PlaceText says.
std::string ScopeBehind(const SourcePlace& place) {
  return place.source.empty() || place.source == place.scope ? "" : place.scope;
}

std::string KindText(const KindTotals& kind) {
  if (kind.count == 0) return "-";
  const std::string all =
      fmt::format("{} of {} in all, {}", kind.count, BytesText(kind.bytes), TimeText(kind.waited));
  return kind.asynchronous == 0 ? all : fmt::format("{}, {} async", all, kind.asynchronous);
}

AlignmentTable TotalsTable(const Alignment& a) {
  AlignmentTable table = {
      {"", a.labels[0], a.labels[1], fmt::format("{} - {}", a.labels[1], a.labels[0])}};
  const auto times = [&](const std::string& name, const Both<Picoseconds>& both) {
    table.push_back({name, TimeText(both[0]), TimeText(both[1]), TimeChange(both)});
  };
  times("step time", a.step);
  for (const OpPart part : kOpParts) times(PartTitle(part), OfPart(a.totals, part));
  table.push_back({"number of kernels", fmt::format("{}", a.totals[0].kernels),
                   fmt::format("{}", a.totals[1].kernels),
                   fmt::format("{:+}", a.totals[1].kernels - a.totals[0].kernels)});
  for (const auto& [kind, both] : a.kinds) {
    table.push_back({kind, KindText(both[0]), KindText(both[1]),
                     SignedTimeText(both[1].waited - both[0].waited)});
  }
  table.push_back({"peak HBM", BytesText(a.peak[0]), BytesText(a.peak[1]),
                   SignedBytesText(a.peak[1] - a.peak[0])});
  return table;
}

// "what (8 of 14)"
std::string ShownOf(std::string_view what, size_t shown, size_t all) {
  return shown == all ? std::string(what) : fmt::format("{} ({} of {})", what, shown, all);
}

// One row takes no more room than a line about it.
size_t RowsShown(size_t all, size_t top) { return all <= top + 1 ? all : top; }

AlignmentTable PlacesTable(const Alignment& a, size_t top) {
  std::vector<const AlignedPlace*> rows;
  for (const AlignedPlace& row : a.places) {
    if (row.Change() != Picoseconds(0)) rows.push_back(&row);
  }
  const size_t shown = RowsShown(rows.size(), top);
  AlignmentTable table = {{ShownOf("where time differs", shown, rows.size()), a.labels[0],
                           a.labels[1], fmt::format("{} - {}", a.labels[1], a.labels[0]),
                           "in kernels", "waits", "copies", "rest", "kernels", "<scope"}};
  const auto line = [&](const std::string& name, const Both<PartTimes>& times,
                        const std::string& scope) {
    const Both<Picoseconds> sums = {times[0].Sum(), times[1].Sum()};
    table.push_back({name, TimeText(sums[0]), TimeText(sums[1]), TimeChange(sums)});
    for (const OpPart part : kOpParts) {
      table.back().push_back(IfChanged(times[1].In(part) - times[0].In(part)));
    }
    table.back().push_back(times[0].kernels == times[1].kernels
                               ? fmt::format("{}", times[0].kernels)
                               : fmt::format("{} -> {}", times[0].kernels, times[1].kernels));
    table.back().push_back(scope);
  };
  for (size_t i = 0; i < shown; ++i) {
    const SourcePlace& place = rows[i]->place;
    line(PlaceText(place), rows[i]->times, ScopeBehind(place));
  }
  if (shown < rows.size()) {
    Both<PartTimes> others;
    for (size_t i = shown; i < rows.size(); ++i) {
      for (size_t side = 0; side < 2; ++side) {
        for (size_t part = 0; part < kOpParts.size(); ++part) {
          others[side].of[part] += rows[i]->times[side].of[part];
        }
        others[side].kernels += rows[i]->times[side].kernels;
      }
    }
    line(fmt::format("({} others)", rows.size() - shown), others, "");
  }
  return table;
}

// "fusion.* (4) 2.1 us: :50 :56", of a kernel that is made elsewhere "in fusion.3 of :58 2.1 us".
std::string KernelText(const AlignedKernel& kernel, const SourcePlace& place) {
  constexpr size_t kMostLines = 6;
  std::string text = kernel.name;
  if (kernel.members > 1) text += fmt::format(" ({})", kernel.members);
  if (kernel.made != place) {
    text = fmt::format("in {} of {}", text, TextBeside(kernel.made, place));
  }
  text += " " + TimeText(kernel.time);
  std::vector<std::string> lines;
  for (const SourcePlace& covered : kernel.covered) {
    if (covered == kernel.made || covered == place) continue;
    const std::string line = TextBeside(covered, place);
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  }
  if (lines.empty()) return text;
  const size_t left_out = lines.size() - std::min(lines.size(), kMostLines);
  lines.resize(lines.size() - left_out);
  text += fmt::format(", with {}", fmt::join(lines, " "));
  if (left_out > 0) text += fmt::format(" and {} more", left_out);
  return text;
}

std::string CollectiveText(const AlignedCollective& c) {
  return fmt::format("{} {} of {} over {}, {}, {}, {}", c.count, c.how.kind, BytesText(c.how.bytes),
                     c.how.group_size, c.how.asynchronous ? "asynchronous" : "synchronous",
                     TimeText(c.waited), c.how.algorithm);
}

// Rows of places with what either program has there, a line each.
template <typename Of, typename Text>
AlignmentTable OnlyTable(const Alignment& a, std::string_view what, size_t top, const Of& of,
                         const Text& text) {
  std::vector<const AlignedPlace*> rows;
  for (const AlignedPlace& row : a.places) {
    if (!of(row)[0].empty() || !of(row)[1].empty()) rows.push_back(&row);
  }
  if (rows.empty()) return {};
  const size_t shown = RowsShown(rows.size(), top);
  AlignmentTable table = {
      {ShownOf(what, shown, rows.size()), "<" + a.labels[0], "<" + a.labels[1], "<scope"}};
  for (size_t i = 0; i < shown; ++i) {
    const auto& both = of(*rows[i]);
    for (size_t n = 0; n < std::max(both[0].size(), both[1].size()); ++n) {
      table.push_back({n == 0 ? PlaceText(rows[i]->place) : ""});
      for (const auto& list : both) {
        table.back().push_back(n < list.size() ? text(list[n], rows[i]->place) : n == 0 ? "-" : "");
      }
      table.back().push_back(n == 0 ? ScopeBehind(rows[i]->place) : "");
    }
  }
  return table;
}

AlignmentTable MemoryTable(const Alignment& a, size_t top) {
  std::vector<const AlignedMemory*> rows;
  for (const AlignedMemory& row : a.memory) {
    if (row.Change() != Bytes(0)) rows.push_back(&row);
  }
  if (rows.empty()) return {};
  const size_t shown = RowsShown(rows.size(), top);
  AlignmentTable table = {{ShownOf("HBM at the peak", shown, rows.size()), a.labels[0], a.labels[1],
                           fmt::format("{} - {}", a.labels[1], a.labels[0]), "<of", "<scope"}};
  for (size_t i = 0; i < shown; ++i) {
    const AlignedMemory& row = *rows[i];
    table.push_back({PlaceText(row.place), BytesText(row.bytes[0]), BytesText(row.bytes[1]),
                     SignedBytesText(row.Change()), row.owner, ScopeBehind(row.place)});
  }
  return table;
}

// Every part of JSON, of the first program as "a", of the second as "b".
template <typename Make>
void AddBoth(AlignmentJsonValue& to, const Make& make) {
  to["a"] = make(0);
  to["b"] = make(1);
}

AlignmentJsonValue TimesJson(const PartTimes& times) {
  AlignmentJsonValue json = {{"time_ns", ToNanoseconds(times.Sum())}};
  for (const OpPart part : kOpParts) {
    json[fmt::format("{}_ns", PartName(part))] = ToNanoseconds(times.In(part));
  }
  json["kernels"] = times.kernels;
  return json;
}

AlignmentJsonValue PlaceJson(const SourcePlace& place) {
  return {{"scope", place.scope}, {"source", place.source}};
}

AlignmentJsonValue KernelJson(const AlignedKernel& kernel) {
  AlignmentJsonValue covered = AlignmentJsonValue::array();
  for (const SourcePlace& place : kernel.covered) covered.push_back(PlaceJson(place));
  return {{"name", kernel.name},
          {"members", kernel.members},
          {"count", kernel.count},
          {"time_ns", ToNanoseconds(kernel.time)},
          {"made", PlaceJson(kernel.made)},
          {"covered", std::move(covered)}};
}

AlignmentJsonValue CollectiveJson(const AlignedCollective& c) {
  return {{"kind", c.how.kind},
          {"bytes", c.how.bytes.value()},
          {"group_size", c.how.group_size},
          {"asynchronous", c.how.asynchronous},
          {"algorithm", c.how.algorithm},
          {"count", c.count},
          {"waited_ns", ToNanoseconds(c.waited)}};
}

AlignmentJsonValue KindJson(const KindTotals& kind) {
  return {{"count", kind.count},
          {"asynchronous", kind.asynchronous},
          {"bytes", kind.bytes.value()},
          {"waited_ns", ToNanoseconds(kind.waited)}};
}

template <typename T, typename Make>
AlignmentJsonValue ListJson(const std::vector<T>& items, const Make& make) {
  AlignmentJsonValue list = AlignmentJsonValue::array();
  for (const T& item : items) list.push_back(make(item));
  return list;
}

// A table of a page: its numbers stay numbers.
AlignmentJsonValue PanelOf(const std::string& title, const std::string& note,
                           AlignmentJsonValue columns) {
  return {{"kind", "table"},
          {"title", title},
          {"note", note},
          {"columns", std::move(columns)},
          {"rows", AlignmentJsonValue::array()}};
}

AlignmentJsonValue Column(const std::string& name, const std::string& unit = "text") {
  return {{"name", name}, {"unit", unit}};
}

AlignmentJsonValue TotalsPanel(const Alignment& a) {
  AlignmentJsonValue figures = AlignmentJsonValue::array();
  const AlignmentTable table = TotalsTable(a);
  for (size_t i = 1; i < table.size(); ++i) {
    figures.push_back({{"name", table[i][0]},
                       {"text", table[i][3]},
                       {"small", fmt::format("{}: {}, {}: {}", a.labels[0], table[i][1],
                                             a.labels[1], table[i][2])}});
  }
  return {{"kind", "figures"},
          {"title", fmt::format("{} ({}) less {} ({})", a.labels[1], CompilerOf(a, 1), a.labels[0],
                                CompilerOf(a, 0))},
          {"figures", std::move(figures)}};
}

AlignmentJsonValue PlacesPanel(const Alignment& a) {
  AlignmentJsonValue panel = PanelOf(
      "Where time differs",
      "Time of the main stream by scope and line; that of each program adds up to its step.",
      {Column("source"), Column("scope"), Column(a.labels[0], "ns"), Column(a.labels[1], "ns"),
       Column("difference", "signed ns"), Column("in kernels", "signed ns"),
       Column("waits", "signed ns"), Column("copies", "signed ns"), Column("rest", "signed ns"),
       Column("kernels of " + a.labels[0], "count"), Column("kernels of " + a.labels[1], "count")});
  for (const AlignedPlace& row : a.places) {
    const bool nowhere = row.place.source.empty() && row.place.scope.empty();
    AlignmentJsonValue cells = {nowhere ? std::string(kNoSource) : row.place.source,
                                ScopeBehind(row.place), ToNanoseconds(row.times[0].Sum()),
                                ToNanoseconds(row.times[1].Sum()), ToNanoseconds(row.Change())};
    for (const OpPart part : kOpParts) {
      cells.push_back(ToNanoseconds(row.times[1].In(part) - row.times[0].In(part)));
    }
    cells.push_back(row.times[0].kernels);
    cells.push_back(row.times[1].kernels);
    panel["rows"].push_back(std::move(cells));
  }
  return panel;
}

// Rows of texts, as on the terminal.
std::optional<AlignmentJsonValue> TextPanel(const std::string& title, const std::string& note,
                                            const Alignment& a, const AlignmentTable& table) {
  if (table.empty()) return std::nullopt;
  AlignmentJsonValue panel = PanelOf(
      title, note, {Column("line"), Column(a.labels[0]), Column(a.labels[1]), Column("scope")});
  for (size_t i = 1; i < table.size(); ++i) panel["rows"].push_back(table[i]);
  return panel;
}

std::optional<AlignmentJsonValue> MemoryPanel(const Alignment& a) {
  if (a.memory.empty()) return std::nullopt;
  AlignmentJsonValue panel = PanelOf(
      "HBM at the peak", "What is live when each program needs most of it.",
      {Column("source"), Column("scope or argument"), Column("of"), Column(a.labels[0], "bytes"),
       Column(a.labels[1], "bytes"), Column("difference", "signed bytes")});
  for (const AlignedMemory& row : a.memory) {
    panel["rows"].push_back({row.place.source, row.place.scope, row.owner, row.bytes[0].value(),
                             row.bytes[1].value(), row.Change().value()});
  }
  return panel;
}

AlignmentTable FusedTable(const Alignment& a, size_t top) {
  return OnlyTable(
      a, "fused otherwise", top, [](const AlignedPlace& p) -> const auto& { return p.kernels; },
      KernelText);
}

AlignmentTable CollectivesTable(const Alignment& a, size_t top) {
  return OnlyTable(
      a, "collectives otherwise", top,
      [](const AlignedPlace& p) -> const auto& { return p.collectives; },
      [](const AlignedCollective& c, const SourcePlace&) { return CollectiveText(c); });
}

constexpr size_t kAllRows = 1'000'000'000;

}  // namespace

std::string AlignmentText(const Alignment& a, size_t top, size_t width) {
  std::string text = fmt::format("{}, by {}, beside {}, by {}\n", a.labels[1], CompilerOf(a, 1),
                                 a.labels[0], CompilerOf(a, 0));
  const AlignmentTable tables[] = {TotalsTable(a), PlacesTable(a, top), FusedTable(a, top),
                                   CollectivesTable(a, top), MemoryTable(a, top)};
  for (const AlignmentTable& table : tables) {
    if (table.size() > 1) text += "\n" + TableText(table, width);
  }
  return text;
}

AlignmentJsonValue AlignmentJson(const Alignment& a) {
  AlignmentJsonValue json = {{"compiled", a.labels[a.compiled]}};
  AddBoth(json, [&](size_t side) {
    AlignmentJsonValue total = {{"label", a.labels[side]},
                                {"step_time_ns", ToNanoseconds(a.step[side])},
                                {"peak_hbm_bytes", a.peak[side].value()}};
    total.update(TimesJson(a.totals[side]));
    return total;
  });
  json["collectives"] = ListJson(a.kinds, [](const auto& kind) {
    AlignmentJsonValue row = {{"kind", kind.first}};
    AddBoth(row, [&](size_t side) { return KindJson(kind.second[side]); });
    return row;
  });
  json["places"] = ListJson(a.places, [](const AlignedPlace& place) {
    AlignmentJsonValue row = PlaceJson(place.place);
    row["change_ns"] = ToNanoseconds(place.Change());
    AddBoth(row, [&](size_t side) {
      AlignmentJsonValue part = TimesJson(place.times[side]);
      part["fused_otherwise"] = ListJson(place.kernels[side], KernelJson);
      part["collectives_otherwise"] = ListJson(place.collectives[side], CollectiveJson);
      return part;
    });
    return row;
  });
  json["memory"] = ListJson(a.memory, [](const AlignedMemory& memory) {
    AlignmentJsonValue row = {{"owner", memory.owner}};
    row.update(PlaceJson(memory.place));
    row["change_bytes"] = memory.Change().value();
    row["a_bytes"] = memory.bytes[0].value();
    row["b_bytes"] = memory.bytes[1].value();
    return row;
  });
  return json;
}

AlignmentJsonValue AlignmentTab(const Alignment& a) {
  AlignmentJsonValue panels = {TotalsPanel(a), PlacesPanel(a)};
  const std::optional<AlignmentJsonValue> more[] = {
      TextPanel("Fused otherwise", "Kernels whose lines no kernel of the other program covers.", a,
                FusedTable(a, kAllRows)),
      TextPanel("Collectives that run otherwise", "", a, CollectivesTable(a, kAllRows)),
      MemoryPanel(a)};
  for (const std::optional<AlignmentJsonValue>& panel : more) {
    if (panel) panels.push_back(*panel);
  }
  return {{"title", fmt::format("{} beside {}", a.labels[1], a.labels[0])},
          {"panels", std::move(panels)}};
}

}  // namespace tpusim::results
