#include "sim/results/measured/kernel_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_split.h"
#include "configs/status_macros.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<std::string_view, std::string_view> kChips[] = {
    {"tpu7x", "v7x"}, {"tpu_v6_lite", "v6e"}, {"tpu_v5", "v5p"}, {"tpu_v5_lite", "v5e"}};

// Operations by their names in the caches, in the order of the table.
constexpr std::pair<std::string_view, std::string_view> kOperations[] = {
    {"dot_product_attention", "attention, XLA"},
    {"dot_product_attention_vjp", "attention, XLA, vjp"},
    {"xla_chunked_dot_product_attention", "attention, XLA chunked"},
    {"pallas_mosaic_tpu_flash_attention", "attention, Pallas"},
    {"pallas_mosaic_tpu_flash_attention_vjp", "attention, Pallas, vjp"},
    {"linear_softmax_cross_entropy_loss", "cross entropy, XLA"},
    {"linear_softmax_cross_entropy_loss_vjp", "cross entropy, XLA, vjp"},
    {"chunked_xla_linear_softmax_cross_entropy_loss", "cross entropy, XLA chunked"},
    {"pallas_mosaic_tpu_linear_softmax_cross_entropy_loss", "cross entropy, Pallas"},
    {"pallas_mosaic_tpu_linear_softmax_cross_entropy_loss_vjp", "cross entropy, Pallas, vjp"},
    {"ragged_dot", "grouped matmul, XLA"},
    {"pallas_mosaic_tpu_ragged_dot", "grouped matmul, Pallas"},
    {"gated_linear_unit", "gated linear unit, XLA"},
    {"normalization", "normalization, XLA"},
    {"normalization_vjp", "normalization, XLA, vjp"},
    {"triangle_multiplication", "triangle multiplication, XLA"},
};

template <typename Table>
std::optional<std::string_view> Find(const Table& table, std::string_view name) {
  for (const auto& [from, to] : table) {
    if (from == name) return to;
  }
  return std::nullopt;
}

// Attention that XLA compiles differs by what it masks.
std::string GroupOf(const std::string& operation, std::string_view title, const Json& arguments) {
  if (operation != "dot_product_attention") return std::string(title);
  const Json mask = arguments.value("mask", Json::object());
  const bool masked = arguments.contains("bias") || !mask.value("bool_mask", Json()).is_null();
  return fmt::format("{}{}", title,
                     masked                           ? ", bias and mask"
                     : mask.value("is_causal", false) ? ", causal"
                                                      : ", full");
}

// Newer entries count in 10^6 bytes, older ones in 2^20: only one of the two is a whole number.
Bytes PeakOf(double megabytes) {
  constexpr double kMb = 1e6, kMib = 1 << 20;  // number: units
  constexpr double kRounding = 1e-3;           // number: rounding of a text
  const double bytes = megabytes * kMb;
  const bool whole = std::abs(bytes - std::round(bytes)) < kRounding;
  return Bytes(std::llround(whole ? bytes : megabytes * kMib));
}

absl::StatusOr<KernelRow> RowOf(const std::string& line, int64_t number) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto bad = [&](std::string_view what) {
    return UserError(fmt::format("row {}: {}", number, what));
  };
  if (!json.is_object() || !json.contains("chip") || !json.contains("op") ||
      !json.contains("args") || !json.contains("ms") || !json.contains("peak_mb") ||
      !json["chip"].is_string() || !json["op"].is_string() || !json["args"].is_object() ||
      !json["ms"].is_number() || !json["peak_mb"].is_number()) {
    return bad("is no object with chip, op, args, ms and peak_mb");
  }
  const auto chip = Find(kChips, json["chip"].get<std::string>());
  const std::string operation = json["op"];
  const auto title = Find(kOperations, operation);
  if (!chip) return bad("a chip of another name: " + json["chip"].get<std::string>());
  if (!title) return bad("an operation of another name: " + operation);
  const double ms = json["ms"], peak = json["peak_mb"];
  if (!(ms > 0 && peak >= 0)) return bad("a time or a peak of nothing");
  constexpr double kMillisecond = 1e-3;  // number: a unit
  KernelRow row{number, std::string(*chip), GroupOf(operation, *title, json["args"]),
                FromSeconds(ms * kMillisecond), PeakOf(peak)};
  return row;
}

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

