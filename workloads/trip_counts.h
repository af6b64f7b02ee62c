// How often each while loop runs: what the user states wins, then what the
// workload says, then what the loop itself tells (hlo::TripCount).
#ifndef TPUSIM_WORKLOADS_TRIP_COUNTS_H_
#define TPUSIM_WORKLOADS_TRIP_COUNTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir.h"
#include "workloads/workload.pb.h"

namespace tpusim::workloads {

// A loop's name or a glob, and how often such a loop runs; the first match wins.
using StatedTripCounts = std::vector<std::pair<std::string, int64_t>>;

class TripCounts {
 public:
  TripCounts(const tpusim::Workload& workload, StatedTripCounts stated);

  // Error: nothing states the count and it depends on data; names the option.
  absl::StatusOr<int64_t> operator()(const hlo::Instruction& loop);

  // A line for every loop whose count was taken from a statement.
  const std::vector<std::string>& assumptions() const { return assumptions_; }

  // A warning for every statement that no loop was asked about.
  std::vector<std::string> Unused() const;

 private:
  StatedTripCounts stated_;
  std::map<std::string, int64_t> known_;
  std::vector<std::string> assumptions_;
};

}  // namespace tpusim::workloads

#endif  // TPUSIM_WORKLOADS_TRIP_COUNTS_H_
