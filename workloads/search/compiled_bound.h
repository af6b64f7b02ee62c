// Lower bounds of a compiled program in whatever order of execution.
//
// Once the passes that see no order are done, the program's kernels and collectives are known; what
// is left to decide is their order, what lies in VMEM, and what runs beside what. One after the
// other on the main stream come
//
//   kernels          at least the matrix work at the rate of the arrays; and what is moved of
//                    arrays that do not fit into VMEM, at the rate of HBM
//   collectives      those that are synchronous: latency, and bytes on their busiest link
//
// and beside compute, collectives that go over the same links take turns.
//
// Earlier, before arrays have layouts and operations kernels, it is known what is multiplied and
// what is exchanged: of products the matrix work, of collectives the bytes, which stay the same
// when several are combined.
#ifndef TPUSIM_WORKLOADS_SEARCH_COMPILED_BOUND_H_
#define TPUSIM_WORKLOADS_SEARCH_COMPILED_BOUND_H_

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::search {

// `module` is what the passes of Phase::kOptimize leave. Errors: as `costs` has them.
absl::StatusOr<Picoseconds> CompiledBound(const hlo::Module& module, const target::Target& target,
                                          cost::ChipCostModel& costs);

// Bounds a module before kernels begin (compiler::SimplifiedProgram).
absl::StatusOr<Picoseconds> SimplifiedBound(const hlo::Module& module, const target::Target& target,
                                            cost::ChipCostModel& costs);

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_COMPILED_BOUND_H_
