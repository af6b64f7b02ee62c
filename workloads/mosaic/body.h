// Walks the body of a kernel for sets of grid points, and prices what it meets.
//
// What depends on the point only (the places in the grid, tables that are constants of the program,
// integers made of them) is known, for all points at once: which branch is taken, how often a loop
// runs, which block a window shows. Operations on vectors cost by their sizes; those on scalars are
// free, as they run beside. A loop whose length is data is kept apart by what one pass costs.
#ifndef TPUSIM_WORKLOADS_MOSAIC_BODY_H_
#define TPUSIM_WORKLOADS_MOSAIC_BODY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "workloads/mosaic/amounts.h"
#include "workloads/mosaic/branches.h"
#include "workloads/mosaic/module.h"
#include "workloads/mosaic/operations.h"
#include "workloads/mosaic/order.h"
#include "workloads/mosaic/repeats.h"
#include "workloads/mosaic/scalars.h"
#include "workloads/mosaic/scope.h"

namespace tpusim::mosaic {

class Body {
 public:
  // `grid` has kDynamic for lengths that are data: those axes are walked in one place.
  Body(std::vector<int64_t> grid, const configs::ChipParams& chip, const Weights& weights);

  // Sets the table that a reference of the kernel or of a window's function names.
  void SetTable(const Value* argument, std::shared_ptr<const Table> table);
  // Prices a function's block at all points; the first arguments are places in the grid.
  Price PriceOf(const Block& block);
  // The integers that a window's function gives at each point; null: data.
  std::vector<std::shared_ptr<const Column>> ResultsOf(const Block& block);

  // Why there is no price, once something has been met that has no rule.
  const absl::Status& status() const { return status_; }
  const std::vector<int64_t>& grid() const { return grid_; }
  const Points& all_points() const { return all_; }

 private:
  struct ForLoop;
  using Numbers = std::vector<int64_t>;
  using KnownValues = std::vector<std::pair<const Value*, Scalar>>;
  using Columns = std::vector<std::pair<const Value*, Column>>;

  // body.cc
  void DefinePlaces(const Block& block, Scope* scope);
  PointCosts Walk(const Block& block, Scope* scope);
  void WalkOperation(const Operation& operation, size_t number, const Block& block, Scope* scope,
                     PointCosts* total);
  PointCosts If(const Operation& operation, Scope* scope);
  PointCosts Inside(const Operation& operation, Scope* scope);
  Price Chains() const;
  Price OnVectors(const Operation& operation, size_t number, const Block& block, Scope* scope);
  void OnScalars(const Operation& operation, Scope* scope);
  void Read(const Operation& load, Scope* scope);
  int64_t Spilled(const std::vector<const Value*>& values);
  void DefineResults(const Operation& operation, Scope* scope);
  Scalar ScalarOf(const Value* value, Scope* scope);
  Scalar SizeOf(const Value* value, Scope* scope);
  Order OrderOf(const std::vector<const Value*>& values) const;
  void JoinOrders(const std::vector<const Value*>& outer, const std::vector<const Value*>& inner);
  void FindSigns(const Block& block);
  Reference& ReferenceOf(const Value* value);
  void Changed(const Operation& operation);
  bool Fail(const Operation& operation, const std::string& what);
  // Returns the place of an operation, or else of the innermost around it that has one.
  std::string PlaceAround(const Operation& operation) const;
  bool Spend(const Points& points);

  // loops.cc
  PointCosts For(const Operation& loop, Scope* scope);
  PointCosts While(const Operation& loop, Scope* scope);
  PointCosts Repeated(const ForLoop& loop, const Numbers& trips, Scope* scope);
  // Returns the price of a loop of which it is not known how often it runs.
  PointCosts Unrepeated(const ForLoop& loop, Scope* scope);
  KnownValues EnterLoop(const ForLoop& loop, Scope* outer);
  PointCosts LeaveLoop(const Operation& loop, const PointCosts& once);
  PointCosts OnePass(const ForLoop& loop, Scope* inner);
  std::optional<Columns> Carried(const ForLoop& loop, const Numbers& trips, Scope* outer);

  // copies.cc
  void Copies(const Operation& copy, Scope* scope, PointCosts* total);

  std::vector<int64_t> grid_;
  const configs::ChipParams& chip_;
  int64_t register_bytes_;  // larger arrays are in no registers as a whole
  Weights weights_;
  PointSets sets_;
  Points all_;
  Scalars scalars_;
  absl::Status status_;
  When when_;  // the current region runs
  std::unordered_map<const Value*, Reference> references_;
  std::unordered_map<const Value*, int> reference_numbers_;
  std::unordered_map<const Value*, Order> orders_;
  std::unordered_set<const Value*> in_vmem_;
  Repeats repeats_;
  std::unordered_map<const Operation*, int> loops_;
  // The operation of a block that uses a value last.
  std::unordered_map<const Block*, std::unordered_map<const Value*, size_t>> last_uses_;
  std::unordered_set<const Value*> written_;
  std::unordered_set<const Operation*> in_signs_;  // parts of what is one operation
  // Products of the region that is walked: the stages in which they run, and their FLOPs.
  std::vector<std::pair<int, double>> products_;
  std::vector<const Operation*> around_;  // the current operations, the innermost last
  int64_t spent_ = 0;
};

// The reference that a view, or a view of a view, names a part of.
const Value* RootOf(const Value* reference);
// Calls for all operations of a block and the regions in it.
void ForAll(const Block& block, const std::function<void(const Operation&)>& call);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_BODY_H_
