#include "workloads/spmd/reshard_sites.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "workloads/hlo/ir/opcode.h"
#include "workloads/sharding/factors/projection.h"
#include "workloads/sharding/stated/stated_constraints.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using sharding::Axes;
using sharding::AxisRef;
using sharding::Sharding;

// Returns the kind of the step that moves most; nullopt: there are slices and sums only.
std::optional<std::string_view> KindOf(const ReshardPlan& plan) {
  std::optional<std::string_view> kind;
  Bytes most{-1};
  for (const ReshardStep& step : plan.steps) {
    const std::string_view name = MovedBy(step.kind);
    if (name.empty()) continue;
    if (step.bytes > most) most = step.bytes, kind = name;
  }
  return kind;
}

// The dimension that an axis splits; -1: none.
int64_t DimensionOf(const Sharding& sharding, int32_t axis) {
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    for (const AxisRef& ref : sharding.dims[d].axes) {
      if (ref.axis == axis) return static_cast<int64_t>(d);
    }
  }
  return -1;
}

// The sharding with the axes that `to` has lost on the first dimension; nullopt: they do not
// divide it, or there are none.
std::optional<Sharding> SplitByBatch(const Sharding& from, const Sharding& to,
                                     const hlo::Shape& shape) {
  Axes lost;
  for (size_t d = 1; d < from.dims.size(); ++d) {
    for (const AxisRef& axis : from.dims[d].axes) {
      if (DimensionOf(to, axis.axis) != static_cast<int64_t>(d)) lost.push_back(axis);
    }
  }
  if (lost.empty()) return std::nullopt;
  Sharding split = from;
  for (sharding::DimSharding& dim : split.dims) {
    std::erase_if(dim.axes, [&](const AxisRef& axis) { return sharding::Overlap(lost, axis); });
  }
  split.dims[0].axes = sharding::Concat(split.dims[0].axes, lost);
  if (shape.dims[0] % sharding::Product(split.dims[0].axes) != 0) return std::nullopt;
  return split;
}

// The sharding with `axes` on dimension `dim` and on no other.
Sharding With(Sharding sharding, size_t dim, const Axes& axes) {
  for (sharding::DimSharding& other : sharding.dims) {
    std::erase_if(other.axes, [&](const AxisRef& axis) { return sharding::Overlap(axes, axis); });
  }
  sharding.dims[dim].axes = axes;
  sharding.unreduced.clear();
  return sharding;
}

}  // namespace

std::string ReshardSites::OriginOf(const Instruction* value, int32_t axis) const {
  for (const sharding::AxisOrigin& origin : in_.shardings.at(value).origins) {
    if (origin.axis == axis) return in_.origins[origin.origin];
  }
  return "";
}

bool ReshardSites::IsCostOfWeights(const Moved& moved,
                                   const std::vector<Constraint>& constraints) const {
  if (!argument_data_.Is(moved.value)) return false;
  // An argument may be a batch, too, if the result could be split as it is: of numbers to look
  // something up with, or where the other operand is an argument as well and smaller.
  if (constraints.empty() || constraints[0].values[0] != moved.user->name()) return true;
  if (!hlo::IsFloating(moved.value->shape().element_type)) return false;
  const Bytes bytes = moved.value->shape().ByteSize();
  for (const Instruction* operand : moved.user->operands()) {
    if (operand == moved.value || !operand->shape().IsArray()) continue;
    if (operand->shape().rank() > 0 && argument_data_.Is(operand) &&
        operand->shape().ByteSize() < bytes) {
      return false;
    }
  }
  return true;
}

