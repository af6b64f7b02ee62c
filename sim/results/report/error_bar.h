// How far simulations of this kind were from measurements on this chip: the error bar of a step.
//
// The rows are those of validation/measurements.json to which nothing was fitted, with the error of
// their simulation (validation/errors.json, written by tools/validation/error_bars.py and embedded
// in the binary). A step is compared with the rows of its chip and of its kind, which is told by
// what the program does:
//   training     it has a backward pass
//   inference    it has none, and several matrix products
//   matmul       it has one matrix product
//   collective   it has none, and most of the step is communication
// Programs of no such kind have no rows, and neither have chips whose parameters were set.
#ifndef TPUSIM_SIM_RESULTS_REPORT_ERROR_BAR_H_
#define TPUSIM_SIM_RESULTS_REPORT_ERROR_BAR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "configs/config.h"

namespace tpusim::results {

struct Report;

struct ErrorBar {
  std::string chip;
  std::string kind;  // "" = none of those that were measured
  int64_t rows = 0;
  double mean = 0;        // of the absolute errors
  double worst = 0;       // signed: below 0 the simulated step was too short
  std::string worst_row;  // "V40"
  std::string text;       // for people, of whatever the others say
};

// "training", ...; "" for kinds of programs without a measurement.
std::string_view KindOf(const Report& report);

ErrorBar ErrorBarOf(const configs::Config& config, const Report& report);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_ERROR_BAR_H_
