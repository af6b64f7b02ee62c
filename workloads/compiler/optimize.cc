#include "workloads/compiler/optimize.h"

#include "configs/status_macros.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/hlo/transforms/expand_composites.h"
#include "workloads/passes/passes.h"

namespace tpusim::compiler {

absl::StatusOr<DevicePlacement> PlacementOf(const configs::Config& config,
                                            const OptimizeOptions& options) {
  const int64_t stated = options.stated.partitions;
  return PlacePartitions({}, {}, stated > 0 ? stated : config.devices(), config,
                         options.device_order.empty() ? "ids" : options.device_order);
}

absl::StatusOr<Optimized> Optimize(hlo::Module& module, const configs::Config& config,
                                   const OptimizeOptions& options) {
  ASSIGN_OR_RETURN(passes::Pipeline pipeline, passes::ParsePipeline(options.passes));
  pipeline = passes::WithAnnotations(std::move(pipeline));
  RETURN_IF_ERROR(passes::CheckNamed("--explain", options.pipeline.explain, pipeline));
  ASSIGN_OR_RETURN(const DevicePlacement placement, PlacementOf(config, options));
  passes::Statements stated = options.stated;
  stated.partitions = static_cast<int64_t>(placement.device_of_partition.size());
  TripCounts trip_counts({}, options.trip_counts);
  const target::Target target(config);
  cost::ChipCostModel costs(target, placement.device_of_partition, options.algorithms,
                            [&](const hlo::Instruction& loop) { return trip_counts(loop); });
  cost::StatedCosts stated_costs(costs, options.costs);
  passes::PassContext context(target, stated_costs);
  context.stated = &stated;
  hlo::ExpandComposites(module);
  Optimized result;
  RETURN_IF_ERROR(
      passes::RunPipeline(pipeline, module, context, options.pipeline, result.runs).status());
  result.unused_costs = stated_costs.Unused();
  return result;
}

}  // namespace tpusim::compiler
