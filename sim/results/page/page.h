// The page that `--html` writes: one file, which a browser shows without a network.
//
// The look is in this folder: a skeleton (page.html), a style sheet, and scripts that draw with D3
// from the data that is embedded as JSON. What a page shows is therefore decided by its data:
//
//   {"schema": "tpusim.page/1", "title": ..., "subtitle": ...,
//    "runs": [{"name": ..., "report": <tpusim.report/1>, "timeline": <TimelineJson>,
//              "difference": ..., "panels": [...]}, ...],
//    "tabs": [{"title": ..., "panels": [...]}, ...]}
//
// Every run has its own tabs; several runs are also compared. `tabs` adds tabs of tables, bars,
// scatter plots and texts (panels.js) for other content, and their entries can open a run. The
// panels of a run come before its summary; without a report a run has these alone.
//
// The room answers what a browser shows; `PageOfRuns` is its entry point. The page computes no
// figure of its own: it draws those of the report, with which tests compare it.
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

// Returns the timeline of one recorded device, the critical one if it is recorded, as JSON: tracks
// with slices and samples. If there is too much for a page, short slices are left out and counted.
absl::StatusOr<std::string> TimelineJson(const configs::Config& config,
                                         const isa::ProgramInfo& info,
                                         const sim::Timeline& timeline);

struct PageRun {
  std::string name;
  std::string report;           // JSON
  std::string timeline;         // JSON; "" = none
  std::string difference = "";  // how it differs from the first, in words
};
// Returns the page. `tabs` is a JSON array of further tabs; "" = none.
std::string PageOfRuns(const std::string& title, const std::vector<PageRun>& runs,
                       const std::string& tabs = "");

// Returns the page of any data as above. Error: it is not JSON of that schema.
absl::StatusOr<std::string> PageOfData(const std::string& json);

// Files of page/ as they were at build time, and the plotting library.
struct PageAssets {
  std::string_view skeleton, style, script, library;
};
PageAssets EmbeddedPageAssets();

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_PAGE_PAGE_H_
