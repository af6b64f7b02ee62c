#include "workloads/sharding/factors/factor_propagation.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace tpusim::sharding {
namespace {

bool StartsWith(const AxisRef& axis, const AxisRef& prefix) {
  return axis.axis == prefix.axis && axis.pre_size == prefix.pre_size &&
         axis.size % prefix.size == 0;
}

enum class Prefix { kNo, kStrict, kEqual };

Prefix IsListPrefix(const Axes& prefix, const Axes& axes) {
  if (prefix.empty()) return axes.empty() ? Prefix::kEqual : Prefix::kStrict;
  if (prefix.size() > axes.size()) return Prefix::kNo;
  if (!std::equal(prefix.begin(), prefix.end() - 1, axes.begin())) return Prefix::kNo;
  const AxisRef& last = axes[prefix.size() - 1];
  if (prefix.size() == axes.size() && prefix.back() == last) return Prefix::kEqual;
  return StartsWith(last, prefix.back()) ? Prefix::kStrict : Prefix::kNo;
}

// Merges `more` into `axes`. False from the first disagreement on: nothing may
// be added behind it. Without `can_expand` the result is no longer than `axes`.
bool Merge(Axes& axes, const Axes& more, bool can_expand) {
  const size_t both = std::min(axes.size(), more.size());
  for (size_t i = 0; i < both; ++i) {
    if (axes[i] == more[i]) continue;
    if (StartsWith(axes[i], more[i])) {
      if (i + 1 == more.size()) continue;  // `more` ends inside of this axis
      axes[i] = more[i];
      axes.resize(i + 1);
      return false;
    }
    if (StartsWith(more[i], axes[i])) {
      if (!can_expand || i + 1 < axes.size()) {
        axes.resize(i + 1);
        return false;
      }
      axes[i] = more[i];
      continue;
    }
    axes.resize(i);
    return false;
  }
  if (can_expand && more.size() > axes.size()) {
    axes.insert(axes.end(), more.begin() + static_cast<int64_t>(axes.size()), more.end());
  }
  return can_expand;
}

// Returns the part of `axis` that factor `f` of one tensor can take, after axes worth `before`.
std::optional<AxisRef> FitsFactor(const AxisRef& axis, const TensorView& tensor, size_t f,
                                  int64_t before, int64_t size) {
  const FactorView& factor = tensor.factors[f];
  const auto free = WithoutOverlap(axis, tensor.pinned);
  if (!free) return std::nullopt;
  const auto contains = [&](const AxisRef& has) {
    return has.axis == free->axis && has.pre_size <= free->pre_size &&
           has.pre_size * has.size >= free->pre_size * free->size;
  };
  if (std::ranges::any_of(factor.axes, contains)) return free;
  if (!factor.closed && factor.overflow.empty()) {
    if (factor.minor_most) return free;  // may be uneven
    if (size % before == 0) {
      const int64_t common = std::gcd(size / before, free->size);
      if (common != 1) return AxisRef{free->axis, free->pre_size, common};
    }
  }
  if (!factor.axes.empty() && StartsWith(*free, factor.axes.back())) return factor.axes.back();
  return std::nullopt;
}

std::optional<AxisRef> FreeInOtherFactors(AxisRef axis, const TensorView& tensor, size_t f) {
  for (size_t g = 0; g < tensor.factors.size(); ++g) {
    if (g == f || !tensor.factors[g].present) continue;
    for (const Axes* used : {&tensor.factors[g].overflow, &tensor.factors[g].axes}) {
      const auto free = WithoutOverlap(axis, *used);
      if (!free) return std::nullopt;
      axis = *free;
    }
  }
  return axis;
}

// Cuts `axes` at the first one of which `keep` leaves less than all.
template <typename Keep>
void Truncate(Axes& axes, Keep keep) {
  int64_t before = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::optional<AxisRef> kept = keep(axes[i], before);
    if (kept != axes[i]) {
      axes.resize(kept ? i + 1 : i);
      if (kept) axes[i] = *kept;
      return;
    }
    before *= kept->size;
  }
}

}  // namespace

std::optional<AxisRef> WithoutOverlap(const AxisRef& axis, const Axes& used) {
  AxisRef free = axis;
  for (const AxisRef& other : used) {
    if (!Overlap(free, other)) continue;
    if (other.pre_size <= free.pre_size || other.pre_size % free.pre_size != 0) return std::nullopt;
    free.size = other.pre_size / free.pre_size;
  }
  if (free.size < 2 || axis.size % free.size != 0) return std::nullopt;
  return free;
}

