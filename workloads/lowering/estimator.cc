// The scheduler's cost model: the lowering's own kernels and collectives, timed
// by the functions that the simulated engines use too.

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "models/timing/kernel_timing.h"
#include "models/timing/memory_bytes.h"
#include "workloads/lowering/instruction_class.h"
#include "workloads/lowering/lower.h"
#include "workloads/lowering/transfers.h"

namespace tpusim::lowering {
namespace {

using passes::Work;

// How much of a resource that is busy for `busy` alone.
double ShareOf(Picoseconds busy, Picoseconds time) {
  return time > Picoseconds(0) ? std::min(1.0, Ratio(busy, time)) : 0;
}

BytesPerSecond RateOf(Bytes bytes, Picoseconds time) {
  return time > Picoseconds(0)
             ? BytesPerSecond(static_cast<double>(bytes.value()) / ToSeconds(time))
             : BytesPerSecond(0);
}

Work WorkOfKernel(const configs::ChipParams& chip, const kernels::KernelLibrary::Cost& cost) {
  Work work;
  work.latency = std::min(cost.time, cost.launch + chip.dma.start_latency);
  work.time = cost.time - work.latency;
  const Bytes bytes = cost.traffic.read + cost.traffic.written;
  work.share[passes::kHbmResource] = ShareOf(TransferTime(bytes, timing::HbmRate(chip)), work.time);
  work.rate = RateOf(bytes, work.time);
  return work;
}

Work WorkOfCollective(const collectives::CollectiveUse& use) {
  Work work;
  work.latency = use.latency;
  work.time = use.time;
  work.rate = use.rate;
  work.share[passes::kHbmResource] = ShareOf(use.hbm, work.time);
  for (size_t d = 0; d < use.links.size(); ++d) {
    work.share[passes::kLinkResource + d] = ShareOf(use.links[d], work.time);
  }
  work.share[passes::kDieResource] = ShareOf(use.die, work.time);
  work.share[passes::kHostResource] = ShareOf(use.host, work.time);
  return work;
}

// Between memories of a device, or of the host.
Work WorkOfTransfer(const configs::ChipParams& chip, const isa::Body& transfer) {
  Work work;
  Picoseconds hbm(0), host(0);
  Bytes bytes(0);
  for (const isa::Instruction& step : transfer) {
    if (const auto* dma = std::get_if<isa::Dma>(&step.kind)) {
      work.latency += chip.dma.start_latency;
      hbm += TransferTime(timing::TouchedBy(*dma).hbm, timing::HbmRate(chip));
      bytes += dma->bytes;
    } else if (const auto* move = std::get_if<isa::HostDma>(&step.kind)) {
      work.latency += chip.host.pcie_latency;
      hbm += TransferTime(move->bytes, timing::HbmRate(chip));
      host += TransferTime(move->bytes, chip.host.pcie_bytes_per_second);
      bytes += move->bytes;
    }
  }
  work.time = TimeOfTransfer(chip, transfer) - work.latency;
  work.share[passes::kHbmResource] = ShareOf(hbm, work.time);
  work.share[passes::kHostResource] = ShareOf(host, work.time);
  work.rate = RateOf(bytes, work.time);
  return work;
}

Work Alone(Picoseconds time) {
  Work work;
  work.time = time;
  return work;
}

}  // namespace

passes::CostEstimator MakeEstimator(
    const target::Target& target, kernels::KernelLibrary& kernels, CollectiveLibrary& collectives,
    std::function<absl::StatusOr<int64_t>(const hlo::Instruction&)> trips) {
  passes::CostEstimator estimator;
  estimator.trips = std::move(trips);
  const auto collective = [&collectives](const hlo::Instruction& i) -> absl::StatusOr<Work> {
    ASSIGN_OR_RETURN(const collectives::CollectiveUse use, collectives.Estimate(i));
    return WorkOfCollective(use);
  };
  const auto move = [&target](const hlo::Instruction& i) -> absl::StatusOr<Work> {
    ASSIGN_OR_RETURN(const isa::Body transfer, TransferOf(i, target));
    return WorkOfTransfer(target.chip(), transfer);
  };
  estimator.work = [&target, &kernels, collective,
                    move](const hlo::Instruction& i) -> absl::StatusOr<Work> {
    ASSIGN_OR_RETURN(const InstructionClass c, Classify(i));
    switch (c) {
      case InstructionClass::kScalar:
        return Alone(
            ToTime(timing::TimeBlock(target.chip(), ScalarBlock(i)).total, target.chip().clock));
      case InstructionClass::kKernel: {
        ASSIGN_OR_RETURN(const kernels::KernelLibrary::Cost cost, kernels.CostOf(i));
        return WorkOfKernel(target.chip(), cost);
      }
      case InstructionClass::kCollective:
        return collective(i);
      case InstructionClass::kTransfer:
        return move(i);
      case InstructionClass::kNothing:
      case InstructionClass::kStart:  // what it starts runs on another stream
      case InstructionClass::kCopyStart:
      case InstructionClass::kDone:
        return Work{};
      case InstructionClass::kLoop:
      case InstructionClass::kBranch:
      case InstructionClass::kCall:
        break;
    }
    TPUSIM_CHECK(false, "the scheduler adds up called computations itself");
  };
  estimator.transfer = [collective, move](const hlo::Instruction& start) -> absl::StatusOr<Work> {
    ASSIGN_OR_RETURN(const InstructionClass c, Classify(start));
    return c == InstructionClass::kCopyStart ? move(start) : collective(start);
  };
  return estimator;
}

}  // namespace tpusim::lowering
