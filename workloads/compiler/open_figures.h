// What a program leaves open: trip counts and costs of kernels that depend on data.
//
// One error names all of them with the options that state them, so that a program with
// ten such loops does not take ten runs to find out.
#ifndef TPUSIM_WORKLOADS_COMPILER_OPEN_FIGURES_H_
#define TPUSIM_WORKLOADS_COMPILER_OPEN_FIGURES_H_

#include "absl/status/status.h"
#include "workloads/compiler/trip_counts.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::compiler {

// Error: loops that the entry reaches without a trip count, or kernels without a price.
absl::Status CheckNothingOpen(const hlo::Module& module, TripCounts& trip_counts);

}  // namespace tpusim::compiler

#endif  // TPUSIM_WORKLOADS_COMPILER_OPEN_FIGURES_H_
