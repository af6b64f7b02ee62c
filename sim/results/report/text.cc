#include "sim/results/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "configs/printable.h"
#include "configs/status_macros.h"

namespace tpusim::results {
namespace {

struct ScaledUnit {
  double scale;
  std::string_view name;
};

// Four significant digits in the largest unit that leaves at least 1.
std::string InUnits(double value, std::span<const ScaledUnit> units) {
  const double magnitude = std::fabs(value);
  size_t i = 0;
  // 999.95 would print as "1000.0": the next unit reads better.
  while (i + 1 < units.size() && magnitude >= 0.99995 * units[i + 1].scale) ++i;
  const double scaled = value / units[i].scale;
  const double size = std::fabs(scaled);
  if (value == std::floor(value) && i == 0) return fmt::format("{:.0f} {}", value, units[i].name);
  const int decimals = size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;
  return fmt::format("{:.{}f} {}", scaled, decimals, units[i].name);
}

constexpr ScaledUnit kTimes[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
constexpr ScaledUnit kSizes[] = {{1, "B"},        {0x1p10, "KiB"}, {0x1p20, "MiB"},
                                 {0x1p30, "GiB"}, {0x1p40, "TiB"}, {0x1p50, "PiB"}};
constexpr ScaledUnit kWork[] = {{1, "FLOP"},   {1e3, "kFLOP"},  {1e6, "MFLOP"},
                                {1e9, "GFLOP"}, {1e12, "TFLOP"}, {1e15, "PFLOP"}};

// A table whose cells are ready to be printed.
struct Columns {
  std::vector<std::vector<std::string>> cells;
  std::vector<bool> left;
  std::vector<size_t> widths;

  size_t count() const { return widths.size(); }
  size_t Total() const { return std::accumulate(widths.begin(), widths.end(), 2 * (count() - 1)); }
  bool LeftLast() const { return count() > 1 && left.back(); }
  void DropLast() {
    for (std::vector<std::string>& row : cells) row.pop_back();
    left.pop_back();
    widths.pop_back();
  }
};

Columns ColumnsOf(const std::vector<std::vector<std::string>>& rows) {
  Columns table{rows, {}, std::vector<size_t>(rows[0].size(), 0)};
  for (size_t c = 0; c < rows[0].size(); ++c) {
    const bool marked = !rows[0][c].empty() && rows[0][c][0] == '<';
    table.left.push_back(c == 0 || marked);
    if (marked) table.cells[0][c].erase(0, 1);
  }
  for (std::vector<std::string>& row : table.cells) {
    TPUSIM_CHECK(row.size() == table.count(), "table with rows of different length");
    for (size_t c = 0; c < row.size(); ++c) {
      row[c] = configs::Printable(row[c]);
      table.widths[c] = std::max(table.widths[c], row[c].size());
    }
  }
  return table;
}

// Takes what is too much from a column, down to `narrowest`.
void Narrow(Columns& table, size_t column, size_t narrowest, size_t width, size_t& total) {
  size_t& own = table.widths[column];
  if (total <= width || own <= narrowest) return;
  const size_t less = std::min(total - width, own - narrowest);
  own -= less;
  total -= less;
}

std::string RowText(const Columns& table, size_t row, const std::vector<size_t>& columns) {
  std::string line;
  for (const size_t c : columns) {
    if (!line.empty() || c != columns[0]) line += "  ";
    const std::string text = Clip(table.cells[row][c], table.widths[c]);
    const std::string padding(table.widths[c] - text.size(), ' ');
    line += table.left[c] ? text + padding : padding + text;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Returns which columns stand side by side: all, or as many as fit behind the first one.
std::vector<std::vector<size_t>> Blocks(const Columns& table, size_t total, size_t width) {
  std::vector<std::vector<size_t>> blocks = {{0}};
  if (total <= width) {
    blocks[0].resize(table.count());
    std::iota(blocks[0].begin(), blocks[0].end(), size_t{0});
    return blocks;
  }
  size_t used = table.widths[0];
  for (size_t c = 1; c < table.count(); ++c) {
    if (used + 2 + table.widths[c] > width && blocks.back().size() > 1) {
      blocks.push_back({0});
      used = table.widths[0];
    }
    blocks.back().push_back(c);
    used += 2 + table.widths[c];
  }
  return blocks;
}

}  // namespace

std::string TimeText(Picoseconds t) { return InUnits(ToNanoseconds(t), kTimes); }

std::string SignedTimeText(Picoseconds t) { return (t.value() >= 0 ? "+" : "") + TimeText(t); }

std::string BytesText(Bytes b) { return InUnits(static_cast<double>(b.value()), kSizes); }

std::string FlopsText(Flops f) { return InUnits(static_cast<double>(f.value()), kWork); }

std::string PercentText(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::vector<std::string> SharesText(const std::vector<Picoseconds>& parts) {
  constexpr int64_t kWhole = 1000;  // tenths of a percent
  const Picoseconds whole = std::accumulate(parts.begin(), parts.end(), Picoseconds(0));
  std::vector<int64_t> tenths(parts.size(), 0);
  std::vector<double> remainders(parts.size(), 0);
  if (whole > Picoseconds(0)) {
    int64_t left = kWhole;
    for (size_t i = 0; i < parts.size(); ++i) {
      const double exact = Ratio(parts[i], whole) * kWhole;
      tenths[i] = static_cast<int64_t>(exact);
      remainders[i] = exact - static_cast<double>(tenths[i]);
      left -= tenths[i];
    }
    std::vector<size_t> order(parts.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return remainders[i]; });
    for (size_t i = 0; i < order.size() && left > 0; ++i, --left) ++tenths[order[i]];
  }
  std::vector<std::string> texts;
  for (const int64_t t : tenths) texts.push_back(fmt::format("{}.{}%", t / 10, t % 10));
  return texts;
}

std::string LetterOf(size_t i) {
  std::string letter(1, static_cast<char>('A' + i % 26));
  if (i >= 26) letter += fmt::format("{}", i / 26);
  return letter;
}

std::string Clip(std::string_view text, size_t width) {
  if (text.size() <= width) return std::string(text);
  const std::string_view dots = width <= 3 ? "" : "...";
  size_t end = width - dots.size();
  const auto continues = [&](size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
  };
  while (end > 0 && continues(end)) --end;
  return std::string(text.substr(0, end)).append(dots);
}

namespace {

std::string Text(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

std::string TableText(const std::vector<std::vector<std::string>>& rows, size_t width,
                      LastColumn last) {
  return Text(TableLines(rows, width, last));
}

std::string JsonText(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::vector<std::string> WrappedLines(std::string_view text, size_t indent, size_t width) {
  std::vector<std::string> lines = {""};
  bool empty = true;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (!empty && lines.back().size() + 1 + word.size() > width) {
      lines.emplace_back(indent, ' ');
      empty = true;
    }
    // More than one blank is alignment: it stays.
    lines.back() += empty ? "" : " ";
    lines.back() += word;
    empty = false;
    at = end + 1;
  }
  return lines;
}

std::string WrappedText(std::string_view text, size_t indent, size_t width) {
  return Text(WrappedLines(text, indent, width));
}

std::vector<std::string> TableLines(const std::vector<std::vector<std::string>>& rows, size_t width,
                                    LastColumn last) {
  if (rows.empty()) return {};
  Columns table = ColumnsOf(rows);
  std::vector<std::string> below;  // of each row
  if (last == LastColumn::kBelow && table.LeftLast() && table.Total() > width) {
    for (const std::vector<std::string>& row : table.cells) below.push_back(row.back());
    table.DropLast();
  }
  constexpr size_t kNarrowest = 16, kRagged = 16, kNarrowText = 10;
  size_t total = table.Total();
  // A left-aligned last column may run over the edge: only its start counts.
  if (below.empty() && table.LeftLast() && table.widths.back() > kRagged) {
    total -= table.widths.back() - kRagged;
  }
  Narrow(table, 0, kNarrowest, width, total);
  for (size_t c = 1; c + 1 < table.count(); ++c) {
    if (table.left[c]) Narrow(table, c, kNarrowText, width, total);
  }
  if (total > width && below.empty() && table.LeftLast() && table.count() > 2) {
    total -= std::min(table.widths.back(), kRagged) + 2;
    table.DropLast();
  }
  std::vector<std::string> lines;
  for (const std::vector<size_t>& block : Blocks(table, total, width)) {
    if (!lines.empty()) lines.emplace_back();
    for (size_t r = 0; r < rows.size(); ++r) {
      lines.push_back(Clip(RowText(table, r, block), width));
      // What stands below rows needs no head.
      if (r == 0 || below.empty() || below[r].empty() || block.back() + 1 != table.count())
        continue;
      constexpr size_t kIndent = 4;
      std::ranges::move(WrappedLines(std::string(kIndent, ' ') + below[r], kIndent, width),
                        std::back_inserter(lines));
    }
  }
  return lines;
}

}  // namespace tpusim::results
