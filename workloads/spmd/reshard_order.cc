#include "workloads/spmd/reshard_order.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "configs/units.h"
#include "workloads/spmd/refit.h"

namespace tpusim::spmd {
namespace {

using sharding::Axes;
using sharding::AxisRef;
using sharding::Product;
using Dims = std::vector<Axes>;
using Kind = ReshardKind;

// A swap of shard counts: the minor part of dimension `from` goes to the minor end of `to`.
struct Swap {
  size_t from = 0, to = 0;
};

int64_t BytesOfShard(const hlo::Shape& shape, const Dims& dims) {
  hlo::Shape shard = shape;
  for (size_t d = 0; d < dims.size(); ++d) {
    shard.dims[d] = CeilDiv(shape.dims[d], Product(dims[d]));
  }
  return shard.ByteSize().value();
}

// Returns bytes times links of an all-to-all of `bytes` along the axes: half of an axis away at
// most, a quarter on average.
int64_t ExchangeBytes(int64_t bytes, const Axes& axes) {
  int64_t links = 0;
  for (const AxisRef& axis : axes) links += axis.size;
  return CeilDiv(bytes * links, int64_t{4});
}

bool SameDims(const Dims& a, const Dims& b) {
  return std::ranges::equal(a, b, [](const Axes& x, const Axes& y) {
    return sharding::Joined(x) == sharding::Joined(y);
  });
}

// Returns swaps that make the counts of one sharding those of another that has the same counts at
// other dimensions. nullopt: it has not, or a count is no multiple of what it is swapped with.
std::optional<std::vector<Swap>> SwapsOf(std::vector<int64_t> have, std::vector<int64_t> want) {
  std::vector<size_t> open;
  std::vector<int64_t> a, b;
  for (size_t d = 0; d < have.size(); ++d) {
    if (have[d] == want[d]) continue;
    open.push_back(d);
    a.push_back(have[d]);
    b.push_back(want[d]);
  }
  std::ranges::sort(a);
  std::ranges::sort(b);
  if (open.empty() || a != b) return std::nullopt;
  std::vector<Swap> swaps;
  while (true) {
    std::erase_if(open, [&](size_t d) { return have[d] == want[d]; });
    if (open.empty()) return swaps;
    // The least count has the next say, of equal ones the last dimension.
    size_t to = open[0];
    for (const size_t d : open) to = have[d] <= have[to] ? d : to;
    if (want[to] % have[to] != 0) return std::nullopt;
    // Preferably a dimension that the swap finishes, or that a further swap still uses.
    std::optional<size_t> from;
    for (const size_t d : open) {
      if (have[d] != want[to]) continue;
      from = d;
      if (have[to] == 1 ? want[d] != 1 : want[d] == have[to]) break;
    }
    if (!from) return std::nullopt;
    swaps.push_back({*from, to});
    std::swap(have[*from], have[to]);
  }
}

// The moves from sharding to sharding, attempt by attempt. Moves that lead nowhere are taken back
// by the caller of Go.
class OrderedMoves {
 public:
  OrderedMoves(const sharding::Mesh& mesh, const hlo::Shape& shape, Axes kept, ReshardState at)
      : mesh_(mesh),
        shape_(shape),
        kept_(std::move(kept)),
        at_(std::move(at.dims)),
        sums_(std::move(at.sums)) {}

  // `scatter`: sums over axes that dimensions are to continue with are scattered.
  void Reach(const Dims& to, bool scatter) {
    Sum(to, scatter);
    Nest(to);
    const std::vector<char> none(to.size());
    if (Attempt([&] { return Go(to, none, /*may_gather=*/true); })) return;
    for (size_t d = to.size(); d-- > 0;) {
      const Axes common = sharding::CommonPrefix(at_[d], to[d]);
      Gather(d, Nests(d, common, at_[d]) && Nests(d, common, to[d]) ? common : Axes{});
    }
    Cut(to);
  }

