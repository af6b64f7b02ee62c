#include "workloads/collectives/sum_kernel.h"

#include <algorithm>
#include <cmath>

namespace tpusim::collectives {
namespace {

// number: assumed: spare_shards of the emitters (configs/compilers/collectives)
constexpr int64_t kPieces = 4;  // of a shard

// From the first chip of the slice to the farthest.
int64_t FarthestHops(const configs::Topology& topology) {
  int64_t hops = 0;
  for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
    const int64_t n = topology.shape()[axis];
    hops += topology.LinksAlong(axis) == configs::AxisLinks::kRing ? n / 2 : n - 1;
  }
  return hops;
}

// Returns the bytes of a part of an array that has so many bytes on each device.
Bytes BytesOfPart(SpanPart part, const Plan& plan, Bytes operand, int64_t shards) {
  switch (part) {
    case SpanPart::kSpan:
      return operand;
    case SpanPart::kShard:
      return Bytes(CeilDiv(operand.value(), shards));
    case SpanPart::kPiece:
      return Bytes(CeilDiv(operand.value(), shards * kPieces));
    case SpanPart::kResult:
      break;
  }
  const bool scatters = plan.kind == CollectiveKind::kReduceScatter;
  return scatters ? Bytes(CeilDiv(operand.value(), plan.members())) : operand;
}

}  // namespace

std::vector<std::string> SpanPartNames() { return {"span", "shard", "piece", "result"}; }

void UseKernel(const configs::Config& config, const CollectiveRequest& request,
               const SumKernel& kernel, Algorithm& candidate) {
  Plan& plan = candidate.plan;
  const Picoseconds before = TimeOf(plan, config.chip);
  Bytes operand = request.operand_bytes;
  if (request.kind == CollectiveKind::kAllGather) operand = operand * plan.members();
  int64_t shards = 1;  // of the phase that moves most
  int64_t hops = 1;
  for (const Dimension& dimension : plan.dimensions) {
    shards = std::max(shards, dimension.n);
    hops = std::max(hops, dimension.hops);
  }
  const double most =
      kernel.vmem_share * static_cast<double>(config.chip.vmem.scoped_bytes.value()) *
      static_cast<double>(shards) / static_cast<double>(shards + kernel.spare_shards);
  plan.spans =
      std::max<int64_t>(1, std::llround(std::ceil(static_cast<double>(operand.value()) / most)));
  if (plan.spans > 1) plan.spans = RoundUp(plan.spans, kernel.together);
  const auto hops_take = [&config](double crossed) {
    const auto hop = static_cast<double>(config.chip.ici.hop_latency.value());
    return Picoseconds(std::llround(hop * crossed));
  };
  const double signals =
      kernel.neighbour_barriers * static_cast<double>(hops) +
      kernel.slice_barriers * static_cast<double>(2 * FarthestHops(config.topology));
  // Launches were measured of all-gathers, which begin with a barrier of neighbours, too.
  const double launched = std::min(signals, static_cast<double>(hops));
  plan.barriers = hops_take(signals - launched);
  plan.refill = hops_take(launched + kernel.phases * static_cast<double>(hops));
  if (request.space == isa::MemorySpace::kHbm) {
    const Bytes span(CeilDiv(operand.value(), plan.spans));
    for (const SpanPart part : kernel.reads) {
      plan.reads.push_back(BytesOfPart(part, plan, span, shards));
      plan.in_vmem = plan.in_vmem || part == SpanPart::kSpan;
    }
    for (const SpanPart part : kernel.writes) {
      plan.writes.push_back(BytesOfPart(part, plan, span, shards));
    }
    if (plan.in_vmem) plan.memory = BytesPerSecond(0);
  }
  candidate.expected += TimeOf(plan, config.chip) - before;
}

}  // namespace tpusim::collectives
