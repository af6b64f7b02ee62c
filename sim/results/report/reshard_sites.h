// What the places cost where a value is moved between two shardings without the program asking for
// it (isa::ReshardSite), and what is worth a warning.
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

// Those that ran, by exposed time, the longest first.
std::vector<ReshardSiteReport> ReshardSites(const isa::ProgramInfo& info,
                                            const sim::Timeline& timeline);

// The places that matter, at most `most`: in turn the first one at which a large value lost the
// sharding of an operand, and the one that is exposed longest. The former may move little itself,
// but what is computed from there on is split otherwise.
std::vector<const ReshardSiteReport*> SitesThatMatter(const std::vector<ReshardSiteReport>& sites,
                                                      size_t most);

// Those whose exposed time matters in a step, or in a step that waits for communication what has
// lost a sharding. Each is a sentence with the source line, the bytes, where the shardings come
// from, and what to try.
std::vector<std::string> ReshardWarnings(const std::vector<ReshardSiteReport>& sites,
                                         Picoseconds exposed, Picoseconds step);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_RESHARD_SITES_H_
