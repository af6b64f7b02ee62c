// What HBM holds at the peak, array by array, for people.
#ifndef TPUSIM_SIM_RESULTS_REPORT_MEMORY_TEXT_H_
#define TPUSIM_SIM_RESULTS_REPORT_MEMORY_TEXT_H_

#include <cstddef>
#include <string>

#include "sim/results/report/report.h"

namespace tpusim::results {

// When the peak is, its owners and scopes, and the `top` largest arrays, the rest of each as one
// row. Equal arrays of unrolled layers are one row, as in the roll-up (rollup.h). Columns add up to
// the peak. A blank line first. Tables are at most `width` wide (text.h).
std::string MemoryText(const Report& report, size_t top, size_t width);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_MEMORY_TEXT_H_
