#include "workloads/spmd/reshard_plan.h"

#include <algorithm>
#include <map>
#include <queue>

#include "configs/status_macros.h"
#include "configs/units.h"
#include "fmt/format.h"
#include "workloads/spmd/refit.h"

namespace tpusim::spmd {
namespace {

using sharding::Axes;
using sharding::AxisRef;
using sharding::DimSharding;
using sharding::Mesh;
using sharding::Product;
using sharding::Sharding;

// Beyond this many shardings in between, gather and slice.
constexpr size_t kMaxStates = 4000;
// Up to so many pieces of axes every sharding is looked at on the way.
constexpr size_t kFewPieces = 3;

// Axes of every dimension, all cut alike: pieces are equal or disjoint.
using State = std::vector<Axes>;

bool Contains(const Axes& axes, const AxisRef& axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

bool Uses(const State& state, const AxisRef& axis) {
  return std::any_of(state.begin(), state.end(),
                     [&](const Axes& axes) { return Contains(axes, axis); });
}

size_t CommonLength(const Axes& a, const Axes& b) {
  size_t length = 0;
  while (length < std::min(a.size(), b.size()) && a[length] == b[length]) ++length;
  return length;
}

bool Begins(const Axes& prefix, const Axes& axes) {
  return CommonLength(prefix, axes) == prefix.size();
}

Axes Suffix(const Axes& axes, size_t from) { return Axes(axes.begin() + from, axes.end()); }

// Bytes of one device's shard, padding included.
int64_t BytesOfShard(const hlo::Shape& shape, const State& state) {
  hlo::Shape shard = shape;
  for (size_t d = 0; d < state.size(); ++d) {
    shard.dims[d] = CeilDiv(shape.dims[d], Product(state[d]));
  }
  return shard.ByteSize().value();
}

// Bytes times links of an all-to-all of `bytes`, half of an axis away at most.
int64_t ExchangeBytes(int64_t bytes, const Axes& axes) {
  int64_t links = 0;
  for (const AxisRef& axis : axes) links += axis.size;
  return CeilDiv(bytes * links, int64_t{4});
}

// Cuts a piece of size `minor` off every axis that is larger.
void CutOff(Axes& axes, int64_t minor) {
  Axes cut;
  for (const AxisRef& axis : axes) {
    if (axis.size > minor && axis.size % minor == 0) {
      cut.push_back({axis.axis, axis.pre_size, axis.size / minor});
      cut.push_back({axis.axis, axis.pre_size * axis.size / minor, minor});
    } else {
      cut.push_back(axis);
    }
  }
  axes = std::move(cut);
}

Sharding ToSharding(const State& state, const Axes& unreduced) {
  Sharding result = sharding::Replicated(static_cast<int64_t>(state.size()));
  for (size_t d = 0; d < state.size(); ++d) result.dims[d].axes = sharding::Joined(state[d]);
  result.unreduced = sharding::Joined(unreduced);
  return result;
}

struct Move {
  ReshardKind kind = ReshardKind::kSlice;
  int64_t dim = -1, to_dim = -1;
  Axes axes;
  State after;
  int64_t bytes = 0;
};

class Planner {
 public:
  Planner(const Mesh& mesh, const hlo::Shape& shape, State from, State to)
      : mesh_(mesh), shape_(shape), from_(std::move(from)), to_(std::move(to)) {
    for (const State* state : {&from_, &to_}) {
      for (const Axes& axes : *state) {
        for (const AxisRef& axis : axes) {
          if (!Contains(pieces_, axis)) pieces_.push_back(axis);
        }
      }
    }
    std::sort(pieces_.begin(), pieces_.end());
  }

  // Bytes first, then steps.
  std::vector<Move> Shortest() const {
    struct Best {
      int64_t cost = 0;
      State previous;
      Move move;
      bool done = false;
    };
    std::map<State, Best> best;
    using Entry = std::pair<int64_t, State>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    best[from_] = {};
    queue.push({0, from_});
    while (!queue.empty() && best.size() < kMaxStates) {
      const auto [cost, state] = queue.top();
      queue.pop();
      Best& here = best.at(state);
      if (here.done) continue;
      here.done = true;
      if (state == to_) {
        std::vector<Move> moves;
        for (State at = to_; at != from_; at = best.at(at).previous) {
          moves.push_back(best.at(at).move);
        }
        std::reverse(moves.begin(), moves.end());
        return moves;
      }
      for (Move& move : Moves(state)) {
        // A slice is no step: several become one instruction.
        const int64_t steps = move.kind == ReshardKind::kSlice ? 0 : 1;
        const int64_t next_cost = cost + move.bytes * 16 + steps;
        const auto [it, fresh] = best.try_emplace(move.after);
        if (!fresh && (it->second.done || it->second.cost <= next_cost)) continue;
        State after = move.after;
        it->second = {next_cost, state, std::move(move), false};
        queue.push({next_cost, std::move(after)});
      }
    }
    return GatherAndSlice();
  }

 private:
  int64_t ShardBytes(const State& state) const { return BytesOfShard(shape_, state); }

  // Uneven shards of dimension d become those that are wanted.
  void AddRefit(const State& state, size_t d, std::vector<Move>& moves) const {
    const int64_t size = shape_.dims[d];
    if (state[d] == to_[d] || state[d].empty() || to_[d].empty() ||
        (size % Product(state[d]) == 0 && size % Product(to_[d]) == 0)) {
      return;
    }
    State after = state;
    after[d].clear();
    for (const AxisRef& axis : to_[d]) {
      if (Uses(after, axis)) return;
    }
    after[d] = to_[d];
    const auto [it, fresh] = refits_.try_emplace({static_cast<int64_t>(d), state[d]}, -1);
    if (fresh) {
      if (const auto refit = RefitOf(mesh_, state[d], to_[d], size)) {
        it->second = refit->element_links;
      }
    }
    if (it->second < 0) return;
    const int64_t line = ShardBytes(state) / CeilDiv(size, Product(state[d]));
    moves.push_back({ReshardKind::kRefit,
                     static_cast<int64_t>(d),
                     -1,
                     {},
                     after,
                     CeilDiv(line * it->second, mesh_.size())});
  }

  // Of every `keep` that may be left of dimension d when its minor axes go.
  bool MayKeep(const State& state, size_t d, size_t keep) const {
    if (keep < CommonLength(state[d], to_[d])) {
      // What is wanted as it is stays, unless the way leads over the whole.
      return keep == 0 &&
             (shape_.dims[d] % Product(state[d]) != 0 || shape_.dims[d] % Product(to_[d]) != 0);
    }
    const Axes head(state[d].begin(), state[d].begin() + keep);
    return Nested(shape_.dims[d], Product(head), Product(state[d]));
  }

  // Could dimension d of `state` be split by `axes` as well, on the way to the
  // wanted sharding (or to one with as many shards, for a permute)?
  bool MayGain(const State& state, size_t d, const Axes& axes) const {
    const int64_t shards = Product(state[d]) * Product(axes);
    if (!Nested(shape_.dims[d], Product(state[d]), shards)) return false;
    if (pieces_.size() <= kFewPieces) return true;
    Axes longer = state[d];
    longer.insert(longer.end(), axes.begin(), axes.end());
    return Begins(longer, to_[d]) || Product(to_[d]) % shards == 0;
  }

  std::vector<Move> Moves(const State& state) const {
    std::vector<Move> moves;
    const int64_t bytes = ShardBytes(state);
    for (size_t d = 0; d < state.size(); ++d) {
      for (const AxisRef& piece : pieces_) {
        if (Uses(state, piece) || !MayGain(state, d, {piece})) continue;
        State after = state;
        after[d].push_back(piece);
        moves.push_back({ReshardKind::kSlice, static_cast<int64_t>(d), -1, {piece}, after, 0});
      }
      for (size_t keep = 0; keep < state[d].size(); ++keep) {
        if (!MayKeep(state, d, keep)) continue;
        const Axes tail = Suffix(state[d], keep);
        const int64_t n = Product(tail);
        State after = state;
        after[d].resize(keep);
        moves.push_back(
            {ReshardKind::kAllGather, static_cast<int64_t>(d), -1, tail, after, (n - 1) * bytes});
        // Most shards are empty: less to add up than to gather.
        const int64_t whole = ShardBytes(after);
        if (2 * whole < n * bytes) {
          moves.push_back({ReshardKind::kSumOfParts, static_cast<int64_t>(d), -1, tail, after,
                           2 * (n - 1) * whole / n});
        }
        for (size_t t = 0; t < state.size(); ++t) {
          if (t == d || !MayGain(state, t, tail)) continue;
          State moved = after;
          moved[t].insert(moved[t].end(), tail.begin(), tail.end());
          moves.push_back({ReshardKind::kAllToAll, static_cast<int64_t>(d), static_cast<int64_t>(t),
                           tail, moved, ExchangeBytes(bytes, tail)});
        }
      }
      AddRefit(state, d, moves);
    }
    // Shards of one size may go anywhere: to the wanted devices, or so that the
    // axes to be gathered come last.
    bool same_counts = true;
    State reordered = state;
    for (size_t d = 0; d < state.size(); ++d) {
      same_counts = same_counts && Product(state[d]) == Product(to_[d]);
      if (std::all_of(to_[d].begin(), to_[d].end(),
                      [&](const AxisRef& axis) { return Contains(state[d], axis); })) {
        reordered[d] = to_[d];
        for (const AxisRef& axis : state[d]) {
          if (!Contains(to_[d], axis)) reordered[d].push_back(axis);
        }
      }
    }
    if (same_counts) {
      moves.push_back({ReshardKind::kCollectivePermute, -1, -1, {}, to_, bytes});
    } else if (reordered != state) {
      moves.push_back({ReshardKind::kCollectivePermute, -1, -1, {}, reordered, bytes});
    }
    return moves;
  }

  std::vector<Move> GatherAndSlice() const {
    std::vector<Move> moves;
    State state = from_;
    for (size_t d = 0; d < state.size(); ++d) {
      size_t keep = CommonLength(state[d], to_[d]);
      const Axes head(state[d].begin(), state[d].begin() + keep);
      if (!Nested(shape_.dims[d], Product(head), Product(state[d])) ||
          !Nested(shape_.dims[d], Product(head), Product(to_[d]))) {
        keep = 0;
      }
      if (keep == state[d].size() || state[d] == to_[d]) continue;
      const Axes tail = Suffix(state[d], keep);
      const int64_t bytes = ShardBytes(state) * (Product(tail) - 1);
      state[d].resize(keep);
      moves.push_back({ReshardKind::kAllGather, static_cast<int64_t>(d), -1, tail, state, bytes});
    }
    if (state != to_) moves.push_back({ReshardKind::kSlice, -1, -1, {}, to_, 0});
    return moves;
  }

  const Mesh& mesh_;
  const hlo::Shape& shape_;
  State from_, to_;
  // What a refit to the wanted shards moves; -1: there is none.
  mutable std::map<std::pair<int64_t, Axes>, int64_t> refits_;
  Axes pieces_;
};

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
                                        const Sharding& to, const Mesh& mesh) {
  ReshardPlan plan;
  if (sharding::SamePlacement(from, to)) return plan;
  // All axes in equal pieces.
  State state, target;
  for (const DimSharding& dim : from.dims) state.push_back(dim.axes);
  for (const DimSharding& dim : to.dims) target.push_back(dim.axes);
  Axes unreduced = from.unreduced, kept = to.unreduced;
  std::vector<Axes*> lists = {&unreduced, &kept};
  for (State* list : {&state, &target}) {
    for (Axes& axes : *list) lists.push_back(&axes);
  }
  // Two shards of one device become four of others: the axes that stand for the
  // factor of two, so that it is sliced off before the rest moves, or gathered after.
  for (size_t d = 0; d < state.size(); ++d) {
    const int64_t have = Product(state[d]), want = Product(target[d]);
    if (want > have && want % have == 0 && have > 1) CutOff(target[d], want / have);
    if (have > want && have % want == 0 && want > 1) CutOff(state[d], have / want);
  }
  const bool nested = sharding::CutAlike(lists);
  for (const AxisRef& axis : kept) {
    if (!Contains(unreduced, axis)) {
      return NoRule(fmt::format("{} is no partial sum over {} and cannot become one (wanted: {})",
                                shape.ToString(), ToString(axis, mesh), ToString(to, mesh)));
    }
  }
  Axes sums;  // to be added up
  for (const AxisRef& axis : unreduced) {
    if (!Contains(kept, axis)) sums.push_back(axis);
  }
  const auto left = [&] {
    Axes axes = kept;
    axes.insert(axes.end(), sums.begin(), sums.end());
    return axes;
  };
  const auto shard_bytes = [&] { return BytesOfShard(shape, state); };
  if (!sums.empty()) {
    // Less to add up: slices that are free now, then scattered sums.
    for (bool again = nested; again;) {
      again = false;
      for (size_t d = 0; d < state.size(); ++d) {
        while (Begins(state[d], target[d]) && state[d].size() < target[d].size()) {
          const AxisRef next = target[d][state[d].size()];
          if (Uses(state, next) || Contains(unreduced, next) ||
              !Nested(shape.dims[d], Product(state[d]), Product(state[d]) * next.size)) {
            break;
          }
          ReshardStep step{ReshardKind::kSlice,
                           {},
                           static_cast<int64_t>(d),
                           -1,
                           ToSharding(state, left()),
                           {},
                           Bytes(0)};
          state[d].push_back(next);
          step.after = ToSharding(state, left());
          Append(&plan, std::move(step));
          again = true;
        }
        Axes scattered;
        if (Begins(state[d], target[d])) {
          for (size_t i = state[d].size(); i < target[d].size(); ++i) {
            if (!Contains(sums, target[d][i])) break;
            const int64_t shards = Product(state[d]) * Product(scattered) * target[d][i].size;
            if (!Nested(shape.dims[d], Product(state[d]), shards)) break;
            scattered.push_back(target[d][i]);
          }
        }
        if (scattered.empty()) continue;
        const int64_t n = Product(scattered);
        ReshardStep step{ReshardKind::kReduceScatter,       sharding::Joined(scattered),
                         static_cast<int64_t>(d),           -1,
                         ToSharding(state, left()),         {},
                         Bytes(shard_bytes() / n * (n - 1))};
        std::erase_if(sums, [&](const AxisRef& axis) { return Contains(scattered, axis); });
        state[d].insert(state[d].end(), scattered.begin(), scattered.end());
        step.after = ToSharding(state, left());
        Append(&plan, std::move(step));
        again = true;
      }
    }
    if (!sums.empty()) {
      const int64_t n = Product(sums);
      ReshardStep step{ReshardKind::kAllReduce,
                       sharding::Joined(sums),
                       -1,
                       -1,
                       ToSharding(state, left()),
                       {},
                       Bytes(2 * (n - 1) * shard_bytes() / n)};
      sums.clear();
      step.after = ToSharding(state, left());
      Append(&plan, std::move(step));
    }
  }
  if (state == target) return plan;
  const State start = state;
  if (!nested) {
    // Pieces that overlap without nesting: only whole dimensions are common.
    for (size_t d = 0; d < state.size(); ++d) {
      if (sharding::Joined(state[d]) == sharding::Joined(target[d])) continue;
      if (state[d].empty()) continue;
      const int64_t n = Product(state[d]);
      ReshardStep step{ReshardKind::kAllGather,   state[d], static_cast<int64_t>(d),       -1,
                       ToSharding(state, left()), {},       Bytes((n - 1) * shard_bytes())};
      state[d].clear();
      step.after = ToSharding(state, left());
      Append(&plan, std::move(step));
    }
    Append(&plan, {ReshardKind::kSlice,
                   {},
                   -1,
                   -1,
                   ToSharding(state, left()),
                   ToSharding(target, left()),
                   Bytes(0)});
  } else {
    for (Move& move : Planner(mesh, shape, state, target).Shortest()) {
      ReshardStep step{
          move.kind,        sharding::Joined(move.axes), move.dim,
          move.to_dim,      ToSharding(state, left()),   ToSharding(move.after, left()),
          Bytes(move.bytes)};
      if (move.kind == ReshardKind::kSlice) step.axes.clear();
      state = std::move(move.after);
      Append(&plan, std::move(step));
    }
  }
  const auto whole = [](const Sharding& sharding) {
    return std::all_of(sharding.dims.begin(), sharding.dims.end(),
                       [](const DimSharding& dim) { return dim.axes.empty(); });
  };
  if (!whole(ToSharding(start, {})) && !whole(to)) {
    for (const ReshardStep& step : plan.steps) plan.full_gather |= whole(step.after);
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
  }
  if (const auto it = plans_.find(key); it != plans_.end()) return &it->second;
  ASSIGN_OR_RETURN(ReshardPlan plan, PlanReshard(shape, from, to, mesh_));
  return &plans_.emplace(std::move(key), std::move(plan)).first->second;
}

bool Nested(int64_t size, int64_t coarse, int64_t fine) {
  return coarse == 1 || CeilDiv(size, coarse) == fine / coarse * CeilDiv(size, fine);
}

std::string ToString(const ReshardPlan& plan, const Mesh& mesh) {
  std::string text;
  for (const ReshardStep& step : plan.steps) {
    switch (step.kind) {
      case ReshardKind::kSlice:
        text += fmt::format("slice to {}", ToString(step.after, mesh));
        break;
      case ReshardKind::kAllGather:
        text += fmt::format("all-gather {} over {}", step.dim, ToString(step.axes, mesh));
        break;
      case ReshardKind::kAllToAll:
        text += fmt::format("all-to-all {}->{} over {}", step.dim, step.to_dim,
                            ToString(step.axes, mesh));
        break;
      case ReshardKind::kCollectivePermute:
        text += fmt::format("collective-permute to {}", ToString(step.after, mesh));
        break;
      case ReshardKind::kSumOfParts:
        text += fmt::format("sum of parts {} over {}", step.dim, ToString(step.axes, mesh));
        break;
      case ReshardKind::kRefit:
        text += fmt::format("refit {} to {}", step.dim, ToString(step.after, mesh));
        break;
      case ReshardKind::kAllReduce:
        text += fmt::format("all-reduce over {}", ToString(step.axes, mesh));
        break;
      case ReshardKind::kReduceScatter:
        text += fmt::format("reduce-scatter {} over {}", step.dim, ToString(step.axes, mesh));
        break;
    }
    if (step.bytes.value() != 0) text += fmt::format(" ({} bytes)", step.bytes.value());
    text += '\n';
  }
  return text;
}

}  // namespace tpusim::spmd