  std::vector<ReshardMove> Take() { return std::move(moves_); }

 private:
  // Adds partial sums up. Dimensions are first split by axes that split nothing.
  void Sum(const Dims& to, bool scatter) {
    if (sums_.empty()) return;
    Dims at = at_, end = to;
    Axes kept = kept_;
    std::vector<Axes*> lists = {&sums_, &kept};
    for (Dims* dims : {&at, &end}) {
      for (Axes& axes : *dims) lists.push_back(&axes);
    }
    bool more = sharding::CutAlike(lists);
    const auto summed = [&](const AxisRef& axis) { return Contains(sums_, axis); };
    const auto free = [&](const AxisRef& axis) {
      return !summed(axis) && !Contains(kept, axis) &&
             std::ranges::none_of(at, [&](const Axes& axes) { return Contains(axes, axis); });
    };
    const auto begins = [&](size_t d) {
      return at[d].size() <= end[d].size() &&
             std::equal(at[d].begin(), at[d].end(), end[d].begin());
    };
    // Returns the axes that dimension d continues with, as far as they fit.
    const auto next = [&](size_t d, const auto& fits) {
      Axes axes;
      for (size_t i = at[d].size(); begins(d) && i < end[d].size() && fits(end[d][i]); ++i) {
        axes.push_back(end[d][i]);
      }
      while (!Nests(d, at[d], sharding::Concat(at[d], axes))) axes.pop_back();
      return axes;
    };
    Dims room = end;  // what sums are scattered behind
    bool in_the_way = false;
    for (size_t d = 0; d < end.size(); ++d) {
      const auto first = std::ranges::find_if(end[d], summed);
      in_the_way = in_the_way || (first != end[d].end() && !begins(d));
      room[d].resize(static_cast<size_t>(first - end[d].begin()));
    }
    if (more && scatter && in_the_way && !SameDims(at_, room) &&
        Attempt([&] { return Go(room, std::vector<char>(to.size()), /*may_gather=*/false); })) {
      return Sum(to, scatter);
    }
    while (more && !sums_.empty()) {
      more = false;
      for (size_t d = 0; d < end.size(); ++d) at[d] = sharding::Concat(at[d], next(d, free));
      Cut(at);
      for (size_t d = 0; d < end.size(); ++d) {
        const Axes axes = next(d, summed);
        if (axes.empty() || !scatter) continue;
        more = true;
        at[d] = sharding::Concat(at[d], axes);
        std::erase_if(sums_, [&](const AxisRef& axis) { return Contains(axes, axis); });
        const int64_t n = Product(axes), bytes = BytesOfShard(shape_, at_) / n * (n - 1);
        Add(Kind::kReduceScatter, static_cast<int64_t>(d), axes, at, bytes);
      }
    }
    if (sums_.empty()) return;
    const Axes sums = std::exchange(sums_, {});
    const int64_t n = Product(sums);
    Add(Kind::kAllReduce, -1, sums, at_, 2 * (n - 1) * BytesOfShard(shape_, at_) / n);
  }

  // Whether shards of dimension d over one list of axes are made of whole shards over another, or
  // the reverse.
  bool Nests(size_t d, const Axes& a, const Axes& b) const {
    const int64_t coarse = std::min(Product(a), Product(b));
    const int64_t fine = std::max(Product(a), Product(b));
    return coarse == fine || (fine % coarse == 0 && Nested(shape_.dims[d], coarse, fine));
  }

  // Refits dimensions of uneven shards that do not nest, or gathers them.
  void Nest(const Dims& to) {
    for (size_t d = 0; d < to.size(); ++d) {
      const int64_t size = shape_.dims[d];
      const bool even = size % CountOf(at_, d) == 0 && size % CountOf(to, d) == 0;
      if (!even && !Nests(d, at_[d], to[d]) && !Refitted(d, to[d])) Gather(d, {});
    }
  }

