// Builds the report of a simulated step.
//
// The room answers what a step took and why, for people and for programs. report.h has the figures,
// report_json.cc writes and reads them, summary.h prints them; rollup.h, critical_path.h,
// overlap.h, reshard_sites.h and error_bar.h each answer one question of it. compare.h puts several
// reports side by side, alignment.h two compilers' work on one program. Every report is checked
// (invariants.h) before it is returned: a figure that cannot be is an internal error, never output.
// `BuildReport` is the entry point.
#ifndef TPUSIM_SIM_RESULTS_REPORT_BUILD_REPORT_H_
#define TPUSIM_SIM_RESULTS_REPORT_BUILD_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "models/isa/program_info.h"
#include "sim/results/report/report.h"
#include "sim/timeline.h"

namespace tpusim::results {

// Error (internal): the simulation broke an invariant; the message names it.
absl::StatusOr<Report> BuildReport(const configs::Config& config, const isa::ProgramInfo& info,
                                   const sim::Timeline& timeline, const std::string& workload);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_BUILD_REPORT_H_
