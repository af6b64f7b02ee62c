// What operations cost: the one answer that passes and the lowering share.
//
// A pass asks before it decides: for a kernel (one that is only thought of is a candidate,
// candidate.h), a collective, a transfer between memories, a loop.
// The answer is what the lowering will emit, timed by the functions that the simulated
// engines obey (models/timing), alone on its chip; Work says what it uses beside, so that
// what runs in company can be added up (replay.h). Answers are remembered
// by structure: a hundred equal layers are one search.
#ifndef TPUSIM_WORKLOADS_COST_COST_MODEL_H_
#define TPUSIM_WORKLOADS_COST_COST_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/status_macros.h"
#include "configs/units.h"
#include "workloads/cost/array_costs.h"
#include "workloads/cost/candidate.h"
#include "workloads/cost/kernel_graph.h"
#include "workloads/cost/work.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/kernels/kernel_library.h"

namespace tpusim::cost {

// The groups of a collective, and how they lie in the torus.
struct CollectiveGroups {
  std::vector<std::vector<int64_t>> partitions;  // members in order; at least one group
  // Where the first group is all of a line, plane or cube of the slice: its extents in chips,
  // ascending, without those of one chip. Else empty.
  std::vector<int64_t> filled_extents;
};

// An interface, so that tests of passes can say what things cost.
class CostModel {
 public:
  virtual ~CostModel() = default;

  // Of the main stream. Not of a while, a conditional or a call, whose computations are
  // added up. Error (no rule): what cannot be executed.
  virtual absl::StatusOr<Work> WorkOf(const hlo::Instruction& instruction) = 0;
  // What a start sets in motion.
  virtual absl::StatusOr<Work> TransferOf(const hlo::Instruction& start) = 0;
  // How often a while loop runs its body, stated or derived. Error: neither.
  virtual absl::StatusOr<int64_t> TripsOf(const hlo::Instruction& loop) = 0;
  // A fusion or an operation that runs as a kernel: its launch, its time with that, and
  // the bytes it moves.
  virtual absl::StatusOr<kernels::KernelCost> KernelOf(const hlo::Instruction& kernel) = 0;

  // What it would cost with arrays of its own in another memory. Lives as long as the model.
  virtual absl::StatusOr<kernels::PlaceableKernel*> PlaceableOf(const hlo::Instruction& kernel,
                                                                int64_t space) = 0;
  // Costs of kernels that could be made of the instructions of a graph, which must live as long.
  virtual std::unique_ptr<CandidateCosts> CandidatesOf(const KernelGraph& graph) = 0;

  // What arrays cost by how they lie, before there are kernels.
  virtual const ArrayCosts& arrays() = 0;
  // A copy of an array, by a kernel that does nothing else.
  virtual absl::StatusOr<Price> PriceOfCopy(const hlo::Shape& from, const hlo::Shape& to) = 0;

  // Of a collective that has groups.
  virtual absl::StatusOr<CollectiveGroups> GroupsOf(const hlo::Instruction& collective) = 0;

  absl::StatusOr<Picoseconds> KernelTime(const hlo::Instruction& kernel) {
    ASSIGN_OR_RETURN(const kernels::KernelCost cost, KernelOf(kernel));
    return cost.time;
  }
};

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_COST_MODEL_H_