std::string ReshardSites::Why(const Moved& moved, const Sharding& from, const Sharding& to) const {
  const std::vector<Sharding>& results = in_.shardings.at(moved.user).leaves;
  std::vector<std::string> reasons;
  const auto says = [](const std::string& origin) {
    return origin.empty() ? "" : fmt::format(" (from {})", origin);
  };
  for (const sharding::DimSharding& dim : from.dims) {
    for (const AxisRef& axis : dim.axes) {
      const int64_t before = DimensionOf(from, axis.axis), after = DimensionOf(to, axis.axis);
      if (before == after) continue;
      const std::string& name = in_.mesh.axes[axis.axis].name;
      std::string text = fmt::format("`{}` shards dim {} of {}{}", name, before,
                                     moved.value->name(), says(OriginOf(moved.value, axis.axis)));
      // An op may have no result but an empty tuple.
      const int64_t of_result = results.empty() ? -1 : DimensionOf(results[0], axis.axis);
      if (moved.value != moved.user && of_result >= 0) {
        text += fmt::format(" but dim {} of {}{}", of_result, moved.user->name(),
                            says(OriginOf(moved.user, axis.axis)));
      } else if (after >= 0) {
        text += fmt::format(" but is needed on dim {}", after);
      } else {
        text += " but the whole dimension is needed";
      }
      reasons.push_back(std::move(text));
    }
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

std::vector<ReshardSites::Constraint> ReshardSites::ConstraintsFor(const Moved& moved,
                                                                   const Sharding& from,
                                                                   const Sharding& to) const {
  std::vector<Constraint> found;
  const auto add = [&](const Instruction* value, const Sharding& sharding) {
    if (SamePlacement(sharding, in_.shardings.at(value).leaves[0])) return;
    for (const Constraint& other : found) {
      if (other.values[0] == value->name() && SamePlacement(other.sharding, sharding)) return;
    }
    found.push_back({{value->name()}, sharding});
  };
  if (!moved.user->shape().IsArray()) return found;
  const Sharding& result = in_.shardings.at(moved.user).leaves[0];
  if (moved.value == moved.user) {
    // The result as it is computed.
    Sharding computed = from;
    computed.unreduced.clear();
    add(moved.user, computed);
    return found;
  }
  // The result split as the operand is, where a dimension of both is one loop of the op.
  const sharding::Projection view =
      Project(from, moved.rule->operands[moved.operand], moved.rule->factors);
  const sharding::TensorFactors& dims = moved.rule->results[0];
  Sharding kept = result;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].size() != 1) continue;
    const int32_t f = dims[d][0];
    if (view.axes[f].empty() || moved.rule->factors[f].kind != sharding::FactorKind::kPassThrough) {
      continue;
    }
    kept = With(std::move(kept), d, view.axes[f]);
  }
  add(moved.user, kept);
  if (argument_data_.Is(moved.value) || !to.unreduced.empty()) return found;
  // The operand split by its first dimension, which of activations is the batch.
  if (const std::optional<Sharding> by_batch = SplitByBatch(from, to, moved.value->shape())) {
    add(moved.value, *by_batch);
  }
  // The operand as it is needed, from where it is made.
  add(moved.value, to);
  return found;
}

int32_t ReshardSites::Note(const Moved& moved, const Sharding& from, const Sharding& to,
                           const ReshardPlan& plan) {
  const std::optional<std::string_view> kind = KindOf(plan);
  if (!kind || !moved.value->shape().IsArray()) return -1;
  std::vector<Constraint> constraints = ConstraintsFor(moved, from, to);
  if (IsCostOfWeights(moved, constraints)) return -1;
  const std::string source = moved.user->SourceLocation();
  const std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", *kind, source, hlo::OpcodeName(moved.user->opcode()),
                  moved.value == moved.user ? -1 : static_cast<int64_t>(moved.operand),
                  moved.value->shape().ToString(), moved.user->shape().ToString(),
                  ToString(from, in_.mesh), ToString(to, in_.mesh));
  const auto [it, fresh] = index_.emplace(key, static_cast<int32_t>(sites_.size()));
  if (!fresh) {
    ++sites_[it->second].places;
    std::vector<Constraint>& known = constraints_[it->second];
    for (size_t i = 0; i < std::min(known.size(), constraints.size()); ++i) {
      const std::string& name = constraints[i].values[0];
      std::vector<std::string>& names = known[i].values;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    return it->second;
  }
  isa::ReshardSite& site = sites_.emplace_back();
  site.kind = *kind;
  site.value = moved.value->name();
  site.user = moved.user->name();
  site.scope = moved.user->op_name();
  site.source = source;
  site.shape = moved.value->shape().ToString();
  site.whole = moved.value->shape().ByteSize();
  // Masks follow the numbers that they are for.
  if (moved.user != moved.value && !constraints.empty() &&
      constraints[0].values[0] == moved.user->name() &&
      hlo::IsFloating(moved.user->shape().element_type)) {
    site.lost_by = moved.user->shape().ByteSize();
  }
  site.from = ToString(from, in_.mesh);
  site.to = ToString(to, in_.mesh);
  site.why = Why(moved, from, to);
  site.bytes = plan.bytes;
  site.places = 1;
  constraints_.push_back(std::move(constraints));
  return it->second;
}

std::vector<isa::ReshardSite> ReshardSites::Take() {
  for (size_t i = 0; i < sites_.size(); ++i) {
    for (const Constraint& constraint : constraints_[i]) {
      sites_[i].constraints.push_back({fmt::format("{}={}", fmt::join(constraint.values, ","),
                                                   SpecText(constraint.sharding, in_.mesh)),
                                       constraint.values[0] == sites_[i].user});
    }
  }
  return std::move(sites_);
}

}  // namespace tpusim::spmd
