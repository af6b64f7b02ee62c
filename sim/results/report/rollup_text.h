// Tables of a roll-up (rollup.h), for one step or several side by side.
//
// The shares shown add up to 100 %: they are rounded by largest remainders, so one may be a tenth
// of a percent from what it would be on its own.
#ifndef TPUSIM_SIM_RESULTS_REPORT_ROLLUP_TEXT_H_
#define TPUSIM_SIM_RESULTS_REPORT_ROLLUP_TEXT_H_

#include <string>
#include <vector>

#include "sim/results/report/report.h"
#include "sim/results/report/rollup.h"

namespace tpusim::results {

// `top` rows and one for all others; a row of cells each, the first of them the head (text.h).
std::vector<std::vector<std::string>> RollupCells(const Report& report, RollupBy by, size_t top);

// The time of the rows in several steps, a column per step. The rows are those that are longest in
// all steps together.
std::vector<std::vector<std::string>> RollupCells(const std::vector<Report>& reports, RollupBy by,
                                                  size_t top,
                                                  const std::vector<std::string>& labels);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_ROLLUP_TEXT_H_
