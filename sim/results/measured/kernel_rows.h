// Kernels that others measured on TPUs, a program each, beside their simulations.
//
// The rows are those of public autotuning caches (validation/kernels_measured/README.md). A group
// is an operation with its implementation, on one chip: errors of a whole step hide behind sums,
// these do not. Nothing is fitted to the rows.
#ifndef TPUSIM_SIM_RESULTS_MEASURED_KERNEL_ROWS_H_
#define TPUSIM_SIM_RESULTS_MEASURED_KERNEL_ROWS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "sim/results/report/producer.h"

namespace tpusim::results {

struct KernelRow {
  int64_t number = 0;  // line of the file, from 0: the name of its program
  std::string chip;    // as configs/chips names it
  std::string group;   // "attention, XLA, causal"
  Picoseconds time;    // of the device
  Bytes peak;          // of HBM
};

// Reads a row per line, as the caches have it: {"chip", "op", "args", "ms", "peak_mb", ...}. Error:
// the line that is none.
absl::StatusOr<std::vector<KernelRow>> ParseKernelRows(const std::string& lines);

struct KernelOutcome {
  KernelRow row;
  Picoseconds time;
  Bytes peak;
  std::string error;  // why there is no simulation; "" = there is
};

// Scores of simulated over measured.
struct KernelScore {
  std::string group, chip;  // "" = all
  int64_t rows = 0, failed = 0;
  double median = 0;        // ratio of times
  double mean_error = 0;    // of absolute relative errors
  double ninetieth = 0;     // percentile of these
  double signed_error = 0;  // mean of relative errors
  double peak_median = 0;   // ratio of peaks
  double peak_error = 0;    // mean of absolute relative errors
};

// Returns a score for each group on each chip, in the order of the groups, and one of all rows at
// the end. ragged_dot of v5p is not in that: an older library expanded it densely.
std::vector<KernelScore> ScoreKernels(const std::vector<KernelOutcome>& outcomes);

// Returns the scores as a table, and the programs that did not run, at most `width` wide.
std::string FormatKernels(const std::vector<KernelOutcome>& outcomes, size_t width);

// Returns JSON of schema "tpusim.measured_kernels/1": scores and rows.
std::string ToJson(const std::vector<KernelOutcome>& outcomes, const Producer& producer);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_MEASURED_KERNEL_ROWS_H_
