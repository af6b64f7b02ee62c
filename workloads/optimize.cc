#include "workloads/optimize.h"

#include "configs/status_macros.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/device_placement.h"
#include "workloads/hlo/rules/assumed_trips.h"

namespace tpusim::workloads {

absl::StatusOr<Optimized> Optimize(hlo::Module& module, const configs::Config& config,
                                   const OptimizeOptions& options) {
  ASSIGN_OR_RETURN(const passes::Pipeline pipeline, passes::ParsePipeline(options.passes));
  const int64_t partitions = options.num_partitions > 0 ? options.num_partitions : config.devices();
  ASSIGN_OR_RETURN(const DevicePlacement placement,
                   PlacePartitions({}, {}, partitions, config, "ids"));
  kernels::SetCustomCosts(module, options.kernel_costs);
  hlo::SetAssumedTrips(module);
  TripCounts trip_counts({}, options.trip_counts);
  const target::Target target(config);
  cost::ChipCostModel costs(target, placement.device_of_partition, {},
                            [&](const hlo::Instruction& loop) { return trip_counts(loop); });
  cost::StatedCosts stated(costs, options.costs);
  Optimized result;
  RETURN_IF_ERROR(
      passes::RunPipeline(pipeline, module, {target, &stated}, options.pipeline, result.runs)
          .status());
  result.unused_costs = stated.Unused();
  return result;
}

}  // namespace tpusim::workloads