  // Pieces come from any holder: not while devices hold different partial sums.
  bool Refitted(size_t d, const Axes& want) {
    Dims after = at_;
    after[d].clear();
    const auto overlap = [&](const Axes& axes) { return Overlap(axes, want); };
    if (!kept_.empty() || std::ranges::any_of(after, overlap)) return false;
    const auto refit = RefitOf(mesh_, at_[d], want, shape_.dims[d]);
    if (!refit) return false;
    const int64_t line = BytesOfShard(shape_, at_) / CeilDiv(shape_.dims[d], CountOf(at_, d));
    after[d] = want;
    at_ = after;
    moves_.push_back({Kind::kRefit, static_cast<int64_t>(d), {}, {std::move(after), {}},
                      CeilDiv(line * refit->element_links, mesh_.size())});
    return true;
  }

  // `still`: dimensions that all attempts leave alone. False: nothing but a full gather would do,
  // which `may_gather` forbids, or the way leads over shards that do not nest.
  bool Go(const Dims& to, const std::vector<char>& still, bool may_gather) {
    if (failed_ || SameDims(at_, to)) return !failed_;
    const bool wanted_whole = IsWhole(Others(to, still));
    if (IsWhole(Others(at_, still))) return Cut(to);
    if (Permuted(to) || Exchanged(to) || (!wanted_whole && Sliced(to)) || Gathered(to)) {
      return !failed_;
    }
    if (!wanted_whole) {
      const auto part = DimInTwoParts(to);
      if (Attempt([&] { return part ? SeenAsTwo(*part, to, still) : OneFirst(to, still); }) ||
          Attempt([&] { return AmongEqual(to, still); })) {
        return true;
      }
    }
    if (!may_gather) return false;
    for (size_t d = at_.size(); d-- > 0;) {
      if (still[d] == 0) Gather(d, {});
    }
    return Cut(to);
  }

  int64_t CountOf(const Dims& dims, size_t d) const { return Product(dims[d]); }

  static Dims Others(Dims dims, const std::vector<char>& still) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (still[d] != 0) dims[d].clear();
    }
    return dims;
  }

  // The axes that split nothing, in the order of the mesh.
  Axes FreeAxes(Dims dims) const {
    Axes all, kept = sharding::Concat(kept_, sums_);
    for (size_t a = 0; a < mesh_.axes.size(); ++a) {
      all.push_back(sharding::FullAxis(mesh_, static_cast<int32_t>(a)));
    }
    std::vector<Axes*> lists = {&all, &kept};
    for (Axes& axes : dims) lists.push_back(&axes);
    if (!sharding::CutAlike(lists)) return {};
    std::erase_if(all, [&](const AxisRef& axis) {
      return axis.size == 1 || Contains(kept, axis) ||
             std::ranges::any_of(dims, [&](const Axes& axes) { return Contains(axes, axis); });
    });
    return sharding::Joined(all);
  }

  // Adds a move to the shards of `dims`.
  ReshardMove& Add(Kind kind, int64_t dim, Axes axes, Dims dims, int64_t bytes) {
    for (size_t d = 0; d < dims.size(); ++d) {
      dims[d] = sharding::Joined(dims[d]);
      if (!Nests(d, at_[d], dims[d])) failed_ = true;
    }
    at_ = dims;
    return moves_.emplace_back(
        ReshardMove{kind, dim, std::move(axes), {std::move(dims), sums_}, bytes});
  }

  bool Cut(const Dims& to) {
    if (!SameDims(at_, to)) Add(Kind::kSlice, -1, {}, to, 0);
    return !failed_;
  }

  // The next functions return whether an attempt applies; then its moves are added.

