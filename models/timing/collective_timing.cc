#include "models/timing/collective_timing.h"

#include <algorithm>

#include "configs/vector_register.h"
#include "models/timing/kernel_timing.h"

namespace tpusim::timing {
namespace {

Picoseconds Seconds(double bytes, BytesPerSecond rate) { return FromSeconds(bytes / rate.value()); }

double Value(Bytes bytes) { return static_cast<double>(bytes.value()); }

// The larger of what all links and what the links of the poorest member allow.
double WorstOf(double total, double per_member, const GroupWires& wires) {
  double worst = 0;
  if (wires.links > 0) worst = total / static_cast<double>(wires.links);
  if (wires.fewest_links > 0) {
    worst = std::max(worst, per_member / static_cast<double>(wires.fewest_links));
  }
  return worst;
}

}  // namespace

BytesPerSecond EffectiveLinkRate(const configs::IciParams& ici, configs::AxisLinks links) {
  double efficiency = ici.wrapped_efficiency;
  if (links == configs::AxisLinks::kLine) efficiency = ici.unwrapped_efficiency;
  if (links == configs::AxisLinks::kPair) efficiency = ici.pair_efficiency;
  return ici.link_bytes_per_second * efficiency;
}

Picoseconds LaunchTime(const configs::ChipParams& chip) {
  return ToTime(ToCycles(chip.ici.launch, chip.clock), chip.clock);
}

Picoseconds DcnLatency(const configs::HostParams& host) {
  return host.pcie_latency * 2 + host.dcn_latency;
}

Picoseconds RouteLatency(const configs::ChipParams& chip, int64_t device,
                         const isa::RouteEnd& route) {
  if (route.dcn) return DcnLatency(chip.host);
  return chip.ici.hop_latency * isa::Crossings(device, route);
}

Picoseconds SwitchedExchange(Bytes shard, const DimensionTiming& dimension) {
  return TransferTime(shard * (dimension.n - 1), dimension.rate) + dimension.step_latency;
}

Picoseconds RingAllGather(Bytes shard, const DimensionTiming& dimension) {
  return Seconds(Value(shard) * static_cast<double>(dimension.n - 1) / 2, dimension.rate) +
         dimension.step_latency * (dimension.n / 2);
}

Picoseconds LineAllGather(Bytes shard, const DimensionTiming& dimension) {
  return Seconds(Value(shard) * static_cast<double>(dimension.n - 1), dimension.rate) +
         dimension.step_latency * (dimension.n - 1);
}

Picoseconds OneWayRingAllGather(Bytes shard, const DimensionTiming& dimension) {
  return LineAllGather(shard, dimension);
}

Picoseconds RingAllToAll(Bytes block, const DimensionTiming& dimension) {
  const int64_t square =
      dimension.n % 2 == 0 ? dimension.n * dimension.n : dimension.n * dimension.n - 1;
  return Seconds(Value(block) * static_cast<double>(square) / 8, dimension.rate) +
         dimension.step_latency * (dimension.n / 2);
}

Picoseconds LineAllToAll(Bytes block, const DimensionTiming& dimension) {
  const int64_t crossing = (dimension.n / 2) * (dimension.n - dimension.n / 2);
  return Seconds(Value(block) * static_cast<double>(crossing), dimension.rate) +
         dimension.step_latency * (dimension.n - 1);
}

Picoseconds DirectTransfers(Bytes busiest, BytesPerSecond rate, Picoseconds latency) {
  return TransferTime(busiest, rate) + latency;
}

Picoseconds LocalCopy(const configs::ChipParams& chip, isa::MemorySpace space, Bytes bytes,
                      int64_t passes) {
  if (space == isa::MemorySpace::kVmem) {
    const configs::VpuParams& vpu = chip.vpu;
    const int64_t per_cycle = chip.CoresPerDevice() * std::min(vpu.load_slots, vpu.store_slots) *
                              configs::RegisterBytes(vpu);
    return chip.dma.start_latency +
           TransferTime(bytes, BytesPerSecond(static_cast<double>(per_cycle) * chip.clock.value()));
  }
  return chip.dma.start_latency + TransferTime(bytes * passes, HbmRate(chip));
}

Picoseconds AllReduceBound(Bytes v, const GroupWires& wires) {
  if (wires.n < 2) return Picoseconds(0);
  double worst = WorstOf(2.0 * static_cast<double>(wires.n - 1) * Value(v), Value(v), wires);
  for (const GroupCut& cut : wires.cuts) {
    worst = std::max(worst, Value(v) / static_cast<double>(cut.links));
  }
  return Seconds(worst, wires.nominal);
}

Picoseconds AllGatherBound(Bytes v, const GroupWires& wires) {
  if (wires.n < 2) return Picoseconds(0);
  const double n = static_cast<double>(wires.n);
  double worst = WorstOf((n - 1) * Value(v), (n - 1) / n * Value(v), wires);
  for (const GroupCut& cut : wires.cuts) {
    const double lacking = (n - static_cast<double>(cut.members)) / n * Value(v);
    worst = std::max(worst, lacking / static_cast<double>(cut.links));
  }
  return Seconds(worst, wires.nominal);
}

Picoseconds ReduceScatterBound(Bytes v, const GroupWires& wires) {
  return AllGatherBound(v, wires);
}

Picoseconds AllToAllBound(Bytes operand, const GroupWires& wires) {
  if (wires.n < 2) return Picoseconds(0);
  const double n = static_cast<double>(wires.n);
  const double block = Value(operand) / n;
  // Without known distances every pair is at least one hop apart.
  const double hops =
      wires.total_distance > 0 ? static_cast<double>(wires.total_distance) : n * (n - 1);
  double worst = WorstOf(hops * block, (n - 1) * block, wires);
  for (const GroupCut& cut : wires.cuts) {
    const double pairs = static_cast<double>(cut.members) * (n - static_cast<double>(cut.members));
    worst = std::max(worst, pairs * block / static_cast<double>(cut.links));
  }
  return Seconds(worst, wires.nominal);
}

Picoseconds PermuteBound(Bytes message, int64_t fewest_routes, int64_t total_hops, int64_t links,
                         BytesPerSecond nominal) {
  if (total_hops == 0) return Picoseconds(0);
  const double one = fewest_routes > 0 ? Value(message) / static_cast<double>(fewest_routes) : 0;
  const double all = Value(message) * static_cast<double>(total_hops) / static_cast<double>(links);
  return Seconds(std::max(one, all), nominal);
}

}  // namespace tpusim::timing
