// The costs of operations: the one answer that passes and the lowering share.
//
// A pass asks before it decides: for a kernel (one that is only thought of is a candidate,
// candidate.h), a collective, a transfer between memories, a loop.
// The answer is what the lowering will emit, timed by the functions that the simulated
// engines obey (models/timing), alone on its chip; Work says what it uses beside, so that
// what runs in company can be added up (Replay). Answers are remembered
// by structure: a hundred equal layers are one search.
//
// The room answers what an operation costs, or would cost if a pass made it; `CostModel` is its
// entry point. A pass without costs did nothing at first, in silence; now its context always has
// them.
#ifndef TPUSIM_WORKLOADS_COST_COST_MODEL_H_
#define TPUSIM_WORKLOADS_COST_COST_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/status_macros.h"
#include "configs/topology.h"
#include "configs/units.h"
#include "workloads/cost/candidate.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/hlo/ir/shape.h"
#include "workloads/kernels/tiling/kernel_library.h"
#include "workloads/target/target.h"

namespace tpusim::cost {

// The demand of an operation on the machine, and for how long.
//
// An operation first waits for what is not shared (a launch, hops), then uses
// resources: alone it takes `time` and, while it runs, `share` of what each of them
// can carry. A product that loads its operands at half of the HBM's rate has a share
// of 0.5 there; a transfer over one link has all of that link and some of HBM. Beside
// others it gets less and takes longer (Replay). Who gets how much of a resource
// that is full is a matter of bytes per second, not of shares.
//
// HBM, the links of a chip by direction, the way between the devices of a chip, and the ways
// to the host and back, which are those to other slices as well.
inline constexpr size_t kHbmResource = 0;
inline constexpr size_t kLinkResource = 1;  // + configs::Direction
inline constexpr size_t kDieResource = kLinkResource + configs::kDirections;
inline constexpr size_t kToHostResource = kDieResource + 1;
inline constexpr size_t kFromHostResource = kToHostResource + 1;
inline constexpr size_t kResources = kFromHostResource + 1;

using Shares = std::array<double, kResources>;  // 0 .. 1 each

struct Work {
  Picoseconds latency{0};
  Picoseconds time{0};
  Shares share = {};
  BytesPerSecond rate;  // alone, while it uses something; of each of its flows

  Picoseconds alone() const { return latency + time; }
};

// The cost of an array by how it lies in memory, whatever kernel has it.
//
// The quantities that kernels are made of: bytes with padding at the rate of HBM, registers
// over the VALUs, registers over the cross-lane units. A pass that asks before there are kernels
// adds up what it expects of them. In cycles of the chip.
class ArrayCosts {
 public:
  // The target must live as long.
  explicit ArrayCosts(const target::Target& target);

  double Memory(const hlo::Shape& array) const;      // once through HBM
  double Registers(const hlo::Shape& array) const;   // once through the VALUs
  double CrossLanes(const hlo::Shape& array) const;  // once through the cross-lane units
  // Returns the cost of crossing lanes or rows where `dims` are reduced.
  double Reduced(const hlo::Shape& array, const std::vector<int64_t>& dims) const;
  // A piece of these extents through HBM by itself, each of its rows in whole granules.
  double Piece(const hlo::Shape& array, const std::vector<int64_t>& extents) const;
  // Before a kernel computes: its launch, and its first DMA.
  double kernel() const { return kernel_; }

 private:
  const target::Target& target_;
  double bytes_per_cycle_;
  double register_, cross_lane_;  // of one register
  double kernel_;
};

// The groups of a collective, and how they lie in the torus.
struct CollectiveGroups {
  std::vector<std::vector<int64_t>> partitions;  // members in order; at least one group
  // The extents of the first group, if it is all of a line, plane or cube of the slice: in chips,
  // ascending, without those of one chip. Else empty.
  std::vector<int64_t> filled_extents;
};

// An interface, so that tests of passes can say what things cost.
class CostModel {
 public:
  virtual ~CostModel() = default;

  // Returns the work of an operation on the main stream; not of a while, a conditional or a call,
  // whose computations are added up. Error (no rule): what cannot be executed.
  virtual absl::StatusOr<Work> WorkOf(const hlo::Instruction& instruction) = 0;
  // Returns the work of the transfer that a start sets in motion.
  virtual absl::StatusOr<Work> TransferOf(const hlo::Instruction& start) = 0;
  // Returns how often a while loop runs its body, stated or derived. Error: neither.
  virtual absl::StatusOr<int64_t> TripsOf(const hlo::Instruction& loop) = 0;
  // A fusion or an operation that runs as a kernel: its launch, its time with that, and
  // the bytes it moves.
  virtual absl::StatusOr<kernels::KernelCost> KernelOf(const hlo::Instruction& kernel) = 0;

  // Returns a kernel as it costs with arrays in another memory. It lives as long as the model.
  virtual absl::StatusOr<kernels::PlaceableKernel*> PlaceableOf(const hlo::Instruction& kernel,
                                                                int64_t space) = 0;
  // Costs of kernels that could be made of the instructions of a graph, which must live as long.
  virtual std::unique_ptr<CandidateCosts> CandidatesOf(const KernelGraph& graph) = 0;

  // Returns the costs of arrays by how they lie, before there are kernels.
  virtual const ArrayCosts& arrays() = 0;
  // A copy of an array, by a kernel that does nothing else.
  virtual absl::StatusOr<Price> PriceOfCopy(const hlo::Shape& from, const hlo::Shape& to) = 0;

  // Returns the groups of a collective that has some.
  virtual absl::StatusOr<CollectiveGroups> GroupsOf(const hlo::Instruction& collective) = 0;

  absl::StatusOr<Picoseconds> KernelTime(const hlo::Instruction& kernel) {
    ASSIGN_OR_RETURN(const kernels::KernelCost cost, KernelOf(kernel));
    return cost.time;
  }
};

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_COST_MODEL_H_
