#include "sim/results/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "configs/printable.h"
#include "configs/status_macros.h"

namespace tpusim::results {
namespace {

struct Unit {
  double scale;
  std::string_view name;
};

// Four significant digits in the largest unit that leaves at least 1.
template <size_t N>
std::string InUnits(double value, const std::array<Unit, N>& units) {
  const double magnitude = std::fabs(value);
  size_t i = 0;
  // 999.95 would print as "1000.0": the next unit reads better.
  while (i + 1 < N && magnitude >= 0.99995 * units[i + 1].scale) ++i;
  const double scaled = value / units[i].scale;
  const double size = std::fabs(scaled);
  if (value == std::floor(value) && i == 0) return fmt::format("{:.0f} {}", value, units[i].name);
  const int decimals = size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;
  return fmt::format("{:.{}f} {}", scaled, decimals, units[i].name);
}

constexpr std::array<Unit, 4> kTimes = {Unit{1, "ns"}, Unit{1e3, "us"}, Unit{1e6, "ms"},
                                        Unit{1e9, "s"}};
constexpr std::array<Unit, 6> kSizes = {Unit{1, "B"},        Unit{0x1p10, "KiB"},
                                        Unit{0x1p20, "MiB"}, Unit{0x1p30, "GiB"},
                                        Unit{0x1p40, "TiB"}, Unit{0x1p50, "PiB"}};
constexpr std::array<Unit, 6> kWork = {Unit{1, "FLOP"},     Unit{1e3, "kFLOP"},
                                       Unit{1e6, "MFLOP"},  Unit{1e9, "GFLOP"},
                                       Unit{1e12, "TFLOP"}, Unit{1e15, "PFLOP"}};

}  // namespace

std::string TimeText(Picoseconds t) { return InUnits(ToNanoseconds(t), kTimes); }

std::string SignedTimeText(Picoseconds t) { return (t.value() >= 0 ? "+" : "") + TimeText(t); }

std::string BytesText(Bytes b) { return InUnits(static_cast<double>(b.value()), kSizes); }

std::string FlopsText(Flops f) { return InUnits(static_cast<double>(f.value()), kWork); }

std::string PercentText(double share) { return fmt::format("{:.1f}%", 100 * share); }

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

std::vector<std::string> TableLines(const std::vector<std::vector<std::string>>& rows,
                                    size_t width) {
  if (rows.empty()) return {};
  const size_t columns = rows[0].size();
  std::vector<bool> left(columns, false);
  std::vector<size_t> widths(columns, 0);
  for (size_t c = 0; c < columns; ++c) {
    left[c] = c == 0 || (!rows[0][c].empty() && rows[0][c][0] == '<');
  }
  std::vector<std::vector<std::string>> cells = rows;
  for (std::vector<std::string>& row : cells) {
    for (std::string& text : row) text = configs::Printable(text);
  }
  const auto cell = [&](size_t r, size_t c) -> std::string_view {
    std::string_view text = cells[r][c];
    if (r == 0 && !text.empty() && text[0] == '<') text.remove_prefix(1);
    return text;
  };
  for (size_t r = 0; r < rows.size(); ++r) {
    TPUSIM_CHECK(rows[r].size() == columns, "table with rows of different length");
    for (size_t c = 0; c < columns; ++c) widths[c] = std::max(widths[c], cell(r, c).size());
  }
  size_t total = 2 * (columns - 1);
  for (size_t w : widths) total += w;
  // A left-aligned last column may run over the edge: only its start counts.
  constexpr size_t kNarrowest = 16, kRagged = 16;
  if (columns > 1 && left[columns - 1] && widths[columns - 1] > kRagged) {
    total -= widths[columns - 1] - kRagged;
  }
  if (total > width && widths[0] > kNarrowest) {
    widths[0] -= std::min(total - width, widths[0] - kNarrowest);
  }

  std::vector<std::string> lines;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t c = 0; c < columns; ++c) {
      if (c > 0) line += "  ";
      const std::string text = Clip(cell(r, c), widths[c]);
      const std::string padding(widths[c] - text.size(), ' ');
      line += left[c] ? text + padding : padding + text;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(Clip(line, width));
  }
  return lines;
}

}  // namespace tpusim::results
