// Prices Pallas kernels: those of exports, of raw HLO, and of what the TPU compiler writes.
//
// Every `tpu_custom_call` carries its kernel in its backend_config; workloads/mosaic reads and
// prices it, unless a cost is stated. A time that is stated leaves what the body does as it is. The
// tables that it reads ahead of its blocks are known where the program computes them of constants;
// where partitions have different ones, the dearest counts.
//
// The TPU compiler adds kernels of its own whose body is MLIR as text. Those without a grid run on
// the scalar core: they take a cycle per line and element of their results.
//
// A grouped product whose groups are data is priced for the sizes that are written onto its call
// (--routing, --ragged), else for groups of about equal size, which the report says
// (workloads/mosaic/grouped.h), unless the count of its steps is stated.
//
// What cannot be priced so (an operation without a rule, a loop on data without a stated count) has
// the kernel's own cost estimate, if it carries one. That counts FLOPs alone. They are taken to be
// products as deep as the last dimension of the kernel's first large operand, the size of a head:
// the arrays are as full as those leave them. The estimate's transcendentals go through their unit
// beside, and so bound the time as well.
#ifndef TPUSIM_WORKLOADS_KERNELS_OPAQUE_BODY_COST_H_
#define TPUSIM_WORKLOADS_KERNELS_OPAQUE_BODY_COST_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/kernel_cost.pb.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/mosaic/grouped.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// Returns the name of the function that a Pallas kernel is, as its author wrote it; empty: the call
// is none, or its body cannot be read.
std::string NameOfBody(const hlo::Instruction& call);

// A Pallas call of a partitioned module, and what its body does in one call, with loops on data
// apart. Error (no rule): why that is not known.
struct BodyPrice {
  const hlo::Instruction* call = nullptr;
  absl::StatusOr<tpusim::KernelCost> price;
};
// Prices all Pallas calls, whatever is stated of them.
std::vector<BodyPrice> BodyPrices(const hlo::Module& module, int64_t partitions,
                                  const target::Target& target);

// Returns the Pallas calls of a partitioned module that are grouped products of groups whose sizes
// are data; without those that have a cost, or whose steps `trips` counts.
std::map<const hlo::Instruction*, mosaic::GroupedProduct> GroupedProducts(
    const hlo::Module& module, const KernelTrips& trips, const target::Target& target);

// Writes costs, or why there are none, onto the Pallas calls of a partitioned module that have
// neither, or a time alone. `trips` has the counts of loops inside kernels. Returns the names of
// these calls.
std::vector<std::string> SetBodyCosts(hlo::Module& module, int64_t partitions,
                                      const KernelTrips& trips, const target::Target& target);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_OPAQUE_BODY_COST_H_
