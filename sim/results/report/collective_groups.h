// Collectives that are told in one row: those of layers, which differ in nothing but numbers.
#ifndef TPUSIM_SIM_RESULTS_REPORT_COLLECTIVE_GROUPS_H_
#define TPUSIM_SIM_RESULTS_REPORT_COLLECTIVE_GROUPS_H_

#include <cstdint>
#include <vector>

#include "sim/results/report/report.h"

namespace tpusim::results {

struct CollectiveGroup {
  int64_t members = 1;
  // Its name and scope have "*" where members differ. Times and counts are sums; expected and bound
  // are means over executions, of one. What hides it and why it is exposed is added up, too.
  CollectiveReport sum;
};

// Longest first. Members have the same kind, bytes, group size, axes, algorithm and source, and
// names and scopes that differ in numbers only.
std::vector<CollectiveGroup> GroupCollectives(const std::vector<CollectiveReport>& collectives);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_COLLECTIVE_GROUPS_H_
