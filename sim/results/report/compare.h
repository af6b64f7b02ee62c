// Reports side by side, and why they differ.
//
// The step of a device is compute busy + exposed communication + the rest
// (waits for HBM, launches, latencies); the three add up exactly, so their
// differences explain the whole difference of two steps.
#ifndef TPUSIM_SIM_RESULTS_REPORT_COMPARE_H_
#define TPUSIM_SIM_RESULTS_REPORT_COMPARE_H_

#include <string>
#include <vector>

#include "sim/results/report/alignment.h"
#include "sim/results/report/producer.h"
#include "sim/results/report/report.h"
#include "sim/results/report/rollup.h"

namespace tpusim::results {

struct CompareOptions {
  RollupBy by = RollupBy::kCategory;
  size_t top = 8;
  size_t width = 10'000;  // a table that is wider goes on below itself
};

// A table with one column each, named A, B, C ..., where the time of each step goes (rollup.h),
// then one line for every report after the first that says what it does differently from that, or
// the problem. Needs what BuildReport, or JSON of JsonDetail::kExchange, gives.
std::string Compare(const std::vector<Compared>& compared, const CompareOptions& options = {});

// Returns the comparison as JSON: {"schema": "tpusim.compare/1", ..., "compared": [{"label",
// "workload", "config", "report" or "problem"}]}, with "alignment": [...] if programs can be
// aligned (alignment.h).
std::string CompareJson(const std::vector<Compared>& compared, const Producer& producer);

// The line: "B is 1.35x faster than A (-80.00 us): exposed communication
// -80.00 us (all-gather gone)".
std::string ExplainDifference(const std::string& name_a, const Report& a, const std::string& name_b,
                              const Report& b);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_COMPARE_H_
