// Groups of collectives that print as one row: those of layers whose names differ in numbers only.
#ifndef TPUSIM_SIM_RESULTS_REPORT_COLLECTIVE_GROUPS_H_
#define TPUSIM_SIM_RESULTS_REPORT_COLLECTIVE_GROUPS_H_

#include <cstdint>
#include <vector>

#include "sim/results/report/report.h"

namespace tpusim::results {

struct CollectiveGroup {
  int64_t members = 1;
  // The name and the scope have "*" where members differ. Times, counts, covers and reasons are
  // sums; expected and bound are means over executions.
  CollectiveReport sum;
};

// Longest first. Members have the same kind, bytes, group size, axes, algorithm and source, and
// names and scopes that differ in numbers only.
std::vector<CollectiveGroup> GroupCollectives(const std::vector<CollectiveReport>& collectives);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_COLLECTIVE_GROUPS_H_
