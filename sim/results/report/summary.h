// One screen about one step: how long, what binds it, where the time goes.
#ifndef TPUSIM_SIM_RESULTS_REPORT_SUMMARY_H_
#define TPUSIM_SIM_RESULTS_REPORT_SUMMARY_H_

#include <string>

#include "sim/results/report/report.h"

namespace tpusim::results {

inline constexpr int kSummaryLines = 24;
inline constexpr size_t kSummaryColumns = 100;

struct SummaryOptions {
  RollupBy by = RollupBy::kOp;
  size_t top = 0;                  // rows of tables; 0: as many as one screen has room for
  size_t width = kSummaryColumns;  // what is longer is cut
};

// Returns at most kSummaryLines lines of the columns that there are (more of fewer than
// kSummaryColumns), whatever the program: tables show the longest entries and say how many there
// are.
std::string Summarize(const Report& report, const SummaryOptions& options = {});

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_SUMMARY_H_
