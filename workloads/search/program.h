// What of a program every candidate shares: the module as it came, what there is to decide, and
// what its products take on one device.
#ifndef TPUSIM_WORKLOADS_SEARCH_PROGRAM_H_
#define TPUSIM_WORKLOADS_SEARCH_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "configs/units.h"
#include "workloads/compiler/trip_counts.h"
#include "workloads/hlo/io/import.h"
#include "workloads/sharding/decisions.h"
#include "workloads/sharding/normalise.h"
#include "workloads/sharding/sharding.h"

namespace tpusim::search {

// A dot or convolution that is left when the program has been simplified as a whole.
struct Product {
  std::string name;
  double seconds = 0;  // of all executions, on the arrays of one device at their peak
  sharding::Reach reach;
};

struct Program {
  hlo::ImportedWorkload imported;         // without its module
  sharding::NormalisedModule normalised;  // from which every candidate goes on
  sharding::Mesh mesh;                    // the program's own; no axes: it has none
  // By argument, by dimension: the axes that the program itself says. Empty: it says nothing.
  std::vector<std::vector<std::vector<std::string>>> own;
  sharding::Decisions decisions;
  std::vector<Product> products;
};

// A copy without module, for one compilation.
hlo::ImportedWorkload CopyOf(const hlo::ImportedWorkload& imported);

// Errors: as ShardModule; a module that is partitioned already; one with a shard_map, which is
// for its own mesh; a loop whose trip count is not known.
absl::StatusOr<Program> ProgramOf(hlo::ImportedWorkload imported, const configs::Config& config,
                                  const compiler::TripCountOverrides& trip_counts);

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_PROGRAM_H_
