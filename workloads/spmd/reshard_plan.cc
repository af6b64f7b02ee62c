#include "workloads/spmd/reshard_plan.h"

#include <algorithm>

#include "configs/status_macros.h"
#include "configs/units.h"
#include "fmt/format.h"
#include "workloads/spmd/reshard_order.h"

namespace tpusim::spmd {
namespace {

using sharding::Axes;
using sharding::AxisRef;
using sharding::DimSharding;
using sharding::Mesh;
using sharding::Product;
using sharding::Sharding;

// A step as text, and what moves the value itself.
struct KindRow {
  std::string_view text, moved_by;
};

// The rows by kind.
constexpr KindRow kKinds[] = {
    {"slice to {after}", ""},
    {"all-gather {dim} over {axes}", "all-gather"},
    {"all-to-all {exchanges} over {axes}", "all-to-all"},
    {"collective-permute to {after}", "collective-permute"},
    {"all-reduce over {axes}", ""},
    {"reduce-scatter {dim} over {axes}", ""},
    {"refit {dim} to {after}", "collective-permute"},
    {"sum of parts {dim} over {axes}", "all-gather"},
};

Sharding ToSharding(const ReshardState& state, const Axes& kept) {
  Sharding result = sharding::Replicated(static_cast<int64_t>(state.dims.size()));
  for (size_t d = 0; d < state.dims.size(); ++d) {
    result.dims[d].axes = sharding::Joined(state.dims[d]);
  }
  result.unreduced = sharding::Joined(sharding::Concat(kept, state.sums));
  return result;
}

void Append(ReshardPlan* plan, ReshardStep step) {
  plan->bytes += step.bytes;
  if (step.kind == ReshardKind::kSlice && !plan->steps.empty() &&
      plan->steps.back().kind == ReshardKind::kSlice) {
    plan->steps.back().after = std::move(step.after);
    return;
  }
  plan->steps.push_back(std::move(step));
}

}  // namespace

absl::StatusOr<ReshardPlan> PlanReshard(const hlo::Shape& shape, const Sharding& from,
                                        const Sharding& to, const Mesh& mesh,
                                        const ReshardLatency& latency) {
  ReshardPlan plan;
  if (sharding::SamePlacement(from, to)) return plan;
  ReshardState state;
  std::vector<Axes> target;
  for (const DimSharding& dim : from.dims) state.dims.push_back(dim.axes);
  for (const DimSharding& dim : to.dims) target.push_back(dim.axes);
  if (!from.unreduced.empty() && !to.unreduced.empty() && from.reduction != to.reduction) {
    return NoRule(fmt::format("{} is left unreduced one way and wanted another: {} becomes {}",
                              shape.ToString(), ToString(from, mesh), ToString(to, mesh)));
  }
  Axes unreduced = from.unreduced, kept = to.unreduced;
  sharding::CutAlike({&unreduced, &kept});
  for (const AxisRef& axis : kept) {
    if (!Contains(unreduced, axis)) {
      return NoRule(fmt::format("{} is no partial sum over {} and cannot become one (wanted: {})",
                                shape.ToString(), ToString(axis, mesh), ToString(to, mesh)));
    }
  }
  for (const AxisRef& axis : unreduced) {
    if (!Contains(kept, axis)) state.sums.push_back(axis);
  }
  std::vector<ReshardMove> moves = MovesInOrder(mesh, shape, state, target, kept, latency);
  const auto whole = [](const ReshardMove& move) { return IsWhole(move.after.dims); };
  // A small value that is gathered in full to save a collective is no reason to warn.
  plan.full_gather =
      !IsWhole(state.dims) && !IsWhole(target) && std::ranges::any_of(moves, whole) &&
      std::ranges::any_of(MovesInOrder(mesh, shape, state, target, kept, {}), whole);
  for (ReshardMove& move : moves) {
    ReshardStep step{move.kind,
                     sharding::Joined(move.axes),
                     move.dim,
                     std::move(move.exchanges),
                     ToSharding(state, kept),
                     ToSharding(move.after, kept),
                     Bytes(move.bytes)};
    state = std::move(move.after);
    Append(&plan, std::move(step));
  }
  return plan;
}

absl::StatusOr<const ReshardPlan*> ReshardPlans::Find(const hlo::Shape& shape, const Sharding& from,
                                                      const Sharding& to) {
  if (sharding::SamePlacement(from, to)) return &none_;
  std::string key;
  const auto add = [&](int64_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  add(static_cast<int64_t>(shape.element_type));
  for (int64_t dim : shape.dims) add(dim);
  for (const Sharding* sharding : {&from, &to}) {
    const auto add_axes = [&](const Axes& axes) {
      add(static_cast<int64_t>(axes.size()));
      for (const AxisRef& axis : axes) add(axis.axis), add(axis.pre_size), add(axis.size);
    };
    for (const DimSharding& dim : sharding->dims) add_axes(dim.axes);
    add_axes(sharding->unreduced);
    add(static_cast<int64_t>(sharding->reduction));
  }
  if (const auto it = plans_.find(key); it != plans_.end()) return &it->second;
  ASSIGN_OR_RETURN(ReshardPlan plan, PlanReshard(shape, from, to, mesh_, latency_));
  return &plans_.emplace(std::move(key), std::move(plan)).first->second;
}

bool Nested(int64_t size, int64_t coarse, int64_t fine) {
  return coarse == 1 || CeilDiv(size, coarse) == fine / coarse * CeilDiv(size, fine);
}

std::string_view MovedBy(ReshardKind kind) { return kKinds[static_cast<size_t>(kind)].moved_by; }

std::string ToString(const ReshardPlan& plan, const Mesh& mesh) {
  std::string text;
  for (const ReshardStep& step : plan.steps) {
    std::string exchanges;
    for (const auto& [dim, to_dim, axes] : step.exchanges) {
      exchanges += fmt::format("{}{}->{}", exchanges.empty() ? "" : ", ", dim, to_dim);
    }
    text += fmt::format(fmt::runtime(kKinds[static_cast<size_t>(step.kind)].text),
                        fmt::arg("dim", step.dim), fmt::arg("exchanges", exchanges),
                        fmt::arg("after", ToString(step.after, mesh)),
                        fmt::arg("axes", ToString(step.axes, mesh)));
    if (step.bytes.value() != 0) text += fmt::format(" ({} bytes)", step.bytes.value());
    text += '\n';
  }
  return text;
}

}  // namespace tpusim::spmd
