#include "workloads/spmd/factor_choice.h"

#include <algorithm>
#include <optional>

#include "configs/status_macros.h"
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

// Lets a tensor extend the factors as far as nobody before it objects.
void Fill(const Projection& projection, const ShardingRule& rule, bool reductions,
          std::vector<Axes>& axes) {
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const Factor& factor = rule.factors[f];
    const bool splits = factor.kind == FactorKind::kPassThrough ||
                        (factor.kind == FactorKind::kReduction && reductions);
    if (!splits || !sharding::IsPrefix(axes[f], projection.axes[f])) continue;
    for (const AxisRef& axis : sharding::AfterPrefix(axes[f], projection.axes[f])) {
      bool used = factor.size % (Product(axes[f]) * axis.size) != 0;
      for (const Axes& others : axes) used = used || sharding::Overlap(others, axis);
      if (used) break;
      axes[f] = sharding::Concat(axes[f], {axis});
    }
  }
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
                                           const sharding::Mesh& mesh, bool reductions) {
  std::vector<Projection> views;  // results, then operands
  for (size_t i = 0; i < results.size(); ++i) {
    views.push_back(Project(*results[i].sharding, rule.results[i], rule.factors));
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    views.push_back(Project(*operands[i].sharding, rule.operands[i], rule.factors));
  }
  std::vector<std::vector<Axes>> tried;
  std::optional<FactorChoice> best;
  int64_t best_shards = 0;
  const auto consider = [&](std::vector<Axes> axes) -> absl::Status {
    MakeExpressible(rule, axes);
    if (std::find(tried.begin(), tried.end(), axes) != tried.end()) return absl::OkStatus();
    tried.push_back(axes);
    FactorChoice choice;
    choice.axes = axes;
    int64_t shards = 1;
    Axes partial;
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      shards *= Product(axes[f]);
      if (rule.factors[f].kind == FactorKind::kReduction) {
        partial = sharding::Concat(partial, axes[f]);
      }
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      choice.operands.push_back(FromFactors(axes, rule.operands[i], rule.factors));
      ASSIGN_OR_RETURN(const ReshardPlan plan,
                       PlanReshard(*operands[i].shape, *operands[i].sharding,
                                   choice.operands.back(), mesh));
      choice.bytes += plan.bytes;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      choice.results.push_back(FromFactors(axes, rule.results[i], rule.factors));
      choice.results.back().unreduced = partial;
      // Only part of what stays unreduced can be asked for.
      ASSIGN_OR_RETURN(const ReshardPlan plan,
                       PlanReshard(*results[i].shape, choice.results.back(),
                                   *results[i].sharding, mesh));
      choice.bytes += plan.bytes;
    }
    if (!best || choice.bytes < best->bytes ||
        (choice.bytes == best->bytes && shards > best_shards)) {
      best = std::move(choice);
      best_shards = shards;
    }
    return absl::OkStatus();
  };
  absl::Status failure = absl::OkStatus();
  const auto attempt = [&](std::vector<Axes> axes) {
    absl::Status status = consider(std::move(axes));
    if (!status.ok() && failure.ok()) failure = std::move(status);
  };
  for (size_t first = 0; first < views.size(); ++first) {
    std::vector<Axes> axes(rule.factors.size());
    Fill(views[first], rule, reductions, axes);
    for (size_t i = 0; i < views.size(); ++i) {
      if (i != first) Fill(views[i], rule, reductions, axes);
    }
    attempt(axes);
  }
  // The result's own split alone, and none at all.
  std::vector<Axes> axes(rule.factors.size());
  if (!views.empty()) Fill(views[0], rule, false, axes);
  attempt(axes);
  attempt(std::vector<Axes>(rule.factors.size()));
  if (!best) return failure;
  return std::move(*best);
}

}  // namespace tpusim::spmd
