// Buffers: where values live in the memories that are planned (target/memory_space.h), for
// how long, and how much that is at most.
//
// Every array value has a buffer. Tuples and bitcasts share their operands'
// buffers, a loop runs in the buffers of its initial values (what its body makes
// anew takes a second buffer until the iteration ends, unless the last value is of no use by then),
// an update in place keeps
// its operand's, and a result may take the buffer of a donated argument. A buffer lives from the
// instruction that makes it to the last one that reads it, in schedule order; arguments and results
// live throughout.
#ifndef TPUSIM_WORKLOADS_PASSES_MEMORY_H_
#define TPUSIM_WORKLOADS_PASSES_MEMORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

struct Buffer {
  std::string value;  // HLO instruction that makes it
  std::string shape;
  Bytes bytes;  // padded
  int64_t space = 0;  // the memory that it is in, as in layouts
};

// By position in a computation's schedule.
struct ComputationMemory {
  std::vector<std::vector<int32_t>> alloc_before;
  std::vector<std::vector<int32_t>> free_after;
};

struct MemoryPlan {
  std::vector<Buffer> buffers;
  std::vector<int32_t> arguments;  // buffers of the entry's parameters
  std::unordered_map<const hlo::Computation*, ComputationMemory> computations;
  std::map<int64_t, Bytes> peaks;     // by memory space
  std::vector<int32_t> live_at_peak;  // in HBM, largest first

  Bytes PeakOf(int64_t space) const {
    const auto peak = peaks.find(space);
    return peak == peaks.end() ? Bytes(0) : peak->second;
  }
};

// The module must be scheduled. Error: more than the chip's usable HBM or its CMEM,
// with how much and the largest buffers.
absl::StatusOr<MemoryPlan> PlanMemory(const hlo::Module& module, const target::Target& target);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_MEMORY_H_
