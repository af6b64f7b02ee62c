#include "workloads/collectives/plan.h"

#include <algorithm>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/timing/collective_timing.h"
#include "workloads/collectives/phases.h"

namespace tpusim::collectives {
namespace {

Bytes ChunkBytesOf(const CollectiveRequest& request, const Plan& plan, Bytes shard) {
  const int64_t parts = plan.halves * static_cast<int64_t>(plan.orders.size());
  return Bytes(RoundUp(CeilDiv(shard.value(), parts), std::max<int64_t>(1, request.element_bytes)));
}

// Returns the bytes of the chunks for all destinations, from one origin.
Bytes BytesOfDestinations(const Plan& plan, const Chunks& chunks,
                          const std::vector<Bytes>& chunk_bytes) {
  Bytes sum(0);
  Position offset = {};
  while (true) {
    Position at = {};
    for (size_t dimension = 0; dimension < plan.dimensions.size(); ++dimension) {
      at[dimension] =
          (chunks.destination[dimension].first + offset[dimension]) % plan.dimensions[dimension].n;
    }
    sum += chunk_bytes[NumberOf(plan, at)];
    size_t dimension = 0;
    while (dimension < plan.dimensions.size() &&
           ++offset[dimension] >= chunks.destination[dimension].count) {
      offset[dimension++] = 0;
    }
    if (dimension == plan.dimensions.size()) return sum;
  }
}

}  // namespace

int64_t Plan::members() const {
  int64_t product = 1;
  for (const Dimension& dimension : dimensions) product *= dimension.n;
  return product;
}

Dimension Plan::DimensionAt(size_t color, size_t phase) const {
  Dimension dimension = dimensions[orders[color][phase]];
  for (size_t i = 0; i < phase; ++i) dimension.closes_after &= ~(1U << orders[color][i]);
  if (dimension.closes_after != 0) dimension.shape = Dimension::Shape::kLine;
  return dimension;
}

void SetChunkBytes(const CollectiveRequest& request, Plan& plan) {
  plan.halves = 1;
  // One way there is nothing to halve.
  for (const Dimension& dimension : plan.dimensions) {
    if (plan.ways.empty()) plan.halves = std::max(plan.halves, dimension.halves());
  }
  const bool whole = plan.kind == CollectiveKind::kAllGather || plan.single_phase;
  Bytes shard =
      whole ? request.operand_bytes : Bytes(CeilDiv(request.operand_bytes.value(), plan.members()));
  // The closed form of parts that differ: as if all were like the largest.
  for (const Bytes part : request.parts) shard = std::max(shard, part);
  plan.chunk_bytes = ChunkBytesOf(request, plan, shard);
}

int64_t NumberOf(const Plan& plan, const Position& position) {
  int64_t number = 0;
  for (size_t dimension = 0; dimension < plan.dimensions.size(); ++dimension) {
    number = number * plan.dimensions[dimension].n + position[dimension];
  }
  return number;
}

std::vector<Bytes> ChunkBytesFor(const CollectiveRequest& request, const Plan& plan,
                                 const std::vector<Position>& positions) {
  std::vector<Bytes> chunk_bytes(request.parts.size(), Bytes(0));
  for (size_t member = 0; member < request.parts.size(); ++member) {
    chunk_bytes[NumberOf(plan, positions[member])] =
        ChunkBytesOf(request, plan, request.parts[member]);
  }
  return chunk_bytes;
}

DeviceSteps StepsAt(const Plan& plan, const Position& position) {
  DeviceSteps steps = PhasedSteps(plan, position);
  if (plan.single_phase) {
    for (DeviceStep& step : steps) {
      for (ChunkTransfer& transfer : step.sends) transfer.reduce = true;
      for (ChunkTransfer& transfer : step.receives) transfer.reduce = true;
    }
    return steps;
  }
  if (plan.kind == CollectiveKind::kReduceScatter) return Mirrored(steps);
  if (plan.kind == CollectiveKind::kAllReduce) {
    DeviceSteps both = Mirrored(steps);
    both.insert(both.end(), steps.begin(), steps.end());
    return both;
  }
  return steps;
}

Bytes BytesOf(const Plan& plan, const ChunkTransfer& transfer,
              const std::vector<Bytes>& chunk_bytes) {
  Bytes bytes(0);
  for (const Chunks& chunks : transfer.chunks) {
    if (chunk_bytes.empty()) {
      bytes += plan.chunk_bytes * CountOf(chunks, plan.halves);
      continue;
    }
    Chunks origins = chunks;
    for (int dimension = 0; dimension < kMaxDimensions; ++dimension)
      origins.destination[dimension] = {0, 1};
    bytes += BytesOfDestinations(plan, chunks, chunk_bytes) * CountOf(origins, plan.halves);
  }
  return bytes;
}

Picoseconds TimeOf(const Plan& plan, const configs::ChipParams& chip) {
  TPUSIM_CHECK(plan.kind != CollectiveKind::kPermute, "a permutation has no dimensions");
  const auto idle = [&chip](Picoseconds idles) {
    return ToTime(ToCycles(idles, chip.clock), chip.clock);
  };
  Picoseconds copies(0);
  for (const Bytes bytes : plan.reads) {
    copies += chip.dma.start_latency + TransferTime(bytes, configs::HbmRate(chip));
  }
  for (const Bytes bytes : plan.writes) {
    copies += chip.dma.write_start_latency + TransferTime(bytes, configs::HbmRate(chip));
  }
  Picoseconds time = copies * plan.spans + idle(plan.barriers) +
                     idle(plan.barriers + plan.refill) * (plan.spans - 1);
  const bool scatters = plan.kind == CollectiveKind::kReduceScatter;
  if (scatters || plan.kind == CollectiveKind::kAllReduce) {
    time += PhasedTime(plan, /*sums=*/true);
  }
  if (!scatters && !plan.single_phase) time += PhasedTime(plan, /*sums=*/false);
  return timing::LaunchTime(chip) + time;
}

}  // namespace tpusim::collectives
