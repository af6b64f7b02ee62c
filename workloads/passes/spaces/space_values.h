// The arrays that could live in another memory than HBM, and what that would gain.
//
// A value is an array that an instruction makes (or that enters the computation as an
// argument or an element of what a loop carries), under all the names that bitcasts and
// tuples give it. Kernels may write it to and read it from any memory that their windows
// reach, synchronous collectives from and to VMEM; everything else (asynchronous
// operations, loops, calls, custom calls, updates in place, results of the computation)
// has it in HBM.
#ifndef TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_VALUES_H_
#define TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_VALUES_H_

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/cost/cost_model.h"
#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/spaces/space_timeline.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

struct SpaceUse {
  hlo::Instruction* user = nullptr;
  size_t at = 0;
  bool by_windows = false;  // or by a collective that can; else it has to be in HBM
  kernels::PlaceableKernel* kernel = nullptr;  // where the user is one
  std::vector<size_t> arrays;                  // of the kernel, which are this value
  Picoseconds saved{0};                        // by reading it from the other memory
  Bytes read{0};                               // from HBM, if it is there
};

struct SpaceValue {
  hlo::Instruction* storage = nullptr;  // what makes it, or the element of what does
  // What renames it, operands first, and the name that each one renames.
  std::vector<hlo::Instruction*> names;
  std::unordered_map<const hlo::Instruction*, hlo::Instruction*> renames;
  SpaceTimeline* timeline = nullptr;
  size_t made_at = 0;
  bool made_by_windows = false;
  kernels::PlaceableKernel* maker = nullptr;  // where a kernel makes it, as its array
  size_t array = 0;
  Picoseconds saved_by_making{0};
  std::vector<SpaceUse> uses;  // in order of execution, one per instruction
  bool lives_out = false;
  Bytes bytes{0};

  // What would be saved in all, counted as often as the loops around it say.
  double Benefit() const;
};

// Those of a computation that are worth looking at, in the order of the schedule. `space`
// is where they could go. Error: a kernel without a rule.
absl::StatusOr<std::vector<SpaceValue>> SpaceValuesOf(SpaceTimeline& timeline,
                                                      const hlo::AliasAnalysis& aliases,
                                                      const target::Target& target,
                                                      cost::CostModel& cost, int64_t space);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SPACES_SPACE_VALUES_H_
