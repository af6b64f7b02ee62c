// What an order of dimensions costs, in cycles.
//
// The same quantities as in the kernels: bytes with padding at the rate of HBM, registers
// over the VALUs, registers over the cross-lane units. Fusion has not happened yet, so a
// value counts as written and read unless elementwise users and sums alone take it. What
// follows a product runs in its kernel if it takes the result as the arrays make it: a
// copy between the two costs a kernel more.
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_COST_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_COST_H_

#include "workloads/passes/layout/layout_problem.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

class LayoutCost {
 public:
  explicit LayoutCost(const target::Target& target);

  // `order` is one of the term's value.
  double Of(const Term& term, const Dims& order);
  double Of(const Link& link, const Dims& from, const Dims& to);
  // A copy of the array from one order to another; `alone`: by a kernel that does nothing else.
  double OfCopy(const hlo::Shape& array, const Dims& from, const Dims& to, bool alone = false);

 private:
  const hlo::Shape& InOrder(const hlo::Shape& shape, const Dims& order, bool second);
  double Memory(const hlo::Shape& shape) const;      // once through HBM
  double Registers(const hlo::Shape& shape) const;   // once through the VALUs
  double CrossLanes(const hlo::Shape& shape) const;  // once through the cross-lane units

  const target::Target& target_;
  double bytes_per_cycle_;
  double register_cycles_, cross_lane_cycles_;  // of one register
  double kernel_cycles_;                        // before a kernel computes
  hlo::Shape first_, second_;
};

// The order of `to` that keeps lanes and rows where the link would like them, given one of
// `from`; with `backward` the other way round. Dimensions that the link says nothing of come
// last. Empty if nothing can be said.
Dims OrderThrough(const Link& link, const Dims& order, bool backward);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_COST_H_
