// The costs of implicit reshards (isa::ReshardSite), where a value moves between two shardings that
// the program does not ask for, and the warnings about them.
#ifndef TPUSIM_SIM_RESULTS_REPORT_RESHARD_SITES_H_
#define TPUSIM_SIM_RESULTS_REPORT_RESHARD_SITES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/units.h"
#include "models/isa/program_info.h"
#include "sim/timeline.h"

namespace tpusim::results {

struct ReshardSiteReport {
  isa::ReshardSite site;
  int64_t order = 0;                 // among all of the program, loops before what is behind them
  int64_t count = 0;                 // executions of its collectives, combined ones included
  Picoseconds total{0}, exposed{0};  // of all of them
};

// Returns the sites that ran, by exposed time, the longest first.
std::vector<ReshardSiteReport> ReshardSites(const isa::ProgramInfo& info,
                                            const sim::Timeline& timeline);

// The places that matter, at most `most`: in turn the first one at which a large value lost the
// sharding of an operand, and the one that is exposed longest. The former may move little itself,
// but what is computed from there on is split otherwise.
std::vector<const ReshardSiteReport*> SitesThatMatter(const std::vector<ReshardSiteReport>& sites,
                                                      size_t most);

// Returns a warning for each site whose exposed time matters in the step, and for each lost
// sharding in a step that waits for communication. It is a sentence with the source line, the
// bytes, where the shardings come from, and what to try.
std::vector<std::string> ReshardWarnings(const std::vector<ReshardSiteReport>& sites,
                                         Picoseconds exposed, Picoseconds step);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_RESHARD_SITES_H_
