// An alignment (alignment.h) as text, JSON and a tab of a page.
#ifndef TPUSIM_SIM_RESULTS_REPORT_ALIGNMENT_OUTPUT_H_
#define TPUSIM_SIM_RESULTS_REPORT_ALIGNMENT_OUTPUT_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/results/report/alignment.h"

namespace tpusim::results {

// Totals, then `top` places each of where time differs, where kernels are fused and collectives run
// otherwise, and where memory differs at the peak; what is equal is left out.
std::string AlignmentText(const Alignment& alignment, size_t top, size_t width);

nlohmann::ordered_json AlignmentJson(const Alignment& alignment);

// A tab of tables (page.h).
nlohmann::ordered_json AlignmentTab(const Alignment& alignment);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_ALIGNMENT_OUTPUT_H_