  // Dimension d keeps `head`, which its axes begin with.
  void Gather(size_t d, const Axes& head) {
    const int64_t shards = Product(at_[d]) / Product(head);
    if (shards == 1) return;
    Dims after = at_;
    after[d] = head;
    const int64_t bytes = BytesOfShard(shape_, at_), whole = BytesOfShard(shape_, after);
    // Most shards are empty: less to add up than to gather.
    const bool sum = 2 * whole < shards * bytes;
    Add(sum ? Kind::kSumOfParts : Kind::kAllGather, static_cast<int64_t>(d),
        sharding::AfterPrefix(head, at_[d]), std::move(after),
        (shards - 1) * (sum ? 2 * whole / shards : bytes));
  }

  bool Permuted(const Dims& to) {
    for (size_t d = 0; d < to.size(); ++d) {
      if (CountOf(at_, d) != CountOf(to, d)) return false;
    }
    if (!SameDims(at_, to)) {
      Add(Kind::kCollectivePermute, -1, {}, to, BytesOfShard(shape_, at_));
    }
    return true;
  }

  bool Exchanged(const Dims& to) {
    std::vector<int64_t> have, want;
    for (size_t d = 0; d < to.size(); ++d) {
      have.push_back(CountOf(at_, d));
      want.push_back(CountOf(to, d));
    }
    const auto swaps = SwapsOf(have, want);
    if (!swaps) return false;
    // Pairs of dimensions that have nothing in common go at once.
    std::vector<Swap> pairs = *swaps, once, later;
    std::ranges::stable_sort(pairs, {}, &Swap::to);
    std::vector<char> seen(to.size());
    for (const Swap& swap : pairs) {
      const bool apart = seen[swap.from] == 0 && seen[swap.to] == 0;
      (apart ? once : later).push_back(swap);
      seen[swap.from] = seen[swap.to] = 1;
    }
    if (once.size() < 2) later = *swaps, once.clear();
    if (!once.empty()) Exchange(once);
    for (const Swap& swap : later) Exchange({swap});
    if (!failed_) Permuted(to);
    return true;
  }

  void Exchange(const std::vector<Swap>& swaps) {
    Dims after = at_;
    Axes all;
    std::vector<DimExchange> exchanges;
    for (const Swap& swap : swaps) {
      const auto parts = sharding::SplitMajor(at_[swap.from], Product(at_[swap.to]));
      // Only one pair of dimensions is padded.
      const bool even = shape_.dims[swap.from] % CountOf(at_, swap.from) == 0 &&
                        shape_.dims[swap.to] % CountOf(at_, swap.from) == 0;
      if (!parts || (swaps.size() > 1 && !even)) {
        failed_ = true;
        return;
      }
      after[swap.from] = parts->first;
      after[swap.to] = sharding::Concat(at_[swap.to], parts->second);
      all = sharding::Concat(all, parts->second);
      exchanges.push_back({static_cast<int64_t>(swap.from), static_cast<int64_t>(swap.to),
                           sharding::Joined(parts->second)});
    }
    const int64_t bytes = ExchangeBytes(BytesOfShard(shape_, at_), all);
    Add(Kind::kAllToAll, -1, all, std::move(after), bytes).exchanges = std::move(exchanges);
  }

  // Returns the shards of `fine` counts that `coarse` can be cut into: `fine` itself if its
  // dimensions begin with those of `coarse`, else cut by the free axes in their order.
  std::optional<Dims> CutLike(const Dims& coarse, const Dims& fine) const {
    bool begins = true;  // dimension by dimension
    for (size_t d = 0; d < fine.size(); ++d) {
      if (CountOf(fine, d) % CountOf(coarse, d) != 0) return std::nullopt;
      begins = begins && sharding::IsPrefix(coarse[d], fine[d]);
    }
    if (begins) return fine;
    Dims cut = coarse;
    Axes free = FreeAxes(coarse);
    for (size_t d = 0; d < fine.size(); ++d) {
      const auto parts = sharding::SplitMajor(free, CountOf(fine, d) / CountOf(coarse, d));
      if (!parts) return std::nullopt;
      cut[d] = sharding::Joined(sharding::Concat(cut[d], parts->first));
      free = parts->second;
    }
    return cut;
  }

