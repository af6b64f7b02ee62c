// From when to when every buffer of a scheduled module is in use.
//
// A buffer lives from the instruction that makes its array to the last one that needs it, under
// whatever name (alias.h), in the order of the schedule and through all that is called; arguments
// and results of the program live throughout. What a computation is given lives for as long as its
// caller needs it, and the rest of what it makes until it is over.
//
// A loop's next values take the places of the last ones, and results those of donated arguments,
// if nothing needs the old contents any more when the new ones are made. Otherwise they are made in
// a buffer of their own. In a module that the TPU compiler wrote, any result may take the place of
// an operand that is not needed any more, as it says (compiled.h).
//
// Time is counted in moments: how many buffers have come or gone.
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

// What an array takes: nothing, if it is in a memory that is not counted.
struct BufferSize {
  int64_t space = 0;  // the memory
  Bytes bytes{0};
};
using SizeOfArray = std::function<BufferSize(const Shape& array)>;

struct LiveBuffer {
  const Instruction* made_by = nullptr;
  int64_t leaf = 0;              // of the shape of that
  const Shape* array = nullptr;  // which that is
  Bytes bytes{0};
  int64_t space = 0;
  bool argument = false;  // of the program
  bool result = false;    // of the program, in no argument's buffer
  // The buffer in which it is made, if that is another's: it has no life of its own then.
  int32_t inside = -1;
  // It comes with the end of one moment and goes with that of another; arguments do not go.
  int64_t begin = 0, end = 0;
};

// An instruction makes, reads or changes what is in a buffer.
struct BufferUse {
  int32_t buffer = -1;
  const Instruction* by = nullptr;
  bool writes = false;
};

// Of a computation; of its last call, if it is called from several places.
struct ComputationLives {
  // By position in the schedule: what comes, what goes, and the moment between both.
  std::vector<std::vector<int32_t>> alloc_before, free_after;
  std::vector<int64_t> moments;
};

struct LiveIntervals {
  std::vector<LiveBuffer> buffers;  // callers' first
  std::vector<int32_t> arguments;   // of these
  std::vector<BufferUse> uses;      // in the order of execution; naming a value is none
  std::unordered_map<const Computation*, ComputationLives> computations;
  // By moment, the instruction with which it begins; null: it is before all of them.
  std::vector<const Instruction*> moments = {nullptr};
};

// The module must be scheduled, and live as long as what points to it is used.
LiveIntervals LiveIntervalsOf(const Module& module, ModuleAliases& aliases,
                              const SizeOfArray& size);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_LIVE_INTERVALS_H_
