// The scheduler's cost model: the lowering's own kernels and collectives, timed
// by the functions that the simulated engines use too.

#include <utility>

#include "configs/status_macros.h"
#include "models/timing/kernel_timing.h"
#include "workloads/lowering/instruction_class.h"
#include "workloads/lowering/lower.h"
#include "workloads/lowering/transfers.h"

namespace tpusim::lowering {

passes::LatencyEstimator MakeEstimator(
    const passes::Target& target, KernelLibrary& kernels, CollectiveLibrary& collectives,
    std::function<absl::StatusOr<int64_t>(const hlo::Instruction&)> trips) {
  passes::LatencyEstimator estimator;
  estimator.trips = std::move(trips);
  estimator.busy = [&target, &kernels,
                    &collectives](const hlo::Instruction& i) -> absl::StatusOr<Picoseconds> {
    ASSIGN_OR_RETURN(const InstructionClass c, Classify(i));
    switch (c) {
      case InstructionClass::kScalar:
        return ToTime(timing::TimeBlock(target.chip(), ScalarBlock(i)).total, target.chip().clock);
      case InstructionClass::kKernel:
        return kernels.TimeOf(i);
      case InstructionClass::kCollective: {
        ASSIGN_OR_RETURN(const isa::CollectiveInfo info, collectives.Estimate(i));
        return info.expected;
      }
      case InstructionClass::kTransfer: {
        ASSIGN_OR_RETURN(const isa::Body transfer, TransferOf(i, target));
        return TimeOfTransfer(target.chip(), transfer);
      }
      case InstructionClass::kNothing:
      case InstructionClass::kStart:  // what it starts runs on another stream
      case InstructionClass::kCopyStart:
      case InstructionClass::kDone:
        return Picoseconds(0);
      case InstructionClass::kLoop:
      case InstructionClass::kBranch:
      case InstructionClass::kCall:
        break;
    }
    TPUSIM_CHECK(false, "the scheduler adds up called computations itself");
  };
  estimator.in_flight =
      [&target, &collectives](const hlo::Instruction& start) -> absl::StatusOr<Picoseconds> {
    ASSIGN_OR_RETURN(const InstructionClass c, Classify(start));
    if (c == InstructionClass::kCopyStart) {
      ASSIGN_OR_RETURN(const isa::Body transfer, TransferOf(start, target));
      return TimeOfTransfer(target.chip(), transfer);
    }
    ASSIGN_OR_RETURN(const isa::CollectiveInfo info, collectives.Estimate(start));
    return info.expected;
  };
  return estimator;
}

}  // namespace tpusim::lowering
