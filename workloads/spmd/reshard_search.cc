#include "workloads/spmd/reshard_search.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "configs/units.h"
#include "workloads/spmd/limits.h"
#include "workloads/spmd/refit.h"

namespace tpusim::spmd {
namespace {

using sharding::Axes;
using sharding::AxisRef;
using sharding::Product;
using Kind = ReshardKind;

size_t CommonLength(const Axes& a, const Axes& b) {
  size_t length = 0;
  while (length < std::min(a.size(), b.size()) && a[length] == b[length]) ++length;
  return length;
}

bool Begins(const Axes& prefix, const Axes& axes) {
  return CommonLength(prefix, axes) == prefix.size();
}

Axes Suffix(const Axes& axes, size_t from) { return Axes(axes.begin() + from, axes.end()); }

// Links that the last of what a collective moves crosses one after the other, with both
// ways round an axis in use; for an all-reduce there and back.
int64_t Hops(const ReshardState& from, const ReshardMove& move) {
  Axes axes = move.axes;
  if (move.kind == Kind::kCollectivePermute) {
    for (size_t d = 0; d < from.dims.size(); ++d) {
      const Axes& before = from.dims[d];
      const Axes& after = move.after.dims[d];
      const size_t common = CommonLength(before, after);
      for (const Axes& list : {Suffix(before, common), Suffix(after, common)}) {
        for (const AxisRef& axis : list) {
          if (!Contains(axes, axis)) axes.push_back(axis);
        }
      }
    }
  }
  int64_t sizes = 0;
  for (const AxisRef& axis : axes) sizes += axis.size;
  const bool twice = move.kind == Kind::kAllReduce || move.kind == Kind::kSumOfParts;
  return twice ? sizes : CeilDiv(sizes, int64_t{2});
}

}  // namespace

bool IsWhole(const std::vector<Axes>& dims) {
  return std::ranges::all_of(dims, [](const Axes& axes) { return Product(axes) == 1; });
}

int64_t BytesOfShard(const hlo::Shape& shape, const std::vector<Axes>& dims) {
  hlo::Shape shard = shape;
  for (size_t d = 0; d < dims.size(); ++d) {
    shard.dims[d] = CeilDiv(shape.dims[d], Product(dims[d]));
  }
  return shard.ByteSize().value();
}

int64_t ExchangeBytes(int64_t bytes, const Axes& axes) {
  int64_t links = 0;
  for (const AxisRef& axis : axes) links += axis.size;
  return CeilDiv(bytes * links, int64_t{4});
}

ReshardSearch::ReshardSearch(const sharding::Mesh& mesh, const hlo::Shape& shape, ReshardState from,
                             std::vector<Axes> to, Axes kept)
    : mesh_(mesh),
      shape_(shape),
      from_(std::move(from)),
      to_{std::move(to), {}},
      kept_(std::move(kept)) {
  for (const ReshardState* state : {&from_, &to_}) {
    for (const Axes& axes : state->dims) {
      for (const AxisRef& axis : axes) {
        if (!Contains(pieces_, axis)) pieces_.push_back(axis);
      }
    }
  }
  std::ranges::sort(pieces_);
}

std::vector<ReshardMove> ReshardSearch::Shortest(const ReshardLatency& latency) const {
  struct Best {
    int64_t cost = 0;
    ReshardState previous;
    ReshardMove move;
    bool done = false;
  };
  std::map<ReshardState, Best> best;
  using Entry = std::pair<int64_t, ReshardState>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  best[from_] = {};
  queue.push({0, from_});
  while (!queue.empty() && std::ssize(best) < limits::kReshardStates.most()) {
    const auto [cost, state] = queue.top();
    queue.pop();
    Best& here = best.at(state);
    if (here.done) continue;
    here.done = true;
    if (state == to_) {
      std::vector<ReshardMove> moves;
      for (ReshardState at = to_; at != from_; at = best.at(at).previous) {
        moves.push_back(best.at(at).move);
      }
      std::ranges::reverse(moves);
      return moves;
    }
    for (ReshardMove& move : Moves(state)) {
      int64_t length = 0;  // a slice is no step: several become one instruction
      if (move.kind != Kind::kSlice) {
        length = move.bytes + (latency.start + latency.hop * Hops(state, move)).value();
        length = length * 16 + 1;  // among equals the fewest steps
      }
      const auto [it, fresh] = best.try_emplace(move.after);
      if (!fresh && (it->second.done || it->second.cost <= cost + length)) continue;
      ReshardState after = move.after;
      it->second = {cost + length, state, std::move(move), false};
      queue.push({cost + length, std::move(after)});
    }
  }
  if (!queue.empty()) limits::kReshardStates.Reached();
  return GatherAndSlice();
}

int64_t ReshardSearch::ShardBytes(const ReshardState& state) const {
  return BytesOfShard(shape_, state.dims);
}

// Returns whether `keep` axes may be left of dimension d when its minor axes go.
bool ReshardSearch::MayKeep(const ReshardState& state, size_t d, size_t keep) const {
  const Axes& have = state.dims[d];
  const Axes& want = to_.dims[d];
  if (keep < CommonLength(have, want)) {
    // What is wanted as it is stays, unless the way leads over the whole.
    return keep == 0 &&
           (shape_.dims[d] % Product(have) != 0 || shape_.dims[d] % Product(want) != 0);
  }
  const Axes head(have.begin(), have.begin() + keep);
  return Nested(shape_.dims[d], Product(head), Product(have));
}

// Could dimension d of `state` be split by `axes` as well, on the way to the
// wanted sharding (or to one with as many shards, for a permute)?
bool ReshardSearch::MayGain(const ReshardState& state, size_t d, const Axes& axes) const {
  const int64_t shards = Product(state.dims[d]) * Product(axes);
  if (!Nested(shape_.dims[d], Product(state.dims[d]), shards)) return false;
  if (std::ssize(pieces_) <= limits::kReshardPieces.most()) return true;
  Axes longer = state.dims[d];
  longer.insert(longer.end(), axes.begin(), axes.end());
  if (Begins(longer, to_.dims[d]) || Product(to_.dims[d]) % shards == 0) return true;
  limits::kReshardPieces.Reached();
  return false;
}

void ReshardSearch::AddSlices(const ReshardState& state, size_t d,
                              std::vector<ReshardMove>& moves) const {
  for (const AxisRef& piece : pieces_) {
    const bool used =
        Contains(state.sums, piece) || Contains(kept_, piece) ||
        std::ranges::any_of(state.dims, [&](const Axes& axes) { return Contains(axes, piece); });
    if (used || !MayGain(state, d, {piece})) continue;
    ReshardState after = state;
    after.dims[d].push_back(piece);
    moves.push_back({Kind::kSlice, static_cast<int64_t>(d), -1, {piece}, std::move(after), 0});
  }
}

void ReshardSearch::AddGathers(const ReshardState& state, size_t d,
                               std::vector<ReshardMove>& moves) const {
  const int64_t dim = static_cast<int64_t>(d);
  const int64_t bytes = ShardBytes(state);
  for (size_t keep = 0; keep < state.dims[d].size(); ++keep) {
    if (!MayKeep(state, d, keep)) continue;
    const Axes tail = Suffix(state.dims[d], keep);
    const int64_t n = Product(tail);
    ReshardState after = state;
    after.dims[d].resize(keep);
    moves.push_back({Kind::kAllGather, dim, -1, tail, after, (n - 1) * bytes});
    // Most shards are empty: less to add up than to gather.
    const int64_t whole = ShardBytes(after);
    if (2 * whole < n * bytes) {
      moves.push_back({Kind::kSumOfParts, dim, -1, tail, after, 2 * (n - 1) * whole / n});
    }
    for (size_t t = 0; t < state.dims.size(); ++t) {
      if (t == d || !MayGain(state, t, tail)) continue;
      ReshardState moved = after;
      moved.dims[t].insert(moved.dims[t].end(), tail.begin(), tail.end());
      moves.push_back({Kind::kAllToAll, dim, static_cast<int64_t>(t), tail, std::move(moved),
                       ExchangeBytes(bytes, tail)});
    }
  }
}

// Uneven shards of dimension d become those that are wanted. Pieces come from any holder:
// not while devices hold different partial sums.
void ReshardSearch::AddRefit(const ReshardState& state, size_t d,
                             std::vector<ReshardMove>& moves) const {
  const int64_t size = shape_.dims[d];
  const Axes& have = state.dims[d];
  const Axes& want = to_.dims[d];
  if (have == want || have.empty() || want.empty() || !state.sums.empty() || !kept_.empty() ||
      (size % Product(have) == 0 && size % Product(want) == 0)) {
    return;
  }
  for (size_t other = 0; other < state.dims.size(); ++other) {
    for (const AxisRef& axis : want) {
      if (other != d && Contains(state.dims[other], axis)) return;
    }
  }
  const auto [it, fresh] = refits_.try_emplace({static_cast<int64_t>(d), have}, -1);
  if (fresh) {
    if (const auto refit = RefitOf(mesh_, have, want, size)) it->second = refit->element_links;
  }
  if (it->second < 0) return;
  const int64_t line = ShardBytes(state) / CeilDiv(size, Product(have));
  ReshardState after = state;
  after.dims[d] = want;
  moves.push_back({Kind::kRefit,
                   static_cast<int64_t>(d),
                   -1,
                   {},
                   std::move(after),
                   CeilDiv(line * it->second, mesh_.size())});
}

ReshardMove SumUp(const hlo::Shape& shape, const ReshardState& state) {
  const int64_t n = Product(state.sums);
  ReshardState after = state;
  after.sums.clear();
  return {Kind::kAllReduce,
          -1,
          -1,
          state.sums,
          std::move(after),
          2 * (n - 1) * BytesOfShard(shape, state.dims) / n};
}

// Adds the move of all sums at once, and those that a dimension continues with.
void ReshardSearch::AddSums(const ReshardState& state, std::vector<ReshardMove>& moves) const {
  if (state.sums.empty()) return;
  moves.push_back(SumUp(shape_, state));
  const int64_t bytes = ShardBytes(state);
  const auto scatter = [&](size_t d, const Axes& axes) {
    if (!MayGain(state, d, axes)) return;
    const int64_t n = Product(axes);
    ReshardState after = state;
    std::erase_if(after.sums, [&](const AxisRef& axis) { return Contains(axes, axis); });
    after.dims[d].insert(after.dims[d].end(), axes.begin(), axes.end());
    moves.push_back({Kind::kReduceScatter, static_cast<int64_t>(d), -1, axes, std::move(after),
                     bytes / n * (n - 1)});
  };
  for (size_t d = 0; d < state.dims.size(); ++d) {
    for (const AxisRef& axis : state.sums) scatter(d, {axis});
    if (!Begins(state.dims[d], to_.dims[d])) continue;
    Axes run;
    for (size_t i = state.dims[d].size(); i < to_.dims[d].size(); ++i) {
      if (!Contains(state.sums, to_.dims[d][i])) break;
      run.push_back(to_.dims[d][i]);
      if (run.size() > 1) scatter(d, run);
    }
  }
}

// Shards of one size may go anywhere: to the wanted devices, or so that the
// axes to be gathered come last.
void ReshardSearch::AddPermute(const ReshardState& state, std::vector<ReshardMove>& moves) const {
  bool same_counts = true;
  ReshardState reordered = state;
  for (size_t d = 0; d < state.dims.size(); ++d) {
    const Axes& have = state.dims[d];
    const Axes& want = to_.dims[d];
    same_counts = same_counts && Product(have) == Product(want);
    if (std::ranges::all_of(want, [&](const AxisRef& axis) { return Contains(have, axis); })) {
      reordered.dims[d] = want;
      for (const AxisRef& axis : have) {
        if (!Contains(want, axis)) reordered.dims[d].push_back(axis);
      }
    }
  }
  if (same_counts) {
    reordered.dims = to_.dims;
    // What becomes a split cannot stay a sum.
    for (const Axes& axes : reordered.dims) {
      for (const AxisRef& axis : axes) {
        if (Contains(state.sums, axis)) return;
      }
    }
  }
  if (reordered == state) return;
  moves.push_back({Kind::kCollectivePermute, -1, -1, {}, std::move(reordered), ShardBytes(state)});
}

std::vector<ReshardMove> ReshardSearch::Moves(const ReshardState& state) const {
  std::vector<ReshardMove> moves;
  for (size_t d = 0; d < state.dims.size(); ++d) {
    AddSlices(state, d, moves);
    AddGathers(state, d, moves);
    AddRefit(state, d, moves);
  }
  AddSums(state, moves);
  AddPermute(state, moves);
  return moves;
}

std::vector<ReshardMove> ReshardSearch::GatherAndSlice() const {
  std::vector<ReshardMove> moves;
  ReshardState state = from_;
  if (!state.sums.empty()) {
    moves.push_back(SumUp(shape_, state));
    state = moves.back().after;
  }
  for (size_t d = 0; d < state.dims.size(); ++d) {
    Axes& have = state.dims[d];
    const Axes& want = to_.dims[d];
    size_t keep = CommonLength(have, want);
    const Axes head(have.begin(), have.begin() + keep);
    if (!Nested(shape_.dims[d], Product(head), Product(have)) ||
        !Nested(shape_.dims[d], Product(head), Product(want))) {
      keep = 0;
    }
    if (keep == have.size() || have == want) continue;
    const Axes tail = Suffix(have, keep);
    const int64_t bytes = ShardBytes(state) * (Product(tail) - 1);
    have.resize(keep);
    moves.push_back({Kind::kAllGather, static_cast<int64_t>(d), -1, tail, state, bytes});
  }
  if (state != to_) moves.push_back({Kind::kSlice, -1, -1, {}, to_, 0});
  return moves;
}

}  // namespace tpusim::spmd
