#include "workloads/spmd/factor_choice.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "configs/status_macros.h"
#include "configs/units.h"
#include "workloads/sharding/projection.h"
#include "workloads/spmd/reshard_plan.h"

namespace tpusim::spmd {
namespace {

using sharding::Axes;
using sharding::AxisRef;
using sharding::Factor;
using sharding::FactorKind;
using sharding::Projection;
using sharding::ShardingRule;
using sharding::TensorFactors;

// Lets a tensor extend the factors as far as no tensor before it objects.
void Fill(const Projection& projection, const ShardingRule& rule,
          const std::vector<char>& may_split, const std::vector<char>& lone,
          std::vector<Axes>& axes) {
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const Factor& factor = rule.factors[f];
    if (!may_split[f] || !sharding::IsPrefix(axes[f], projection.axes[f])) continue;
    for (const AxisRef& axis : sharding::AfterPrefix(axes[f], projection.axes[f])) {
      bool used = !lone[f] && factor.size % (Product(axes[f]) * axis.size) != 0;
      for (const Axes& others : axes) used = used || sharding::Overlap(others, axis);
      if (used) break;
      axes[f] = sharding::Concat(axes[f], {axis});
    }
  }
}

// Factors that are alone in their dimension wherever they occur: their shards may
// be uneven.
std::vector<char> LoneFactors(const ShardingRule& rule) {
  std::vector<char> lone(rule.factors.size(), 1);
  for (const auto* tensors : {&rule.operands, &rule.results}) {
    for (const TensorFactors& tensor : *tensors) {
      for (const std::vector<int32_t>& dim : tensor) {
        if (dim.size() < 2) continue;
        for (int32_t f : dim) lone[f] = 0;
      }
    }
  }
  return lone;
}

// Of every reduction factor the axes by which all operands are split already.
std::vector<Axes> AgreedSums(const ShardingRule& rule, const std::vector<Projection>& views,
                             size_t first_operand, const std::vector<char>& may_split) {
  std::vector<Axes> agreed(rule.factors.size());
  std::vector<char> seen(rule.factors.size());
  for (size_t i = 0; i < rule.operands.size(); ++i) {
    for (const std::vector<int32_t>& dim : rule.operands[i]) {
      for (int32_t f : dim) {
        if (rule.factors[f].kind != FactorKind::kReduction || !may_split[f]) continue;
        const Axes& axes = views[first_operand + i].axes[f];
        agreed[f] = seen[f] ? CommonPrefix(agreed[f], axes) : axes;
        seen[f] = 1;
      }
    }
  }
  return agreed;
}

// To bring an operand to a sharding, from the nearest form of it.
absl::StatusOr<Bytes> BytesTo(const TensorPlacement& operand, const sharding::Sharding& wanted,
                              ReshardPlans& plans) {
  if (operand.filled) return Bytes(0);
  ASSIGN_OR_RETURN(const ReshardPlan* plan, plans.Find(*operand.shape, *operand.sharding, wanted));
  Bytes bytes = plan->bytes;
  for (const sharding::Sharding& other : operand.others) {
    const auto found = plans.Find(*operand.shape, other, wanted);
    if (found.ok()) bytes = std::min(bytes, (*found)->bytes);
  }
  return bytes;
}

// To bring what the op gives to the result's sharding and to those that are asked of
// the result at once.
absl::StatusOr<Bytes> BytesFrom(const sharding::Sharding& made, const TensorPlacement& result,
                                ReshardPlans& plans) {
  ASSIGN_OR_RETURN(const ReshardPlan* plan, plans.Find(*result.shape, made, *result.sharding));
  Bytes by_way = plan->bytes, directly(0);
  for (const sharding::Sharding& wanted : result.wanted) {
    const auto first = plans.Find(*result.shape, made, wanted);
    const auto second = plans.Find(*result.shape, *result.sharding, wanted);
    if (!first.ok() || !second.ok()) return plan->bytes;
    directly += (*first)->bytes;
    by_way += std::min((*first)->bytes, (*second)->bytes);
  }
  return result.used_as_is ? by_way : std::min(by_way, directly);
}

// Drops splits of minor factors behind major ones that are not fully split.
void MakeExpressible(const ShardingRule& rule, std::vector<Axes>& axes) {
  for (bool again = true; again;) {
    again = false;
    for (const auto* tensors : {&rule.operands, &rule.results}) {
      for (const TensorFactors& tensor : *tensors) {
        for (const std::vector<int32_t>& dim : tensor) {
          bool full = true;
          for (int32_t f : dim) {
            if (!full && !axes[f].empty()) {
              axes[f].clear();
              again = true;
            }
            full = full && Product(axes[f]) == rule.factors[f].size;
          }
        }
      }
    }
  }
}

}  // namespace

