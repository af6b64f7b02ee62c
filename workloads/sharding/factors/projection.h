// Shardings of tensors seen as shardings of an op's factors, and back.
#ifndef TPUSIM_WORKLOADS_SHARDING_FACTORS_PROJECTION_H_
#define TPUSIM_WORKLOADS_SHARDING_FACTORS_PROJECTION_H_

#include <vector>

#include "workloads/sharding/rules/rule.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::sharding {

// One tensor's axes, factor by factor.
struct Projection {
  std::vector<Axes> axes;  // per factor of the rule; empty where the tensor lacks it
  // Axes that split the tensor where no factor boundary is (a dimension made of
  // factors 3 and 4, split by 2 at the major end): the op cannot follow them.
  Axes overflow;
};

Projection Project(const Sharding& sharding, const TensorFactors& tensor,
                   const std::vector<Factor>& factors);

// A view of a tensor by factors, with the facts that propagation needs besides.
struct FactorView {
  bool present = false;     // the tensor has the factor
  bool closed = false;      // no axes may be added
  bool minor_most = false;  // of its dimension: may be split unevenly
  Axes axes;
  Axes overflow;  // behind this factor in its dimension, where no factor follows them
};
struct TensorView {
  std::vector<FactorView> factors;  // one per factor of the rule
  Axes pinned;                      // must not be used: replicated, unreduced, of no factor
};
// `view` is overwritten; keeping it saves allocations.
void FillView(const Sharding& sharding, const TensorFactors& tensor,
              const std::vector<Factor>& factors, TensorView* view);
// The axes of one dimension according to a view.
Axes DimAxes(const TensorView& view, const std::vector<int32_t>& dim,
             const std::vector<Factor>& factors);

// The tensor's sharding if every factor is split by `axes[factor]`. A minor
// factor counts only behind fully split major ones, else its shard would not be
// one block; `exact` (optional) says whether all axes could be expressed.
Sharding FromFactors(const std::vector<Axes>& axes, const TensorFactors& tensor,
                     const std::vector<Factor>& factors, bool* exact = nullptr);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_FACTORS_PROJECTION_H_
