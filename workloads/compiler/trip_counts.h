// Trip counts of loops whose length the program does not tell.
//
// The count of a `while` is, in this order: an override for it by name, what its
// own text tells (hlo::TripCount), an override by a glob. A glob such as '*=4' is
// thus for the loops that depend on data and leaves all others as they are. The user's
// statements come before those of the workload file.
//
// Loops of JAX's linear algebra whose count is data have one that is assumed where nothing
// states another (hlo/rules/assumed_trips.h), and so have the sweeps of its Eigh calls.
//
// Kernels have loops as well that HLO does not show (tpusim::KernelLoop); the same
// statements give their counts. Of some it is known how often they run at most: that counts
// without a statement, and no glob goes beyond it.
#ifndef TPUSIM_WORKLOADS_COMPILER_TRIP_COUNTS_H_
#define TPUSIM_WORKLOADS_COMPILER_TRIP_COUNTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/record.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/kernel_cost.pb.h"
#include "workloads/workload.pb.h"

namespace tpusim::compiler {

// A loop's name or a glob, and how often such a loop runs; the first match wins.
using TripCountOverrides = std::vector<std::pair<std::string, int64_t>>;

class TripCounts {
 public:
  TripCounts(const tpusim::Workload& workload, TripCountOverrides overrides);

  // Returns the count of a loop, or the sweeps of an Eigh call. Error: nothing states it, it
  // depends on data and none is assumed; names the option.
  absl::StatusOr<int64_t> operator()(const hlo::Instruction& loop);

  // The count of a loop inside a kernel. nullopt: it is neither stated nor bounded.
  std::optional<int64_t> OfKernelLoop(const tpusim::KernelLoop& loop);

  // A record for every loop whose count was taken from a statement or is assumed.
  const std::vector<Record>& assumptions() const { return assumptions_; }

  // A warning for every statement that no loop was asked about, or that only matches
  // loops whose counts are known without it.
  std::vector<Record> Unused() const;

 private:
  struct Override {
    std::string pattern;
    int64_t count = 0;
    bool used = false;

    // A glob is about loops in general, and of none means more than it can run; a name does.
    bool GoesBeyond(const std::string& loop, std::optional<int64_t> most) const;
  };

  // The first statement of the loop's name; with `globs`, the first that matches it.
  Override* Find(const std::string& name, bool globs);

  std::vector<Override> overrides_;
  std::map<std::string, int64_t> known_;  // counts by loop
  std::set<std::string> derived_;         // loops that tell their own count
  std::vector<Record> assumptions_;
};

}  // namespace tpusim::compiler

#endif  // TPUSIM_WORKLOADS_COMPILER_TRIP_COUNTS_H_
