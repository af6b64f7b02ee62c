#include "sim/results/report/error_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "configs/embedded_files.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

struct ErrorRow {
  std::string id, chip, kind;
  double error = 0;
};

const std::vector<ErrorRow>& ErrorRows() {
  static const auto* rows = [] {
    auto* read = new std::vector<ErrorRow>;
    const auto json = nlohmann::json::parse(configs::EmbeddedFiles("validation")[0].text);
    for (const auto& row : json.at("rows")) {
      read->push_back({row["id"], row["chip"], row["kind"], row["error"]});
    }
    return read;
  }();
  return *rows;
}

// Returns the words for a step of this kind, with their article.
std::string_view NounOf(std::string_view kind) {
  if (kind == "training") return "a train step";
  if (kind == "inference") return "an inference step";
  return kind == "matmul" ? "a matmul" : "a collective";
}

}  // namespace

std::string_view KindOf(const Report& report) {
  int64_t products = 0;
  for (const OpReport& op : report.ops) {
    if (op.scope.find("transpose(") != std::string::npos) return "training";
    // Kernels that were written by hand are products if something keeps the matrix slots busy.
    const bool kernel =
        op.category == "custom-call" && op.flops > Flops(0) && report.mxu_busy > Picoseconds(0);
    if (kernel || op.category == "convolution fusion") products += op.count;
  }
  if (products > 1) return "inference";
  if (products == 1) return "matmul";
  return report.exposed * 2 > report.step_time ? "collective" : "";
}

ErrorBar ErrorBarOf(const configs::Config& config, const Report& report) {
  ErrorBar bar;
  bar.chip = config.chip.name;
  bar.kind = KindOf(report);
  if (bar.kind.empty()) {
    bar.text = "no: nobody measured this kind of program";
    return bar;
  }
  if (!config.overrides.empty()) {
    bar.text = "no: parameters of the chip are set";
    return bar;
  }
  double sum = 0;
  for (const ErrorRow& row : ErrorRows()) {
    if (row.chip != bar.chip || row.kind != bar.kind) continue;
    ++bar.rows;
    sum += std::abs(row.error);
    if (bar.rows == 1 || std::abs(row.error) > std::abs(bar.worst)) {
      bar.worst = row.error;
      bar.worst_row = row.id;
    }
  }
  if (bar.rows == 0) {
    bar.text = fmt::format("no: there is no independent measurement of {} on {}",
                           NounOf(bar.kind), bar.chip);
    return bar;
  }
  bar.mean = sum / static_cast<double>(bar.rows);
  bar.text = fmt::format("on {} {}: mean error {}, worst {:+.1f}% ({}) over {} row{}", bar.chip,
                         bar.kind, PercentText(bar.mean), 100 * bar.worst, bar.worst_row, bar.rows,
                         bar.rows == 1 ? "" : "s");
  return bar;
}

}  // namespace tpusim::results