KernelScore ScoreOf(const std::vector<const KernelOutcome*>& outcomes) {
  KernelScore score;
  std::vector<double> ratios, errors, differences, peaks, peak_errors;
  for (const KernelOutcome* o : outcomes) {
    if (!o->error.empty()) {
      ++score.failed;
      continue;
    }
    ratios.push_back(ToSeconds(o->time) / ToSeconds(o->row.time));
    differences.push_back(ratios.back() - 1);
    errors.push_back(std::abs(differences.back()));
    if (o->row.peak == Bytes(0)) continue;
    peaks.push_back(static_cast<double>(o->peak.value()) /
                    static_cast<double>(o->row.peak.value()));
    peak_errors.push_back(std::abs(peaks.back() - 1));
  }
  score.rows = std::ssize(ratios);
  if (ratios.empty()) return score;
  score.median = MedianOf(ratios);
  score.mean_error = MeanOf(errors);
  score.signed_error = MeanOf(differences);
  constexpr double kNinety = 0.9;  // number: a percentile
  const auto ninety =
      errors.begin() +
      static_cast<ptrdiff_t>(std::ceil(kNinety * static_cast<double>(errors.size()))) - 1;
  std::ranges::nth_element(errors, ninety);
  score.ninetieth = *ninety;
  if (peaks.empty()) return score;
  score.peak_median = MedianOf(peaks);
  score.peak_error = MeanOf(peak_errors);
  return score;
}

bool IsOfOlderLibrary(const KernelRow& row) {
  return row.group == "grouped matmul, XLA" && row.chip == "v5p";
}

size_t PlaceOf(const std::string& group) {
  size_t place = 0;
  while (place < std::size(kOperations) && !group.starts_with(kOperations[place].second)) ++place;
  return place;
}

}  // namespace

absl::StatusOr<std::vector<KernelRow>> ParseKernelRows(const std::string& lines) {
  std::vector<KernelRow> rows;
  const std::vector<std::string> split = absl::StrSplit(lines, '\n');
  for (const std::string& line : split) {
    if (line.empty()) continue;
    ASSIGN_OR_RETURN(KernelRow row, RowOf(line, std::ssize(rows)));
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return UserError("no row");
  return rows;
}

std::vector<KernelScore> ScoreKernels(const std::vector<KernelOutcome>& outcomes) {
  using Key = std::tuple<size_t, std::string, std::string>;  // place, group, chip
  std::map<Key, std::vector<const KernelOutcome*>> by_group;
  std::vector<const KernelOutcome*> all;
  for (const KernelOutcome& o : outcomes) {
    by_group[{PlaceOf(o.row.group), o.row.group, o.row.chip}].push_back(&o);
    if (!IsOfOlderLibrary(o.row)) all.push_back(&o);
  }
  std::vector<KernelScore> scores;
  for (const auto& [key, of] : by_group) {
    scores.push_back(ScoreOf(of));
    scores.back().group = std::get<1>(key);
    scores.back().chip = std::get<2>(key);
  }
  scores.push_back(ScoreOf(all));
  return scores;
}

std::string FormatKernels(const std::vector<KernelOutcome>& outcomes, size_t width) {
  std::vector<std::vector<std::string>> table = {{"kernels", "<chip", "rows", "median",
                                                  "mean error", "90th", "signed", "peak HBM",
                                                  "its error"}};
  for (const KernelScore& s : ScoreKernels(outcomes)) {
    if (s.rows == 0) continue;
    table.push_back({s.group.empty() ? "all but XLA's grouped matmul on v5p" : s.group, s.chip,
                     fmt::format("{}", s.rows), fmt::format("{:.2f}", s.median),
                     PercentText(s.mean_error), PercentText(s.ninetieth),
                     fmt::format("{:+.1f}%", 100 * s.signed_error),
                     fmt::format("{:.2f}", s.peak_median), PercentText(s.peak_error)});
  }
  std::string text;
  for (const std::string& line : TableLines(table, width)) text += line + "\n";
  for (const KernelOutcome& o : outcomes) {
    if (o.error.empty()) continue;
    text += fmt::format("\n{} of {} did not run: {}", o.row.number, o.row.chip, o.error);
  }
  return text;
}

std::string ToJson(const std::vector<KernelOutcome>& outcomes, const Producer& producer) {
  Json json = HeadOf("tpusim.measured_kernels/1", producer);
  Json scores = Json::array(), rows = Json::array();
  for (const KernelScore& s : ScoreKernels(outcomes)) {
    scores.push_back({{"group", s.group},
                      {"chip", s.chip},
                      {"rows", s.rows},
                      {"failed", s.failed},
                      {"median", s.median},
                      {"mean_error", s.mean_error},
                      {"ninetieth_percentile", s.ninetieth},
                      {"signed_error", s.signed_error},
                      {"peak_median", s.peak_median},
                      {"peak_error", s.peak_error}});
  }
  for (const KernelOutcome& o : outcomes) {
    Json row = {{"number", o.row.number},
                   {"group", o.row.group},
                   {"chip", o.row.chip},
                   {"measured_ns", ToNanoseconds(o.row.time)},
                   {"measured_peak_bytes", o.row.peak.value()}};
    if (o.error.empty()) {
      row["simulated_ns"] = ToNanoseconds(o.time);
      row["peak_bytes"] = o.peak.value();
    } else {
      row["error"] = o.error;
    }
    rows.push_back(std::move(row));
  }
  json["scores"] = std::move(scores);
  json["rows"] = std::move(rows);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tpusim::results
