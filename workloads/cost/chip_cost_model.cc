#include "workloads/cost/chip_cost_model.h"

#include <algorithm>
#include <cmath>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/timing/kernel_timing.h"
#include "models/timing/memory_bytes.h"
#include "workloads/cost/transfers.h"
#include "workloads/hlo/analysis/execution.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/kernels/vector_work/vector_cost.h"

namespace tpusim::cost {
namespace {

// Returns the share of a resource that work takes which keeps it busy for `busy` alone.
double ShareOf(Picoseconds busy, Picoseconds time) {
  return time > Picoseconds(0) ? std::min(1.0, Ratio(busy, time)) : 0;
}

BytesPerSecond RateOf(Bytes bytes, Picoseconds time) {
  return time > Picoseconds(0)
             ? BytesPerSecond(static_cast<double>(bytes.value()) / ToSeconds(time))
             : BytesPerSecond(0);
}

Work WorkOfUse(const collectives::CollectiveUse& use) {
  Work work;
  work.latency = use.latency;
  work.time = use.time;
  work.rate = use.rate;
  work.share[kHbmResource] = ShareOf(use.hbm, work.time);
  for (size_t d = 0; d < use.links.size(); ++d) {
    work.share[kLinkResource + d] = ShareOf(use.links[d], work.time);
  }
  work.share[kDieResource] = ShareOf(use.die, work.time);
  work.share[kToHostResource] = work.share[kFromHostResource] = ShareOf(use.host, work.time);
  return work;
}

// Between memories of a device, or of the host.
Work WorkOfTransfer(const configs::ChipParams& chip, const isa::Body& transfer) {
  Work work;
  Picoseconds hbm(0), to_host(0), from_host(0);
  Bytes bytes(0);
  for (const isa::Instruction& step : transfer) {
    if (const auto* dma = std::get_if<isa::Dma>(&step.kind)) {
      work.latency += chip.dma.start_latency;
      hbm += TransferTime(timing::AccessedBy(*dma).hbm(), configs::HbmRate(chip));
      bytes += dma->bytes;
    } else if (const auto* move = std::get_if<isa::HostDma>(&step.kind)) {
      work.latency += chip.host.pcie_latency;
      hbm += TransferTime(move->bytes, configs::HbmRate(chip));
      (move->to_host ? to_host : from_host) +=
          TransferTime(move->bytes, chip.host.pcie_bytes_per_second);
      bytes += move->bytes;
    }
  }
  work.time = TimeOfTransfer(chip, transfer) - work.latency;
  work.share[kHbmResource] = ShareOf(hbm, work.time);
  work.share[kToHostResource] = ShareOf(to_host, work.time);
  work.share[kFromHostResource] = ShareOf(from_host, work.time);
  work.rate = RateOf(bytes, work.time);
  return work;
}

Work Alone(Picoseconds time) {
  Work work;
  work.time = time;
  return work;
}

}  // namespace

Work WorkOfKernel(const configs::ChipParams& chip, const kernels::KernelCost& kernel) {
  Work work;
  const Bytes bytes = kernel.moved();
  const Picoseconds first = bytes > Bytes(0) ? chip.dma.start_latency : Picoseconds(0);
  work.latency = std::min(kernel.time, kernel.launch + first);
  work.time = kernel.time - work.latency;
  work.share[kHbmResource] = ShareOf(TransferTime(bytes, configs::HbmRate(chip)), work.time);
  work.rate = RateOf(bytes, work.time);
  return work;
}

spmd::ReshardLatency LatencyOfReshards(const configs::ChipParams& chip) {
  const auto carried = [&chip](Picoseconds time) {
    return Bytes(std::llround(ToSeconds(time) * chip.ici.link_bytes_per_second.value()));
  };
  return {carried(chip.ici.launch), carried(chip.ici.hop_latency)};
}

absl::StatusOr<Work> ChipCostModel::WorkOfCollective(const hlo::Instruction& collective) {
  ASSIGN_OR_RETURN(const CollectiveDecisions::KeyedDecision* entry, collectives_->Find(collective));
  return WorkOfUse(collectives::UseOf(*entry->decision));
}

absl::StatusOr<Work> ChipCostModel::WorkOfCopy(const hlo::Instruction& copy) {
  ASSIGN_OR_RETURN(const isa::Body transfer, cost::TransferOf(copy, target_));
  return WorkOfTransfer(target_.chip(), transfer);
}

absl::StatusOr<Work> ChipCostModel::WorkOf(const hlo::Instruction& i) {
  ASSIGN_OR_RETURN(const hlo::Execution execution, hlo::ExecutionOf(i));
  switch (execution) {
    case hlo::Execution::kScalar:
      return Alone(ToTime(timing::TimeBlock(target_.chip(), kernels::ScalarBlock(i, target_)).total,
                          target_.chip().clock));
    case hlo::Execution::kKernel: {
      ASSIGN_OR_RETURN(const kernels::KernelCost cost, kernels_->CostOf(i));
      return WorkOfKernel(target_.chip(), cost);
    }
    case hlo::Execution::kCollective:
      return WorkOfCollective(i);
    case hlo::Execution::kTransfer:
      return WorkOfCopy(i);
    case hlo::Execution::kNothing:
    case hlo::Execution::kStart:  // what it starts runs on another stream
    case hlo::Execution::kCopyStart:
    case hlo::Execution::kDone:
      return Work{};
    case hlo::Execution::kLoop:
    case hlo::Execution::kBranch:
    case hlo::Execution::kCall:
      break;
  }
  TPUSIM_CHECK(false, "called computations are added up by who asks");
}

absl::StatusOr<Work> ChipCostModel::TransferOf(const hlo::Instruction& start) {
  ASSIGN_OR_RETURN(const hlo::Execution execution, hlo::ExecutionOf(start));
  return execution == hlo::Execution::kCopyStart ? WorkOfCopy(start) : WorkOfCollective(start);
}

absl::StatusOr<CollectiveGroups> ChipCostModel::GroupsOf(const hlo::Instruction& collective) {
  const std::vector<int64_t>& devices = collectives_->device_of_partition();
  CollectiveGroups groups;
  ASSIGN_OR_RETURN(groups.partitions,
                   hlo::ReplicaGroups(collective, static_cast<int64_t>(devices.size())));
  groups.filled_extents = collectives_->FilledExtents(groups.partitions[0]);
  return groups;
}

}  // namespace tpusim::cost