Axes CompatibleAxes(const OpView& op, size_t factor, Flow flow) {
  Axes axes;
  if (flow == Flow::kNone) return axes;
  bool can_expand = true;
  const auto merge = [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const FactorView& view = op.tensors[t].factors[factor];
      if (view.present) can_expand = Merge(axes, view.axes, can_expand);
    }
  };
  // The side that may not speak still objects.
  const size_t operands = op.num_operands, all = op.tensors.size();
  if (flow == Flow::kBackward) {
    merge(operands, all);
    can_expand = false;
    merge(0, operands);
  } else {
    merge(0, operands);
    if (flow == Flow::kForward) can_expand = false;
    merge(operands, all);
  }
  return axes;
}

std::vector<bool> PropagateBasic(const std::vector<Factor>& factors, const std::vector<Flow>& flow,
                                 OpView& op) {
  std::vector<bool> changed(op.tensors.size());
  for (size_t f = 0; f < factors.size(); ++f) {
    Axes axes = CompatibleAxes(op, f, flow[f]);
    Truncate(axes, [&](AxisRef axis, int64_t before) -> std::optional<AxisRef> {
      for (const TensorView& tensor : op.tensors) {
        auto free = FreeInOtherFactors(axis, tensor, f);
        if (free && tensor.factors[f].present) {
          free = FitsFactor(*free, tensor, f, before, factors[f].size);
        }
        if (!free) return std::nullopt;
        axis = *free;
      }
      return axis;
    });
    if (axes.empty()) continue;
    for (size_t t = 0; t < op.tensors.size(); ++t) {
      FactorView& view = op.tensors[t].factors[f];
      if (!view.present || IsListPrefix(view.axes, axes) != Prefix::kStrict) continue;
      view.axes = axes;
      changed[t] = true;
    }
  }
  return changed;
}

std::vector<bool> PropagateAggressive(const std::vector<Factor>& factors,
                                      const std::vector<Flow>& flow, OpView& op) {
  std::vector<bool> changed(op.tensors.size());
  std::vector<Axes> wanted(factors.size());
  bool any = false;
  for (size_t f = 0; f < factors.size(); ++f) {
    wanted[f] = CompatibleAxes(op, f, flow[f]);
    any = any || !wanted[f].empty();
  }
  if (!any) return changed;

  // Per factor the largest tensor that has the axes.
  struct AxisSource {
    int64_t size = -1;
    int64_t tensor = -1;
  };
  std::vector<AxisSource> sources(factors.size());
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    int64_t size = 1;
    for (size_t f = 0; f < factors.size(); ++f) {
      if (op.tensors[t].factors[f].present) size *= factors[f].size;
    }
    for (size_t f = 0; f < factors.size(); ++f) {
      const FactorView& view = op.tensors[t].factors[f];
      if (!view.present || wanted[f].empty() || size <= sources[f].size ||
          IsListPrefix(wanted[f], view.axes) == Prefix::kNo) {
        continue;
      }
      sources[f] = {size, static_cast<int64_t>(t)};
    }
  }
  std::vector<size_t> order(factors.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](size_t f) {
    return std::tuple(-sources[f].size, op.elementwise ? -Product(wanted[f]) : 0, sources[f].tensor,
                      f);
  };
  std::ranges::sort(order, [&](size_t a, size_t b) { return rank(a) < rank(b); });

  const auto extend = [&](size_t t, bool is_operand) {
    TensorView& tensor = op.tensors[t];
    for (size_t f : order) {
      FactorView& view = tensor.factors[f];
      if (!view.present || wanted[f].empty()) continue;
      Axes axes = wanted[f];
      Truncate(axes, [&](const AxisRef& axis, int64_t before) {
        return FitsFactor(axis, tensor, f, before, factors[f].size);
      });
      if (IsListPrefix(view.axes, axes) != Prefix::kStrict) continue;
      Truncate(axes,
               [&](const AxisRef& axis, int64_t) { return FreeInOtherFactors(axis, tensor, f); });
      // An operand does not follow another one further than the result does.
      for (size_t r = op.num_operands; is_operand && op.elementwise && r < op.tensors.size(); ++r) {
        const FactorView& result = op.tensors[r].factors[f];
        if (result.present && IsListPrefix(result.axes, axes) == Prefix::kStrict) {
          axes = result.axes;
        }
      }
      if (IsListPrefix(view.axes, axes) != Prefix::kStrict) continue;
      view.axes = axes;
      changed[t] = true;
    }
  };
  for (size_t t = op.num_operands; t < op.tensors.size(); ++t) extend(t, false);
  for (size_t t = 0; t < op.num_operands; ++t) extend(t, true);
  return changed;
}

}  // namespace tpusim::sharding
