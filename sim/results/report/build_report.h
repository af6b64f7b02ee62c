// Builds the report of a simulated step from its timeline; the entry point of this room.
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