absl::StatusOr<FactorChoice> ChooseFactors(const ShardingRule& rule,
                                           const std::vector<TensorPlacement>& operands,
                                           const std::vector<TensorPlacement>& results,
                                           ReshardPlans& plans, const SplitRules& rules) {
  const std::vector<char> lone = LoneFactors(rule);
  // All that may be split, and without partial results.
  std::vector<char> any(rule.factors.size()), whole_sums(rule.factors.size());
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const FactorKind kind = rule.factors[f].kind;
    whole_sums[f] =
        kind == FactorKind::kPassThrough || (kind == FactorKind::kPermutation && rules.own);
    any[f] = whole_sums[f] || (kind == FactorKind::kReduction && rules.reductions);
  }
  std::vector<Projection> views;  // results, then operands
  for (size_t i = 0; i < results.size(); ++i) {
    views.push_back(Project(*results[i].sharding, rule.results[i], rule.factors));
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    views.push_back(Project(*operands[i].sharding, rule.operands[i], rule.factors));
  }
  std::vector<Axes> agreed(rule.factors.size());
  if (rules.keep_sums || rules.keep_whole_sums) {
    agreed = AgreedSums(rule, views, results.size(), any);
  }
  if (rules.keep_whole_sums) {
    for (const Axes& wanted : views[0].axes) {
      for (Axes& axes : agreed) {
        if (sharding::Overlap(axes, wanted)) axes.clear();
      }
    }
  }
  // Steps of one device's loop nest; of large dimensions there are more than 64 bits count.
  const auto work = [&](const std::vector<Axes>& axes) {
    double steps = 1;
    for (size_t f = 0; f < axes.size(); ++f) {
      steps *= static_cast<double>(CeilDiv(rule.factors[f].size, Product(axes[f])));
    }
    return steps;
  };
  std::vector<Axes> as_result = agreed;
  double most_work = std::numeric_limits<double>::infinity();
  if (rules.keep_work && !results.empty()) {
    Fill(views[0], rule, whole_sums, lone, as_result);
    MakeExpressible(rule, as_result);
    most_work = work(as_result);
  }
  std::vector<std::vector<Axes>> tried;
  std::optional<FactorChoice> best;
  int64_t best_shards = 0;
  const auto consider = [&](std::vector<Axes> axes) -> absl::Status {
    MakeExpressible(rule, axes);
    if (std::ranges::find(tried, axes) != tried.end()) return absl::OkStatus();
    tried.push_back(axes);
    for (size_t f = 0; f < axes.size(); ++f) {
      if (!sharding::IsPrefix(agreed[f], axes[f])) return absl::OkStatus();
    }
    FactorChoice choice;
    choice.axes = axes;
    // Along these axes devices hold parts of the same elements.
    for (const Axes& split : axes) {
      if (sharding::Overlap(split, rules.unreduced)) return absl::OkStatus();
    }
    if (rules.own) {
      const std::optional<Bytes> own = rules.own(axes);
      if (!own) return absl::OkStatus();
      choice.bytes += *own;
    }
    int64_t shards = 1;
    Axes partial;
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      shards *= Product(axes[f]);
      if (rule.factors[f].kind == FactorKind::kReduction) {
        partial = sharding::Concat(partial, axes[f]);
      }
    }
    if (work(axes) > most_work) return absl::OkStatus();
    for (size_t i = 0; i < operands.size(); ++i) {
      choice.operands.push_back(FromFactors(axes, rule.operands[i], rule.factors));
      if (!rules.partial.empty() && rules.partial[i]) {
        choice.operands.back().unreduced = rules.unreduced;
      }
      // The same value twice is moved once.
      bool again = false;
      for (size_t j = 0; j < i; ++j) {
        again = again || (operands[j].shape == operands[i].shape &&
                          SamePlacement(choice.operands[j], choice.operands[i]));
      }
      if (again) continue;
      ASSIGN_OR_RETURN(const Bytes bytes, BytesTo(operands[i], choice.operands.back(), plans));
      choice.bytes += bytes;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      choice.results.push_back(FromFactors(axes, rule.results[i], rule.factors));
      choice.results.back().unreduced = sharding::Concat(partial, rules.unreduced);
      // Only part of what stays unreduced can be asked for.
      ASSIGN_OR_RETURN(const Bytes bytes, BytesFrom(choice.results.back(), results[i], plans));
      choice.bytes += bytes;
    }
    if (!best || choice.bytes < best->bytes ||
        (choice.bytes == best->bytes && shards > best_shards)) {
      best = std::move(choice);
      best_shards = shards;
    }
    return absl::OkStatus();
  };
  absl::Status failure = absl::OkStatus();
  if (rules.keep_work) {
    const absl::Status status = consider(as_result);
    if (!status.ok()) failure = status;
  }
  // Nothing is better, and what has many operands has many ways.
  const auto done = [&] { return best && best->bytes == Bytes(0); };
  const auto attempt = [&](std::vector<Axes> axes) {
    if (done()) return;
    absl::Status status = consider(std::move(axes));
    if (!status.ok() && failure.ok()) failure = std::move(status);
  };
  for (size_t first = 0; first < views.size() && !done(); ++first) {
    std::vector<Axes> axes(rule.factors.size());
    Fill(views[first], rule, any, lone, axes);
    for (size_t i = 0; i < views.size(); ++i) {
      if (i != first) Fill(views[i], rule, any, lone, axes);
    }
    attempt(axes);
    if (rules.own) {
      // Without what the op would have to bring by itself.
      for (size_t f = 0; f < rule.factors.size(); ++f) {
        if (rule.factors[f].kind == FactorKind::kPermutation) axes[f].clear();
      }
      attempt(axes);
    }
  }
  // A factor that must be whole may hand its axes to another one for as long as
  // the op runs: a sort along a split dimension, by an exchange of dimensions.
  for (const Projection& view : views) {
    for (size_t f = 0; f < rule.factors.size() && !done(); ++f) {
      if (any[f] || view.axes[f].empty()) continue;
      for (size_t g = 0; g < rule.factors.size(); ++g) {
        if (rule.factors[g].kind != FactorKind::kPassThrough) continue;
        std::vector<Axes> axes(rule.factors.size());
        for (const Projection& other : views) Fill(other, rule, whole_sums, lone, axes);
        const bool used = std::ranges::any_of(
            axes, [&](const Axes& others) { return sharding::Overlap(others, view.axes[f]); });
        if (used || rule.factors[g].size % (Product(axes[g]) * Product(view.axes[f])) != 0)
          continue;
        axes[g] = sharding::Concat(axes[g], view.axes[f]);
        attempt(axes);
      }
    }
  }
  // The result's own split alone, and none at all.
  std::vector<Axes> axes(rule.factors.size());
  if (!views.empty()) Fill(views[0], rule, whole_sums, lone, axes);
  attempt(axes);
  attempt(std::vector<Axes>(rule.factors.size()));
  if (!best) return failure;
  return std::move(*best);
}

}  // namespace tpusim::spmd
