// Reports what was folded, and how exact that is.
#ifndef TPUSIM_SIM_SYMMETRY_FOLDING_REPORT_H_
#define TPUSIM_SIM_SYMMETRY_FOLDING_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/units.h"

namespace tpusim::sim {

// The classes that were told apart, and why (symmetry/symmetry.h).
struct FoldingReport {
  struct Step {
    std::string reason;
    int64_t device_classes = 0;  // after it
  };
  bool is_approximate = false;
  int64_t device_classes = 0;
  // Simulations; all but the last met a set of routes that splits a class, or were of coarser
  // classes.
  int64_t simulations = 1;
  std::vector<Step> steps;
  // The difference of an approximate folding's step to that of coarser classes.
  Picoseconds ignored_skew{0};
  // The part of the time of transfers that others on the same links took.
  double link_sharing = 0;
  // The bound of the difference to the step of every device and pass by itself (simulate.h). Zero:
  // it is the same.
  Picoseconds error_bound{0};
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_FOLDING_REPORT_H_
