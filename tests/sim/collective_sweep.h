// Every collective by every algorithm on every slice, small and large, starting together,
// beside a straggler, over a slow link, or at different times: what the simulator folds and
// fast-forwards is what it gets by executing every step on every device.
#ifndef TPUSIM_TESTS_SIM_COLLECTIVE_SWEEP_H_
#define TPUSIM_TESTS_SIM_COLLECTIVE_SWEEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/collectives/collective.h"

namespace tpusim::testing {

enum class Skew {
  kNone,
  kStraggler,  // one chip at 0.8 of its clock
  kStarts,     // devices begin up to a few hops later than others
  kSlowLink,   // one link at half its rate
};

struct SweepCase {
  std::string slice;      // "v5e-4x2"
  std::vector<int> axes;  // along which groups lie
  collectives::CollectiveKind kind = collectives::CollectiveKind::kAllReduce;
  std::string algorithm;
  int64_t bytes = 0;  // of the whole array of a group
  Skew skew = Skew::kNone;

  std::string Name() const;
};

// Returns the cases on slices of at most `most_devices` devices, in a fixed order, also such as
// have no algorithm of that name. Beyond 64 devices every algorithm is tried with one size and one
// skew on each group of each slice, another one each time; all-to-alls start together there.
std::vector<SweepCase> SweepCases(int64_t most_devices);

enum class SweepResult { kNoSuchAlgorithm, kSame, kDifferent };
// Simulates both ways in this process; `difference` says what differs.
SweepResult RunSweepCase(const SweepCase& sweep_case, std::string& difference);

}  // namespace tpusim::testing

#endif  // TPUSIM_TESTS_SIM_COLLECTIVE_SWEEP_H_
