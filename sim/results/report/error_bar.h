// The error bar of a step: errors of simulations of this kind against measurements on this chip.
//
// The rows are those of validation/measurements.json to which nothing was fitted, with the error of
// their simulation (validation/errors.json, written by tools/validation/error_bars.py and embedded
// in the binary). A step is compared with the rows of its chip and of its kind, which depends on
// what the program does:
//   training     it has a backward pass
//   inference    it has none, and several matrix products
//   matmul       it has one matrix product
//   collective   it has none, and most of the step is communication
// Programs of no such kind have no rows, and neither have chips whose parameters were set.
#ifndef TPUSIM_SIM_RESULTS_REPORT_ERROR_BAR_H_
#define TPUSIM_SIM_RESULTS_REPORT_ERROR_BAR_H_

#include <string_view>

#include "configs/config.h"
#include "sim/results/report/report.h"

namespace tpusim::results {

// Returns "training", ...; "" for kinds of programs without a measurement.
std::string_view KindOf(const Report& report);

ErrorBar ErrorBarOf(const configs::Config& config, const Report& report);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_ERROR_BAR_H_
