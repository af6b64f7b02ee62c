// Computes the live interval of every buffer of a scheduled module.
//
// A buffer lives from the instruction that makes its array to the last one that needs it, under any
// name (alias.h), in the order of the schedule and through all calls; arguments and results of the
// program live throughout. The arguments of a computation live for as long as its caller needs
// them, and its results until it ends. What the program returns in HBM in buffers of its own is
// there before the program begins: the runtime hands over arguments and results, and the compiler's
// peak of memory is arguments + results + temporaries. Temporaries that are over before a result is
// made lie in its buffer if they fit: conv_stem_7x7 of libtpu 0.0.42 states 0 bytes of temporaries
// and has a copy of 49 MiB in HBM, beside a result of 56 MiB that comes later. Not so what
// collectives make, which other chips write (sharded_gather_contracted_large on v7x).
//
// The next values of a loop take the buffers of the last ones, and results those of donated
// arguments, if nothing needs the old contents any more when the new ones are made; otherwise they
// are made in buffers of their own. In a module that the TPU compiler wrote, any result may take
// the buffer of an operand that is not needed any more, as it states (compiled.h).
//
// Time is counted in moments: how many buffers have been allocated or freed before.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_LIVE_INTERVALS_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_LIVE_INTERVALS_H_

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "configs/units.h"
#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The bytes that an array takes in a memory; 0 if that memory is not counted.
struct BufferSize {
  int64_t space = 0;  // the memory
  Bytes bytes{0};
};
using SizeOfArray = std::function<BufferSize(const Shape& array)>;

struct LiveBuffer {
  const Instruction* made_by = nullptr;
  int64_t leaf = 0;              // of the shape of `made_by`
  const Shape* array = nullptr;  // the shape of that leaf
  Bytes bytes{0};
  int64_t space = 0;
  bool argument = false;  // of the program
  bool result = false;    // of the program, in no argument's buffer
  // The buffer in which it is made if it has none of its own; then it has no interval either.
  int32_t inside = -1;
  // It is allocated at the end of moment `begin` and freed at that of `end`; arguments stay.
  int64_t begin = 0, end = 0;
};

// An instruction makes, reads or changes what is in a buffer.
struct BufferUse {
  int32_t buffer = -1;
  const Instruction* by = nullptr;
  bool writes = false;
};

// The allocations of a computation; those of its last call if it has several callers.
struct ComputationLives {
  // The buffers that are allocated before and freed after each position of the schedule, and the
  // moment between both.
  std::vector<std::vector<int32_t>> alloc_before, free_after;
  std::vector<int64_t> moments;
};

struct LiveIntervals {
  std::vector<LiveBuffer> buffers;  // callers' first
  std::vector<int32_t> arguments;   // of these
  std::vector<BufferUse> uses;      // in the order of execution; naming a value is none
  std::unordered_map<const Computation*, ComputationLives> computations;
  // The instruction with which each moment begins; null for the moment before all of them.
  std::vector<const Instruction*> moments = {nullptr};
};

// The module must be scheduled, and must outlive the result.
LiveIntervals LiveIntervalsOf(const Module& module, ModuleAliases& aliases,
                              const SizeOfArray& size);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_LIVE_INTERVALS_H_
