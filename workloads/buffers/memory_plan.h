// A memory plan: where the arrays of a scheduled program lie in the memories that are planned
// (configs/memory.h), for how long, and how much that is at most.
//
// Which arrays share a buffer, and from when to when that is in use, are facts of the module
// (hlo/analysis/alias.h, live_intervals.h). The plan adds sizes and places: arguments are where the
// caller put them; what the program makes lies in one heap (heap.h), whose holes count:
// the peak of a memory is as much as the program needs of it. Whether a plan is right is asked of
// validate_plan.h, which knows nothing of how it was made.
//
// The room answers how much memory a scheduled program takes, and whose it is; `PlanBuffers` is its
// entry point. The sum of live bytes is not the peak: a heap has holes, as compiled programs show
// (heap.h). One room for all of memory was rejected, too: copies, spaces and rematerialization are
// passes, and what several of them ask is here.
#ifndef TPUSIM_WORKLOADS_BUFFERS_MEMORY_PLAN_H_
#define TPUSIM_WORKLOADS_BUFFERS_MEMORY_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/units.h"
#include "workloads/buffers/heap.h"
#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/analysis/live_intervals.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::buffers {

// Buffers are those in planned memories; offsets are in the heap in HBM, by buffer.
struct MemoryPlan : hlo::LiveIntervals {
  std::map<int64_t, Bytes> peaks;             // by memory space
  Bytes fragmentation{0};                     // of the peak in HBM: holes of the heap
  std::vector<Bytes> offsets;                 // arguments have none
  const hlo::Instruction* peak_at = nullptr;  // during which most of HBM is live
  std::vector<int32_t> live_at_peak;          // in HBM, largest first

  Bytes PeakOf(int64_t space) const {
    const auto peak = peaks.find(space);
    return peak == peaks.end() ? Bytes(0) : peak->second;
  }
  // Returns the peak of what is live in HBM, holes of the heap left aside.
  Bytes LivePeak() const { return PeakOf(hlo::kHbmSpace) - fragmentation; }
  // The moments at which every buffer is live; none for those in other memories.
  std::vector<HeapBuffer> LivesIn(int64_t space) const;
};

// The module must be scheduled, and live as long as what points to it is used.
MemoryPlan PlanBuffers(const hlo::Module& module, hlo::ModuleAliases& aliases,
                       const target::Target& target);
MemoryPlan PlanBuffers(const hlo::Module& module, const target::Target& target);

// Lists peaks by memory, then a line per buffer: where it is, how large, and from which instruction
// to which it lives.
std::string ToString(const MemoryPlan& plan);

}  // namespace tpusim::buffers

#endif  // TPUSIM_WORKLOADS_BUFFERS_MEMORY_PLAN_H_
