// Reports side by side, and why they differ.
//
// The step of a device is compute busy + exposed communication + the rest
// (waits for HBM, launches, latencies); the three add up exactly, so their
// differences explain the whole difference of two steps.
#ifndef TPUSIM_SIM_RESULTS_COMPARE_H_
#define TPUSIM_SIM_RESULTS_COMPARE_H_

#include <string>
#include <vector>

#include "sim/results/report.h"

namespace tpusim::results {

struct CompareOptions {
  RollupBy by = RollupBy::kCategory;
  size_t top = 8;
};

// A table with one column per report, named A, B, C ..., where the time of each
// step goes (rollup.h), then one line for every report after the first that
// says what it does differently from A. Needs what BuildReport, or JSON of
// JsonDetail::kExchange, gives.
std::string Compare(const std::vector<Report>& reports, const CompareOptions& options = {});

// The line: "B is 1.35x faster than A (-80.00 us): exposed communication
// -80.00 us (all-gather gone)".
std::string ExplainDifference(const std::string& name_a, const Report& a, const std::string& name_b,
                              const Report& b);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_COMPARE_H_
