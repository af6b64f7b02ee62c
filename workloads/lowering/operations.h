// Prepares the operations of a module, before they are put together to the programs of devices.
#ifndef TPUSIM_WORKLOADS_LOWERING_OPERATIONS_H_
#define TPUSIM_WORKLOADS_LOWERING_OPERATIONS_H_

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "configs/units.h"
#include "models/isa/program.h"
#include "models/timing/kernel_timing.h"
#include "workloads/collectives/collective.h"
#include "workloads/hlo/analysis/branch_choice.h"
#include "workloads/hlo/analysis/execution.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::lowering {

// A collective, or a transfer beside the main stream.
struct Collective {
  collectives::LoweredCollective lowered;
  int32_t op = -1;  // label on the collective stream
  int32_t token = -1;
  isa::StreamId stream;
};

struct Branch {
  const hlo::Instruction* conditional = nullptr;
  std::vector<int32_t> taken;  // by partition
};

// The next free name of each kind.
using NextNames = std::array<int32_t, isa::kNameKinds>;

struct Operation {
  hlo::Execution what = hlo::Execution::kNothing;
  NextNames names{};
  int32_t op = -1;          // label on the main stream
  int32_t collective = -1;  // index into Operations::collectives
  int32_t branch = -1;      // index into Operations::branches
  int64_t trips = 0;
  const hlo::Instruction* turns = nullptr;  // of a loop: the conditional in Operations::turns
  Picoseconds time{0};                      // of itself, without what it calls
  isa::Kernel kernel;
  isa::Body transfer;
  timing::KernelTraffic traffic;
};

// An instruction with what is allocated for it and freed after it.
struct Scheduled {
  const hlo::Instruction* instruction = nullptr;
  const std::vector<int32_t>& allocated;
  const std::vector<int32_t>& freed;
};

struct Operations {
  std::unordered_map<const hlo::Instruction*, Operation> of;
  std::vector<Collective> collectives;
  std::vector<Branch> branches;
  // Conditionals whose branches a loop takes in turns.
  std::unordered_map<const hlo::Instruction*, hlo::LoopInTurns> turns;
  // The next free names before a computation and after it.
  std::unordered_map<const hlo::Computation*, std::pair<NextNames, NextNames>> names;
};

// Adds up FLOPs and bytes of all that the entry runs, loops counted. Error: they are more than can
// be counted.
absl::Status AddTotals(const hlo::Computation& entry, const Operations& operations,
                       const target::Target& target, isa::ProgramInfo& info);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_OPERATIONS_H_
