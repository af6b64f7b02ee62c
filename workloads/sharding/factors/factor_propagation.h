// One op's part in propagation: from the shardings of its tensors to better ones.
//
// Everything happens factor by factor. The axes that a factor should have are
// the longest list that all tensors with the factor agree on (one list may
// continue another). Then one of two ways to deal with conflicts, that is, with
// axes that a tensor uses for another factor, must keep free or cannot take:
//
//   basic       axes from the first conflict on, in any tensor, are dropped for all
//   aggressive  every tensor takes what it can; where two factors want one axis,
//               the factor with the larger source tensor wins (in elementwise
//               ops of equal tensors: the factor with more shards)
//
// Pure functions over views; which view may speak when is the business of propagate.cc.
//
// The room answers what one op says about the shardings of its tensors, whatever the op;
// `PropagateBasic` is its entry point, `PropagateAggressive` the second round.
#ifndef TPUSIM_WORKLOADS_SHARDING_FACTORS_FACTOR_PROPAGATION_H_
#define TPUSIM_WORKLOADS_SHARDING_FACTORS_FACTOR_PROPAGATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/sharding/factors/projection.h"
#include "workloads/sharding/rules/rule.h"
#include "workloads/sharding/types/axes.h"

namespace tpusim::sharding {

// The direction that axes may come from. All tensors receive: an operand may also get what another
// operand has.
enum class Flow : uint8_t { kNone = 0, kForward = 1, kBackward = 2, kBoth = 3 };

struct OpView {
  std::vector<TensorView> tensors;  // operands, then results
  size_t num_operands = 0;
  bool elementwise = false;
};

// The tensors that changed. `flow` has one entry per factor.
std::vector<bool> PropagateBasic(const std::vector<Factor>& factors, const std::vector<Flow>& flow,
                                 OpView& op);
std::vector<bool> PropagateAggressive(const std::vector<Factor>& factors,
                                      const std::vector<Flow>& flow, OpView& op);

// The axes that all tensors agree on for one factor, conflicts aside.
Axes CompatibleAxes(const OpView& op, size_t factor, Flow flow);
// The largest major piece of `axis` that no axis of `used` overlaps.
std::optional<AxisRef> WithoutOverlap(const AxisRef& axis, const Axes& used);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_FACTORS_FACTOR_PROPAGATION_H_
