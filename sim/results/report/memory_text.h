// The contents of HBM at the peak, array by array, as text.
#ifndef TPUSIM_SIM_RESULTS_REPORT_MEMORY_TEXT_H_
#define TPUSIM_SIM_RESULTS_REPORT_MEMORY_TEXT_H_

#include <cstddef>
#include <string>

#include "sim/results/report/report.h"

namespace tpusim::results {

// Returns the moment of the peak, its owners and scopes, and the `top` largest arrays, the rest of
// each as one row. Equal arrays of unrolled layers are one row, as in the roll-up (rollup.h).
// Columns add up to the peak. The text begins with a blank line; tables are at most `width` wide
// (text.h).
std::string MemoryText(const Report& report, size_t top, size_t width);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_MEMORY_TEXT_H_
