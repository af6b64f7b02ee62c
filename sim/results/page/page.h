// The page that `--html` writes: one file, which a browser shows without a network.
//
// The look is in page/: a skeleton (page.html), a style sheet, and scripts that draw with D3
// from the data that is embedded as JSON. What a page shows is therefore decided by its data:
//
//   {"schema": "tpusim.page/1", "title": ..., "subtitle": ...,
//    "runs": [{"name": ..., "report": <tpusim.report/1>, "timeline": <TimelineJson>,
//              "difference": ..., "panels": [...]}, ...],
//    "tabs": [{"title": ..., "panels": [...]}, ...]}
//
// Every run has tabs of its own, several are compared besides. `tabs` are further ones of
// tables, bars, scatter plots and texts (page/panels.js), for whatever else there is to show;
// what they show of a run can open it. A run has panels of its own before its summary, and without
// a report these alone.
#ifndef TPUSIM_SIM_RESULTS_PAGE_PAGE_H_
#define TPUSIM_SIM_RESULTS_PAGE_PAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/topology.h"
#include "models/isa/program_info.h"
#include "sim/timeline.h"

namespace tpusim::results {

// What one recorded device did, the critical one if it is recorded, as JSON: tracks with slices
// and samples. Where there is too much for a page, short slices are left out and counted.
absl::StatusOr<std::string> TimelineJson(const configs::Config& config,
                                         const isa::ProgramInfo& info,
                                         const sim::Timeline& timeline);

struct PageRun {
  std::string name;
  std::string report;           // JSON
  std::string timeline;         // JSON; "" = none
  std::string difference = "";  // how it differs from the first, in words
};
// `tabs` are further ones, a JSON array; "" = none.
std::string PageOfRuns(const std::string& title, const std::vector<PageRun>& runs,
                       const std::string& tabs = "");

// Of any data as above. Error: it is not JSON of that schema.
absl::StatusOr<std::string> PageOfData(const std::string& json);

// Files of page/ as they were at build time, and the plotting library.
struct PageAssets {
  std::string_view skeleton, style, script, library;
};
PageAssets EmbeddedPageAssets();

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_PAGE_PAGE_H_
