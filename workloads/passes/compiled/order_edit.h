// Changes of a computation that has an order of execution, and keeps it.
#ifndef TPUSIM_WORKLOADS_PASSES_COMPILED_ORDER_EDIT_H_
#define TPUSIM_WORKLOADS_PASSES_COMPILED_ORDER_EDIT_H_

#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

// The computation has no order while it is edited; afterwards what was added stands where it was
// put, and what was removed is gone.
class OrderEdit {
 public:
  explicit OrderEdit(hlo::Computation* computation);
  ~OrderEdit();
  OrderEdit(const OrderEdit&) = delete;
  OrderEdit& operator=(const OrderEdit&) = delete;

  // `added` is executed right before `place`, after what was put there earlier.
  void Insert(const hlo::Instruction* place, hlo::Instruction* added) {
    added_[place].push_back(added);
  }
  // `added` is executed right after `place`, after what was put there earlier.
  void InsertAfter(const hlo::Instruction* place, hlo::Instruction* added) {
    after_[place].push_back(added);
  }
  // `added` is executed last.
  void Append(hlo::Instruction* added) { last_.push_back(added); }
  // The order before it was edited.
  const std::vector<hlo::Instruction*>& before() const { return order_; }

 private:
  hlo::Computation* const computation_;
  const std::vector<hlo::Instruction*> order_;
  // Looked up, never iterated.
  std::unordered_map<const hlo::Instruction*, std::vector<hlo::Instruction*>> added_;
  std::unordered_map<const hlo::Instruction*, std::vector<hlo::Instruction*>> after_;
  std::vector<hlo::Instruction*> last_;
};

// Edits every computation that has an order, callees before callers; unreachable ones go if any has
// changed.
absl::StatusOr<bool> EditOrdered(
    hlo::Module& module,
    absl::FunctionRef<absl::StatusOr<bool>(hlo::Computation* computation, OrderEdit& order)> edit);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COMPILED_ORDER_EDIT_H_
