// The split of an op's loops over the mesh: the choice between moving operands, moving the result,
// and computing partial results.
#ifndef TPUSIM_WORKLOADS_SPMD_FACTOR_CHOICE_H_
#define TPUSIM_WORKLOADS_SPMD_FACTOR_CHOICE_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/sharding/rules/rule.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"
#include "workloads/spmd/ops/local_op.h"
#include "workloads/spmd/reshard_plan.h"

namespace tpusim::spmd {

struct TensorPlacement {
  const hlo::Shape* shape = nullptr;  // of the value itself: two with one shape are one
  const sharding::Sharding* sharding = nullptr;
  std::vector<sharding::Sharding> others = {};  // that it exists in as well
  bool filled = false;                          // any device can make any part of it
  // The shardings that a result is brought to later, and whether it is used as it is, too.
  std::vector<sharding::Sharding> wanted = {};
  bool used_as_is = true;
};

// The ways in which an op can be split besides by pass-through factors.
struct SplitRules {
  bool reductions = false;  // partial results may be combined afterwards
  // Axes by which all operands are split along a reduction stay: to gather the
  // operands instead may move less, but multiplies the op's work.
  bool keep_sums = false;
  // Like keep_sums, but not along axes by which the first result is to be split.
  bool keep_whole_sums = false;
  // Factors that all operands have stay split as they all are. Others are split as the first result
  // is, and sums by axes that operands have there, or that split nothing of them: no operand is
  // moved to split the work otherwise.
  bool as_result = false;
  // Pass-through factors stay split as this operand has them where the result is whole.
  std::optional<size_t> keep_operand;
  // A factor that must be whole may lend its axes to another one for as long as the op runs.
  bool lend = true;
  // Operands (one mark each) that are partial sums over `unreduced` and stay so: then the
  // result is one.
  std::vector<char> partial;
  sharding::Axes unreduced;
  // The operation that makes values of the parts of such operands, and of partial results.
  sharding::Reduction reduction = sharding::Reduction::kSum;
  // Bytes that the op itself moves with the factors split like this; nullopt:
  // it cannot. Empty: permutation factors must be whole.
  std::function<std::optional<Bytes>(const std::vector<sharding::Axes>&)> own;
};

// A value that is whole on the devices along an axis becomes a partial sum over it without a
// collective: one has the value, the others zeros (of a maximum or minimum all have the value).
// Returns `from` with the sums of `to` begun.
sharding::Sharding WithBegunSums(sharding::Sharding from, const sharding::Sharding& to);

// Among the splits that one of the tensors suggests, the one that moves the
// fewest bytes; among equals the one with the most shards, results before
// operands.
absl::StatusOr<FactorChoice> ChooseFactors(const sharding::ShardingRule& rule,
                                           const std::vector<TensorPlacement>& operands,
                                           const std::vector<TensorPlacement>& results,
                                           ReshardPlans& plans, const SplitRules& rules);

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_FACTOR_CHOICE_H_
