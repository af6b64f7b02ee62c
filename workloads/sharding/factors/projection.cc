#include "workloads/sharding/factors/projection.h"

#include <numeric>

namespace tpusim::sharding {
namespace {

// Moves as many axes from the front of `left` as divide `size`; cuts an axis
// that is larger than what is left of the factor.
Axes TakeFactor(Axes& left, int64_t size) {
  Axes taken;
  while (!left.empty() && size > 1) {
    AxisRef& front = left.front();
    const int64_t common = std::gcd(size, front.size);
    if (common == 1) break;
    taken.push_back({front.axis, front.pre_size, common});
    size /= common;
    if (common == front.size) {
      left.erase(left.begin());
    } else {
      front = {front.axis, front.pre_size * common, front.size / common};
      if (size > 1) break;  // the axis is used up to here only
    }
  }
  return Joined(taken);
}

}  // namespace

Projection Project(const Sharding& sharding, const TensorFactors& tensor,
                   const std::vector<Factor>& factors) {
  Projection projection;
  projection.axes.resize(factors.size());
  for (size_t d = 0; d < tensor.size(); ++d) {
    Axes left = Joined(sharding.dims[d].axes);
    for (size_t i = 0; i < tensor[d].size() && !left.empty(); ++i) {
      const int32_t factor = tensor[d][i];
      if (i + 1 == tensor[d].size()) {
        projection.axes[factor] = left;  // the last one takes the rest, even or not
        left.clear();
        break;
      }
      projection.axes[factor] = TakeFactor(left, factors[factor].size);
      if (Product(projection.axes[factor]) != factors[factor].size) break;
    }
    projection.overflow = Concat(projection.overflow, left);
  }
  return projection;
}

void FillView(const Sharding& sharding, const TensorFactors& tensor,
              const std::vector<Factor>& factors, TensorView* view) {
  view->factors.resize(factors.size());
  for (FactorView& factor : view->factors) {
    factor.present = factor.closed = factor.minor_most = false;
    factor.axes.clear();
    factor.overflow.clear();
  }
  view->pinned.assign(sharding.replicated.begin(), sharding.replicated.end());
  view->pinned.insert(view->pinned.end(), sharding.unreduced.begin(), sharding.unreduced.end());
  for (size_t d = 0; d < tensor.size(); ++d) {
    const DimSharding& dim = sharding.dims[d];
    if (tensor[d].empty()) {  // of size 1
      view->pinned.insert(view->pinned.end(), dim.axes.begin(), dim.axes.end());
      continue;
    }
    Axes left = dim.axes;
    bool overflowed = false;
    for (size_t i = 0; i < tensor[d].size(); ++i) {
      FactorView& factor = view->factors[tensor[d][i]];
      factor.present = true;
      factor.minor_most = i + 1 == tensor[d].size();
      factor.closed = !dim.open || overflowed;
      if (overflowed || left.empty()) continue;
      if (factor.minor_most) {
        factor.axes = std::move(left);
        break;
      }
      const int64_t size = factors[tensor[d][i]].size;
      factor.axes = TakeFactor(left, size);
      if (!left.empty() && Product(factor.axes) != size) {
        factor.overflow = left;
        overflowed = true;
      }
    }
  }
}

Axes DimAxes(const TensorView& view, const std::vector<int32_t>& dim,
             const std::vector<Factor>& factors) {
  Axes axes;
  for (int32_t f : dim) {
    const FactorView& factor = view.factors[f];
    axes.insert(axes.end(), factor.axes.begin(), factor.axes.end());
    if (!factor.overflow.empty()) {
      axes.insert(axes.end(), factor.overflow.begin(), factor.overflow.end());
      break;
    }
    // What follows would be strided.
    if (Product(factor.axes) < factors[f].size) break;
  }
  return Joined(axes);
}

Sharding FromFactors(const std::vector<Axes>& axes, const TensorFactors& tensor,
                     const std::vector<Factor>& factors, bool* exact) {
  Sharding sharding = Replicated(static_cast<int64_t>(tensor.size()));
  if (exact != nullptr) *exact = true;
  for (size_t d = 0; d < tensor.size(); ++d) {
    bool full = true;
    for (int32_t factor : tensor[d]) {
      if (!full && !axes[factor].empty()) {
        if (exact != nullptr) *exact = false;
        break;
      }
      sharding.dims[d].axes = Concat(sharding.dims[d].axes, axes[factor]);
      full = full && Product(axes[factor]) == factors[factor].size;
    }
  }
  return sharding;
}

}  // namespace tpusim::sharding
