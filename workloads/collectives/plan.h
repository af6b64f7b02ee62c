// A collective laid out on dimensions, and what follows from it: the steps of every
// member, the bytes of every transfer, and the closed form of the whole.
//
// Over several dimensions an all-gather goes dimension by dimension, each dimension carrying what
// the earlier ones brought. With k colors the data is cut into k parts that take the dimensions in
// rotated orders, so that every dimension carries a k-th at any time; with twice as many, half of
// them go round the rings one way and half the other. Colors go through their phases side by side
// (phases.h). A reduce-scatter is the mirror image, an all-reduce one after the other. What a
// kernel of the TPU compiler adds up goes span by span (sum_kernel.h).
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_PLAN_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/chip.h"
#include "configs/units.h"
#include "workloads/collectives/collective.h"
#include "workloads/collectives/dimension.h"

namespace tpusim::collectives {

struct Plan {
  CollectiveKind kind = CollectiveKind::kAllGather;
  // All-reduce as an all-gather of whole operands that all members add up: half
  // the hops, more bytes.
  bool single_phase = false;
  std::vector<Dimension> dimensions;
  std::vector<std::vector<int>>
      orders;             // of the dimensions, per color, as an all-gather takes them
  std::vector<Way> ways;  // per color; empty: kBoth for all
  Picoseconds hop_latency;
  BytesPerSecond memory;  // of a device, that all transfers share; 0: no limit
  // Copies on each device beside: the operand amid zeros before an all-reduce that
  // is in place of an all-gather, the part of the result after one that is in place of a
  // reduce-scatter.
  Bytes zeros_before, slice_after;
  // Equal parts of the data that are done one after the other (sum_kernel.h). Each has barriers
  // before it and copies between HBM and VMEM around it that nothing hides; all but one also take
  // `refill`, as their phases begin anew.
  int64_t spans = 1;
  Picoseconds barriers{0}, refill{0};
  std::vector<Bytes> reads, writes;
  bool in_vmem = false;  // all of a span is in VMEM while it travels
  // Unit of the transfers: one half (if shards are halved) of a color's part of one shard, rounded
  // up to whole elements so that all members do the same.
  Bytes chunk_bytes{0};
  int halves = 1;

  int64_t members() const;
  // The dimension that the color takes in this phase, as it is then.
  Dimension DimensionAt(size_t color, size_t phase) const;
  Way WayOf(size_t color) const { return ways.empty() ? Way::kBoth : ways[color]; }
};

// Fills in `chunk_bytes` and `halves`, given dimensions and orders.
void SetChunkBytes(const CollectiveRequest& request, Plan& plan);

DeviceSteps StepsAt(const Plan& plan, const Position& position);
// `chunk_bytes`, if not empty: the chunk for each destination, positions in row-major
// order, of an all-to-all with parts that differ.
Bytes BytesOf(const Plan& plan, const ChunkTransfer& transfer,
              const std::vector<Bytes>& chunk_bytes);
// Number of a position in that order.
int64_t NumberOf(const Plan& plan, const Position& position);
// Chunks for parts in the order of `positions`.
std::vector<Bytes> ChunkBytesFor(const CollectiveRequest& request, const Plan& plan,
                                 const std::vector<Position>& positions);
// Closed form of the plan with its launch, without the copies `zeros_before` and `slice_after`.
Picoseconds TimeOf(const Plan& plan, const configs::ChipParams& chip);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_PLAN_H_
