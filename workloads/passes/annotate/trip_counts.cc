#include "configs/status_macros.h"
#include "workloads/hlo/rules/assumed_trips.h"
#include "workloads/kernels/custom_cost.h"
#include "workloads/passes/annotate/annotate.h"
#include "workloads/passes/annotate/written.h"
#include "workloads/passes/pipeline/reasons.h"

namespace tpusim::passes {

absl::StatusOr<bool> StateTripCounts(hlo::Module& module, const PassContext& context) {
  const std::vector<std::string> before = WrittenAttributes(module);
  hlo::SetAssumedTrips(module);
  for (const hlo::Computation* computation : module.PostOrder()) {
    for (hlo::Instruction* i : computation->instructions()) {
      // Of Jacobi's method, in calls without a stated cost.
      if (hlo::IsEighCall(*i) && kernels::IsFactorizationCall(*i) && context.cost != nullptr) {
        ASSIGN_OR_RETURN(const int64_t sweeps, context.cost->TripsOf(*i));
        hlo::SetSweeps(i, sweeps);
      }
      if (!context.records.wanted()) continue;
      if (const auto trips = hlo::AssumedTripsOf(*i)) {
        context.records.Add(reasons::kTripsWritten, i->name(), {{"sentence", trips->sentence}});
      }
    }
  }
  return WrittenAttributes(module) != before;
}

}  // namespace tpusim::passes