  bool Sliced(const Dims& to) {
    if (FreeAxes(at_).empty()) return false;
    const std::optional<Dims> cut = CutLike(at_, to);
    return cut && (!Cut(*cut) || Permuted(to));
  }

  bool Gathered(const Dims& to) {
    if (FreeAxes(to).empty()) return false;
    const std::optional<Dims> cut = CutLike(to, at_);
    if (!cut) return false;
    Permuted(*cut);
    for (size_t d = to.size(); d-- > 0;) Gather(d, to[d]);
    return true;
  }

  // Takes back what an attempt did in vain.
  template <typename Attempted>
  bool Attempt(const Attempted& attempted) {
    const Dims before = at_;
    const size_t moves = moves_.size();
    if (attempted() && !failed_) return true;
    failed_ = false;
    at_ = before;
    moves_.resize(moves);
    return false;
  }

  // The dimension of which a minor part is to go or to come, and the count that stays of it.
  std::optional<std::pair<size_t, int64_t>> DimInTwoParts(const Dims& to) const {
    if (Product(FreeAxes(at_)) != Product(FreeAxes(to))) return std::nullopt;
    std::optional<std::pair<size_t, int64_t>> shrinking;
    for (size_t d = 0; d < to.size(); ++d) {
      const int64_t have = CountOf(at_, d), want = CountOf(to, d);
      const int64_t less = std::min(have, want), more = std::max(have, want);
      if (less == more || less == 1 || more % less != 0) continue;
      for (size_t other = 0; other < to.size(); ++other) {
        const int64_t a = CountOf(at_, other), b = CountOf(to, other);
        if (a != b && std::min(a, b) == 1 && have * a == want * b) return std::pair(d, less);
      }
      if (have > want && !shrinking) shrinking = std::pair(d, less);
    }
    return shrinking;
  }

  bool SeenAsTwo(std::pair<size_t, int64_t> part, const Dims& to, const std::vector<char>& still) {
    const size_t dim = part.first;
    const int64_t major = part.second;
    const auto in_two = [&](Dims dims) -> std::optional<Dims> {
      const auto parts = sharding::SplitMajor(dims[dim], major);
      if (!parts) return std::nullopt;
      dims[dim] = parts->first;
      dims.insert(dims.begin() + static_cast<ptrdiff_t>(dim) + 1, parts->second);
      return dims;
    };
    const auto have = in_two(at_), want = in_two(to);
    if (!have || !want || shape_.dims[dim] % std::lcm(CountOf(at_, dim), CountOf(to, dim)) != 0) {
      return false;
    }
    hlo::Shape shape = shape_;
    shape.dims[dim] = major;
    shape.dims.insert(shape.dims.begin() + static_cast<ptrdiff_t>(dim) + 1,
                      shape_.dims[dim] / major);
    std::vector<char> left = still;
    left.insert(left.begin() + static_cast<ptrdiff_t>(dim) + 1, 0);
    OrderedMoves inner(mesh_, shape, sharding::Concat(kept_, sums_), {*have, {}});
    if (!inner.Go(*want, left, /*may_gather=*/false)) return false;
    for (ReshardMove& move : inner.Take()) {
      Dims& after = move.after.dims;
      if (Product(after[dim]) != major) return false;  // then its parts are no neighbours
      after[dim] = sharding::Joined(sharding::Concat(after[dim], after[dim + 1]));
      after.erase(after.begin() + static_cast<ptrdiff_t>(dim) + 1);
      const auto merged = [&](int64_t d) { return d > static_cast<int64_t>(dim) ? d - 1 : d; };
      move.dim = merged(move.dim);
      for (DimExchange& exchanged : move.exchanges) {
        exchanged = {merged(exchanged.dim), merged(exchanged.to_dim), std::move(exchanged.axes)};
      }
      move.after.sums = sums_;
      at_ = after;
      moves_.push_back(std::move(move));
    }
    return Go(to, still, /*may_gather=*/false);
  }

