// The operations of a module whose groups are data.
//
// Three kinds have groups: ragged dots; ragged all-to-alls, whose groups are the members that rows
// are sent to; and Pallas kernels that are grouped products (workloads/mosaic/grouped.h). An
// exchange brings the rows of a product that stands behind it.
#ifndef TPUSIM_WORKLOADS_PASSES_ANNOTATE_RAGGED_OPERATIONS_H_
#define TPUSIM_WORKLOADS_PASSES_ANNOTATE_RAGGED_OPERATIONS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/mosaic/grouped.h"
#include "workloads/passes/annotate/routing.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

class RaggedOperations {
 public:
  RaggedOperations(const hlo::Module& module, const PassContext& context);

  bool Contains(const hlo::Instruction& i) const;

  // Returns the product that a call of a Pallas kernel is; null: the operation is none.
  const mosaic::GroupedProduct* KernelOf(const hlo::Instruction& i) const;

  // Returns the rows that the operation has room for on a device.
  int64_t RowsOf(const hlo::Instruction& i) const;

  // Returns the groups of which the operation has sizes: those that are on a device, or updates.
  int64_t GroupsOf(const hlo::Instruction& i) const;

  // Returns the members of an exchange's group.
  absl::StatusOr<int64_t> MembersOf(const hlo::Instruction& exchange) const;

  // Returns the exchange that brings the rows of a product, be it one that brought them in the
  // forward pass; null: none.
  const hlo::Instruction* ExchangeOf(const hlo::Instruction& product) const;

  // Returns the rows that a product has on a device where all devices get equally many.
  int64_t BalancedRows(const hlo::Instruction& product) const;

  // Returns the rows of each group by --routing. Errors (OutOfRange, which the command line ends
  // with as a usage error): other experts than the program's, or other layers.
  absl::StatusOr<RoutedRows> Route(const hlo::Instruction& i) const;

 private:
  absl::StatusOr<RoutedRows> RouteHere(const hlo::Instruction& product) const;
  absl::StatusOr<std::vector<double>> SharesOf(const hlo::Instruction& i, int64_t experts,
                                               int64_t devices) const;
  absl::StatusOr<std::vector<std::vector<int64_t>>> LayersOf(const hlo::Instruction& i) const;
  const hlo::Instruction* SourceOf(const hlo::Instruction& i) const;

  const Routing& routing_;
  int64_t partitions_;
  hlo::CallGraph calls_;
  std::map<const hlo::Instruction*, mosaic::GroupedProduct> kernels_;
  // Sources of sizes, numbered by first appearance.
  std::map<hlo::Opcode, std::map<const hlo::Instruction*, size_t>> sources_;
  std::map<const hlo::Instruction*, const hlo::Instruction*> exchange_of_;  // by product
  std::map<int64_t, const hlo::Instruction*> exchange_of_rows_;             // by rows of products
  int64_t held_ = 0;  // experts of a device; 0: no exchange brings rows to a product
};

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_ANNOTATE_RAGGED_OPERATIONS_H_
