// Passes on a module as it is: what `tpusim opt` does.
#ifndef TPUSIM_WORKLOADS_COMPILER_OPTIMIZE_H_
#define TPUSIM_WORKLOADS_COMPILER_OPTIMIZE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "workloads/collectives/collective.h"
#include "workloads/compiler/stages.h"
#include "workloads/compiler/trip_counts.h"
#include "workloads/cost/stated_costs.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pipeline.h"
#include "workloads/passes/pipeline/statements.h"

namespace tpusim::compiler {

struct OptimizeOptions {
  std::string passes;  // as passes::ParsePipeline reads them
  TripCountOverrides trip_counts;
  passes::Statements stated;  // no partitions: as many as the slice has devices
  // --device-order; "": partition i runs on device i.
  std::string device_order;
  collectives::AlgorithmOverrides algorithms;
  std::vector<cost::StatedCost> costs;  // of anything that takes time
  passes::PipelineOptions pipeline;
};

struct Optimized {
  std::vector<passes::PassRun> runs;
  std::vector<std::string> unused_costs;  // names of `costs` that no pass asked for
};

// Returns which device runs which partition. Error: as PlacePartitions.
absl::StatusOr<DevicePlacement> PlacementOf(const configs::Config& config,
                                            const OptimizeOptions& options);

// Runs the passes on a partitioned module. Errors: of the passes; more partitions than
// devices.
absl::StatusOr<Optimized> Optimize(hlo::Module& module, const configs::Config& config,
                                   const OptimizeOptions& options);

}  // namespace tpusim::compiler

#endif  // TPUSIM_WORKLOADS_COMPILER_OPTIMIZE_H_
