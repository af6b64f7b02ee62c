#include "workloads/spmd/factor_choice.h"

#include <algorithm>
#include <optional>

#include "configs/status_macros.h"
#include "configs/units.h"
#include "workloads/sharding/factors/projection.h"
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

// Returns the axes by which all operands are split already: for every reduction factor, and, if
// `batches`, for those that all operands have.
std::vector<Axes> AgreedSums(const ShardingRule& rule, const std::vector<Projection>& views,
                             size_t first_operand, const std::vector<char>& may_split,
                             bool batches) {
  std::vector<Axes> agreed(rule.factors.size());
  std::vector<size_t> seen(rule.factors.size());
  for (size_t i = 0; i < rule.operands.size(); ++i) {
    for (const std::vector<int32_t>& dim : rule.operands[i]) {
      for (int32_t f : dim) {
        const bool sum = rule.factors[f].kind == FactorKind::kReduction;
        if (!may_split[f] || !(sum || batches)) continue;
        const Axes& axes = views[first_operand + i].axes[f];
        agreed[f] = seen[f] > 0 ? CommonPrefix(agreed[f], axes) : axes;
        ++seen[f];
      }
    }
  }
  for (size_t f = 0; f < seen.size(); ++f) {
    const bool sum = rule.factors[f].kind == FactorKind::kReduction;
    if (!sum && seen[f] < rule.operands.size()) agreed[f].clear();
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
  ASSIGN_OR_RETURN(
      const ReshardPlan* plan,
      plans.Find(*result.shape, WithBegunSums(made, *result.sharding), *result.sharding));
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

// Tries the splits that the tensors suggest and keeps the best.
class FactorChooser {
 public:
  FactorChooser(const ShardingRule& rule, const std::vector<TensorPlacement>& operands,
                const std::vector<TensorPlacement>& results, ReshardPlans& plans,
                const SplitRules& rules)
      : rule_(rule), operands_(operands), results_(results), plans_(plans), rules_(rules) {
    FindSplittable();
    Project();
    FindAgreed();
    FollowResult();
  }

  absl::StatusOr<FactorChoice> Run() {
    if (rules_.as_result) AttemptAsResult();
    if (!best_) {
      AttemptEachTensorFirst();
      if (rules_.lend) AttemptExchanges();
      AttemptResultAlone();
      Attempt(Unsplit());
    }
    if (!best_) return failure_;
    return *std::move(best_);
  }

 private:
  size_t factors() const { return rule_.factors.size(); }
  FactorKind KindOf(size_t factor) const { return rule_.factors[factor].kind; }
  std::vector<Axes> Unsplit() const { return std::vector<Axes>(factors()); }
  // Nothing is better, and an op with many operands has many splits to try.
  bool Done() const { return best_ && best_->bytes == Bytes(0); }

  void FindSplittable() {
    for (size_t f = 0; f < factors(); ++f) {
      const bool whole_sums = KindOf(f) == FactorKind::kPassThrough ||
                              (KindOf(f) == FactorKind::kPermutation && rules_.own);
      whole_sums_.push_back(whole_sums);
      any_.push_back(whole_sums || (KindOf(f) == FactorKind::kReduction && rules_.reductions));
    }
  }

  void Project() {
    for (size_t i = 0; i < results_.size(); ++i) {
      views_.push_back(
          sharding::Project(*results_[i].sharding, rule_.results[i], rule_.factors));
    }
    for (size_t i = 0; i < operands_.size(); ++i) {
      views_.push_back(
          sharding::Project(*operands_[i].sharding, rule_.operands[i], rule_.factors));
    }
  }

  void FindAgreed() {
    agreed_ = Unsplit();
    if (rules_.keep_sums || rules_.keep_whole_sums) {
      agreed_ = AgreedSums(rule_, views_, results_.size(), any_, rules_.as_result);
    }
    if (rules_.keep_whole_sums) {
      for (const Axes& wanted : views_[0].axes) {
        for (Axes& axes : agreed_) {
          if (sharding::Overlap(axes, wanted)) axes.clear();
        }
      }
    }
    if (rules_.keep_operand) KeepOperand(results_.size() + *rules_.keep_operand);
  }

  // Adds splits of pass-through factors to those agreed on, unless another tensor has their axes
  // otherwise.
  void KeepOperand(size_t number) {
    std::vector<Axes> kept = Unsplit();
    Extend(views_[number], whole_sums_, kept);
    for (size_t f = 0; f < factors(); ++f) {
      bool disputed = false;
      for (const Projection& view : views_) {
        for (size_t g = 0; g < factors(); ++g) {
          disputed = disputed || (g != f && sharding::Overlap(kept[f], view.axes[g]));
        }
      }
      if (!disputed && KindOf(f) == FactorKind::kPassThrough) agreed_[f] = kept[f];
    }
  }

  void FollowResult() {
    as_result_ = agreed_;
    if (rules_.as_result) Extend(views_[0], whole_sums_, as_result_);
    MakeExpressible(rule_, as_result_);
  }

  void Extend(const Projection& view, const std::vector<char>& may_split,
              std::vector<Axes>& axes) const {
    Fill(view, rule_, may_split, lone_, axes);
  }

  // The result's split as it is, and with sums that the operands allow.
  void AttemptAsResult() {
    Attempt(as_result_);
    std::vector<Axes> axes = as_result_;
    for (const Projection& view : views_) {
      for (size_t f = 0; f < factors(); ++f) {
        if (KindOf(f) != FactorKind::kReduction || !any_[f]) continue;
        for (const AxisRef& axis : view.axes[f]) {
          if (!MaySum(axes, f, axis)) break;
          axes[f] = sharding::Concat(axes[f], {axis});
        }
      }
    }
    Attempt(axes);
  }

  // Whether every tensor has the axis at this factor or nowhere.
  bool MaySum(const std::vector<Axes>& axes, size_t factor, const AxisRef& axis) const {
    if (rule_.factors[factor].size % (Product(axes[factor]) * axis.size) != 0) return false;
    for (const Axes& used : axes) {
      if (sharding::Overlap(used, axis)) return false;
    }
    return std::ranges::none_of(views_, [&](const Projection& view) {
      for (size_t g = 0; g < factors(); ++g) {
        if (g != factor && sharding::Overlap(view.axes[g], axis)) return true;
      }
      return false;
    });
  }

  // Every tensor in turn has the first say, then the others in order.
  void AttemptEachTensorFirst() {
    for (size_t first = 0; first < views_.size() && !Done(); ++first) {
      std::vector<Axes> axes = Unsplit();
      Extend(views_[first], any_, axes);
      for (size_t i = 0; i < views_.size(); ++i) {
        if (i != first) Extend(views_[i], any_, axes);
      }
      Attempt(axes);
      if (!rules_.own) continue;
      // Without the permutation factors, whose data the op would have to move by itself.
      for (size_t f = 0; f < factors(); ++f) {
        if (KindOf(f) == FactorKind::kPermutation) axes[f].clear();
      }
      Attempt(axes);
    }
  }

  // A sort along a split dimension, for example, by an exchange of dimensions.
  void AttemptExchanges() {
    for (const Projection& view : views_) {
      for (size_t f = 0; f < factors() && !Done(); ++f) {
        if (!any_[f] && !view.axes[f].empty()) AttemptLending(view.axes[f]);
      }
    }
  }

  void AttemptLending(const Axes& lent) {
    for (size_t g = 0; g < factors(); ++g) {
      if (KindOf(g) != FactorKind::kPassThrough) continue;
      std::vector<Axes> axes = Unsplit();
      for (const Projection& view : views_) Extend(view, whole_sums_, axes);
      const bool used = std::ranges::any_of(
          axes, [&](const Axes& others) { return sharding::Overlap(others, lent); });
      if (used || rule_.factors[g].size % (Product(axes[g]) * Product(lent)) != 0) continue;
      axes[g] = sharding::Concat(axes[g], lent);
      Attempt(axes);
    }
  }

  void AttemptResultAlone() {
    std::vector<Axes> axes = Unsplit();
    if (!views_.empty()) Extend(views_[0], whole_sums_, axes);
    Attempt(axes);
  }

  // Prices a split and keeps it if it is the best so far; the first error is kept, too.
  void Attempt(std::vector<Axes> axes) {
    if (Done()) return;
    MakeExpressible(rule_, axes);
    if (std::ranges::find(tried_, axes) != tried_.end()) return;
    tried_.push_back(axes);
    if (!IsAllowed(axes)) return;
    const absl::StatusOr<std::optional<FactorChoice>> choice = PriceOf(axes);
    if (!choice.ok()) {
      if (failure_.ok()) failure_ = choice.status();
    } else if (*choice) {
      Keep(**choice);
    }
  }

  bool IsAllowed(const std::vector<Axes>& axes) const {
    for (size_t f = 0; f < axes.size(); ++f) {
      if (!sharding::IsPrefix(agreed_[f], axes[f])) return false;
      // Along unreduced axes devices hold parts of the same elements.
      if (sharding::Overlap(axes[f], rules_.unreduced)) return false;
    }
    return true;
  }

  // nullopt: the op cannot be split like this.
  absl::StatusOr<std::optional<FactorChoice>> PriceOf(const std::vector<Axes>& axes) {
    FactorChoice choice;
    choice.axes = axes;
    if (rules_.own) {
      const std::optional<Bytes> own = rules_.own(axes);
      if (!own) return std::nullopt;
      choice.bytes += *own;
    }
    RETURN_IF_ERROR(AddOperands(choice));
    RETURN_IF_ERROR(AddResults(choice));
    return choice;
  }

  absl::Status AddOperands(FactorChoice& choice) {
    for (size_t i = 0; i < operands_.size(); ++i) {
      choice.operands.push_back(FromFactors(choice.axes, rule_.operands[i], rule_.factors));
      if (!rules_.partial.empty() && rules_.partial[i]) {
        choice.operands.back().unreduced = rules_.unreduced;
        choice.operands.back().reduction = rules_.reduction;
      }
      // The same value twice is moved once.
      bool again = false;
      for (size_t j = 0; j < i; ++j) {
        again = again || (operands_[j].shape == operands_[i].shape &&
                          SamePlacement(choice.operands[j], choice.operands[i]));
      }
      if (again) continue;
      ASSIGN_OR_RETURN(const Bytes bytes, BytesTo(operands_[i], choice.operands.back(), plans_));
      choice.bytes += bytes;
    }
    return absl::OkStatus();
  }

  absl::Status AddResults(FactorChoice& choice) {
    Axes partial;
    for (size_t f = 0; f < factors(); ++f) {
      if (KindOf(f) == FactorKind::kReduction) partial = sharding::Concat(partial, choice.axes[f]);
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      choice.results.push_back(FromFactors(choice.axes, rule_.results[i], rule_.factors));
      choice.results.back().unreduced = sharding::Concat(partial, rules_.unreduced);
      if (!choice.results.back().unreduced.empty()) {
        choice.results.back().reduction = rules_.reduction;
      }
      // Only part of what stays unreduced can be asked for.
      ASSIGN_OR_RETURN(const Bytes bytes, BytesFrom(choice.results.back(), results_[i], plans_));
      choice.bytes += bytes;
    }
    return absl::OkStatus();
  }

  void Keep(const FactorChoice& choice) {
    int64_t shards = 1;
    for (const Axes& split : choice.axes) shards *= Product(split);
    const bool better = !best_ || choice.bytes < best_->bytes ||
                        (choice.bytes == best_->bytes && shards > best_shards_);
    if (!better) return;
    best_ = choice;
    best_shards_ = shards;
  }

  const ShardingRule& rule_;
  const std::vector<TensorPlacement>&operands_, &results_;
  ReshardPlans& plans_;
  const SplitRules& rules_;
  const std::vector<char> lone_ = LoneFactors(rule_);
  std::vector<char> any_;         // factors that may be split
  std::vector<char> whole_sums_;  // factors that may be split without partial results
  std::vector<Projection> views_;  // results, then operands
  std::vector<Axes> agreed_;       // every split has these, factor by factor
  std::vector<Axes> as_result_;
  std::vector<std::vector<Axes>> tried_;
  std::optional<FactorChoice> best_;
  int64_t best_shards_ = 0;
  absl::Status failure_ = absl::OkStatus();
};

}  // namespace

sharding::Sharding WithBegunSums(sharding::Sharding from, const sharding::Sharding& to) {
  const bool whole = from.unreduced.empty();
  if (!whole && from.reduction != to.reduction) return from;
  for (const AxisRef& axis : to.unreduced) {
    const bool splits = std::ranges::any_of(from.dims, [&](const sharding::DimSharding& dim) {
      return sharding::Overlap(dim.axes, axis);
    });
    if (!splits && !sharding::Overlap(from.unreduced, axis)) from.unreduced.push_back(axis);
  }
  if (whole && !from.unreduced.empty()) from.reduction = to.reduction;
  return from;
}

absl::StatusOr<FactorChoice> ChooseFactors(const ShardingRule& rule,
                                           const std::vector<TensorPlacement>& operands,
                                           const std::vector<TensorPlacement>& results,
                                           ReshardPlans& plans, const SplitRules& rules) {
  return FactorChooser(rule, operands, results, plans, rules).Run();
}

}  // namespace tpusim::spmd