  bool OneFirst(const Dims& to, const std::vector<char>& still) {
    const int64_t free = Product(FreeAxes(at_)), wanted_free = Product(FreeAxes(to));
    for (size_t d = 0; d < to.size(); ++d) {
      const int64_t have = CountOf(at_, d), want = CountOf(to, d);
      if (still[d] != 0) continue;
      if (wanted_free > 1 && have > 1 && have * free == wanted_free) {
        Gather(d, {});
        return Go(to, still, /*may_gather=*/false);
      }
      if (wanted_free == 1 && free > 1 && have == 1 && want % free == 0) {
        Dims cut = at_;
        cut[d] = FreeAxes(at_);
        return Cut(cut) && Go(to, still, /*may_gather=*/false);
      }
    }
    return false;
  }

  // Dimensions of equal counts stay as they are; axes that the end has there, and the way has not,
  // change places with those that are there.
  bool AmongEqual(const Dims& to, std::vector<char> still) {
    Dims aim = to;
    bool any = false;
    for (size_t d = 0; d < to.size(); ++d) {
      if (still[d] != 0 || CountOf(at_, d) == 1 || CountOf(at_, d) != CountOf(to, d)) continue;
      still[d] = 1;
      any = true;
      std::vector<Axes*> lists;
      Axes here = at_[d];
      lists.push_back(&here);
      for (Axes& axes : aim) lists.push_back(&axes);
      if (!sharding::CutAlike(lists) || here.size() != aim[d].size()) return false;
      const Axes there = aim[d];
      for (size_t i = 0; i < here.size(); ++i) {
        if (here[i].size != there[i].size) return false;
        for (Axes& axes : aim) {
          for (AxisRef& axis : axes) {
            axis = axis == there[i] ? here[i] : axis == here[i] ? there[i] : axis;
          }
        }
      }
    }
    if (!any) return false;
    return Go(aim, still, /*may_gather=*/true) &&
           Go(to, std::vector<char>(to.size()), /*may_gather=*/true);
  }

  const sharding::Mesh& mesh_;
  const hlo::Shape& shape_;
  const Axes kept_;
  Dims at_;
  Axes sums_;  // to be added up
  std::vector<ReshardMove> moves_;
  bool failed_ = false;
};

// Returns what moves make a link carry, and what it could carry while they start and go from hop to
// hop, with both ways round an axis in use; for an all-reduce there and back.
Bytes CostOf(const std::vector<ReshardMove>& moves, const ReshardLatency& latency) {
  Bytes cost(0);
  for (const ReshardMove& move : moves) {
    if (move.kind == Kind::kSlice) continue;
    int64_t sizes = 0;
    for (const AxisRef& axis : move.axes) sizes += axis.size;
    const bool twice = move.kind == Kind::kAllReduce || move.kind == Kind::kSumOfParts;
    const int64_t hops = twice ? sizes : CeilDiv(sizes, int64_t{2});
    cost += Bytes(move.bytes) + latency.start + latency.hop * hops;
  }
  return cost;
}

}  // namespace

std::vector<ReshardMove> MovesInOrder(const sharding::Mesh& mesh, const hlo::Shape& shape,
                                      const ReshardState& from, const Dims& to, const Axes& kept,
                                      const ReshardLatency& latency) {
  const auto moves = [&](bool scatter) {
    OrderedMoves ordered(mesh, shape, kept, from);
    ordered.Reach(to, scatter);
    return ordered.Take();
  };
  std::vector<ReshardMove> scattered = moves(/*scatter=*/true);
  if (from.sums.empty()) return scattered;
  std::vector<ReshardMove> at_once = moves(/*scatter=*/false);
  return CostOf(at_once, latency) < CostOf(scattered, latency) ? at_once : scattered;
}

bool IsWhole(const Dims& dims) {
  return std::ranges::all_of(dims, [](const Axes& axes) { return Product(axes) == 1; });
}

}  // namespace tpusim::spmd
