// The report of a folding: which devices were simulated for others, and how exact that is.
#ifndef TPUSIM_SIM_SYMMETRY_FOLDING_REPORT_H_
#define TPUSIM_SIM_SYMMETRY_FOLDING_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/units.h"

namespace tpusim::sim {

// The distinctions between devices, and their reasons (symmetry/symmetry.h).
struct FoldingReport {
  struct FoldingStep {
    std::string reason;
    int64_t device_classes = 0;  // after it
  };
  bool is_approximate = false;
  int64_t device_classes = 0;
  // Simulations that were run: all but the last met a set of routes that splits a class, or were of
  // coarser classes.
  int64_t simulations = 1;
  std::vector<FoldingStep> steps;
  // The difference between the step of an approximate folding and that of coarser classes.
  Picoseconds ignored_skew{0};
  // The part of the time of transfers that others on the same links took.
  double link_sharing = 0;
  // A bound on the difference between the step and that of every device and pass by itself
  // (simulate.h). Zero: it is the same.
  Picoseconds error_bound{0};
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_FOLDING_REPORT_H_
