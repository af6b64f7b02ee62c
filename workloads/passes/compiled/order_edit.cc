#include "workloads/passes/compiled/order_edit.h"

#include <utility>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/walk.h"

namespace tpusim::passes {

OrderEdit::OrderEdit(hlo::Computation* computation)
    : computation_(computation), order_(computation->schedule()) {
  computation_->set_schedule({});
}

OrderEdit::~OrderEdit() {
  std::vector<hlo::Instruction*> order;
  for (hlo::Instruction* i : order_) {
    if (const auto added = added_.find(i); added != added_.end()) {
      order.insert(order.end(), added->second.begin(), added->second.end());
    }
    if (!i->removed()) order.push_back(i);
    if (const auto after = after_.find(i); after != after_.end()) {
      order.insert(order.end(), after->second.begin(), after->second.end());
    }
  }
  order.insert(order.end(), last_.begin(), last_.end());
  computation_->set_schedule(std::move(order));
}

absl::StatusOr<bool> EditOrdered(
    hlo::Module& module,
    absl::FunctionRef<absl::StatusOr<bool>(hlo::Computation* computation, OrderEdit& order)> edit) {
  bool changed = false;
  for (hlo::Computation* computation : hlo::Walk(module.PostOrder())) {
    if (computation->schedule().empty()) continue;
    OrderEdit order(computation);
    ASSIGN_OR_RETURN(const bool edited, edit(computation, order));
    changed = changed || edited;
  }
  if (changed) module.RemoveUnreachable();
  return changed;
}

}  // namespace tpusim::passes
