#include "workloads/compiler/optimize.h"

#include "configs/status_macros.h"
#include "workloads/compiler/stages.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/hlo/transforms/split_tuple_copies.h"

namespace tpusim::compiler {

absl::StatusOr<Optimized> Optimize(hlo::Module& module, const configs::Config& config,
                                   const OptimizeOptions& options) {
  ASSIGN_OR_RETURN(passes::Pipeline pipeline, passes::ParsePipeline(options.passes));
  pipeline = passes::WithAnnotations(std::move(pipeline));
  RETURN_IF_ERROR(passes::CheckNamed("--explain", options.pipeline.explain, pipeline));
  passes::Statements stated = options.stated;
  if (stated.partitions <= 0) stated.partitions = config.devices();
  ASSIGN_OR_RETURN(const DevicePlacement placement,
                   PlacePartitions({}, {}, stated.partitions, config, "ids"));
  TripCounts trip_counts({}, options.trip_counts);
  const target::Target target(config);
  cost::ChipCostModel costs(target, placement.device_of_partition, {},
                            [&](const hlo::Instruction& loop) { return trip_counts(loop); });
  cost::StatedCosts stated_costs(costs, options.costs);
  passes::PassContext context(target, &stated_costs);
  context.stated = &stated;
  hlo::SplitTupleCopies(module);
  Optimized result;
  RETURN_IF_ERROR(
      passes::RunPipeline(pipeline, module, context, options.pipeline, result.runs).status());
  result.unused_costs = stated_costs.Unused();
  return result;
}

}  // namespace tpusim::compiler
