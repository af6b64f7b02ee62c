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
//
// Arguments are where the caller put them; what the program makes lies in one heap (heap.h),
// whose holes count: the peak of a memory is as much as the program needs of it.
#ifndef TPUSIM_WORKLOADS_BUFFERS_MEMORY_PLAN_H_
#define TPUSIM_WORKLOADS_BUFFERS_MEMORY_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/buffers/heap.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::buffers {

struct Buffer {
  std::string value;  // HLO instruction that makes it
  std::string shape;
  Bytes bytes;        // padded
  int64_t space = 0;  // the memory that it is in, as in layouts
  const hlo::Instruction* made_by = nullptr;
  const hlo::Shape* array = nullptr;  // of that instruction's result
  int64_t leaf = 0;                   // which one
  bool argument = false;
  bool result = false;  // of the program, in no argument's buffer
  // From the alloc to the free, in the order of all of them; arguments throughout.
  int64_t begin = 0, end = 0;
};

// An instruction makes, reads or changes what is in a buffer.
struct BufferUse {
  int32_t buffer = -1;
  const hlo::Instruction* by = nullptr;
  bool writes = false;
};

// By position in a computation's schedule.
struct ComputationMemory {
  std::vector<std::vector<int32_t>> alloc_before;
  std::vector<std::vector<int32_t>> free_after;
  std::vector<int64_t> moments;  // of its execution, as lives of buffers count
};

struct MemoryPlan {
  std::vector<Buffer> buffers;
  std::vector<int32_t> arguments;  // buffers of the entry's parameters
  std::unordered_map<const hlo::Computation*, ComputationMemory> computations;
  std::map<int64_t, Bytes> peaks;             // by memory space
  Bytes fragmentation{0};                     // of the peak in HBM: holes of the heap
  std::vector<Bytes> offsets;                 // in the heap in HBM, by buffer; arguments have none
  const hlo::Instruction* peak_at = nullptr;  // during which most of HBM is live
  std::vector<int32_t> live_at_peak;          // in HBM, largest first
  std::vector<BufferUse> uses;                // in the order of execution; naming a value is none

  Bytes PeakOf(int64_t space) const {
    const auto peak = peaks.find(space);
    return peak == peaks.end() ? Bytes(0) : peak->second;
  }
};

// The module must be scheduled, and live as long as what points to it is used.
MemoryPlan PlanBuffers(const hlo::Module& module, const target::Target& target);

// Error: more than the chip's usable HBM or its CMEM, with how much, whose it is and the
// largest arrays.
absl::StatusOr<MemoryPlan> PlanMemory(const hlo::Module& module, const target::Target& target);

}  // namespace tpusim::buffers

#endif  // TPUSIM_WORKLOADS_BUFFERS_MEMORY_PLAN_H_
