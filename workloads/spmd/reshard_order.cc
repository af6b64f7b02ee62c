#include "workloads/spmd/reshard_order.h"

#include <algorithm>
#include <utility>

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
  OrderedMoves(const sharding::Mesh& mesh, const hlo::Shape& shape, Axes kept, Dims at)
      : mesh_(mesh), shape_(shape), kept_(std::move(kept)), at_(std::move(at)) {}

  // `still`: dimensions that all attempts leave alone. False: nothing but a full gather would do,
  // which `may_gather` forbids, or the way leads over uneven shards.
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

  std::vector<ReshardMove> Take() { return std::move(moves_); }

 private:
  int64_t CountOf(const Dims& dims, size_t d) const { return Product(dims[d]); }

  static Dims Others(Dims dims, const std::vector<char>& still) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (still[d] != 0) dims[d].clear();
    }
    return dims;
  }

  // The axes that split nothing, in the order of the mesh.
  Axes FreeAxes(Dims dims) const {
    Axes all, kept = kept_;
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
  void Add(Kind kind, int64_t dim, int64_t to_dim, Axes axes, Dims dims, int64_t bytes) {
    for (size_t d = 0; d < dims.size(); ++d) {
      dims[d] = sharding::Joined(dims[d]);
      if (shape_.dims[d] % Product(dims[d]) != 0) failed_ = true;
    }
    at_ = dims;
    moves_.push_back({kind, dim, to_dim, std::move(axes), {std::move(dims), {}}, bytes});
  }

  bool Cut(const Dims& to) {
    if (!SameDims(at_, to)) Add(Kind::kSlice, -1, -1, {}, to, 0);
    return !failed_;
  }

  // The next functions return whether an attempt applies; then its moves are added.

  // Dimension d keeps `head`, which its axes begin with.
  void Gather(size_t d, const Axes& head) {
    const int64_t shards = Product(at_[d]) / Product(head);
    if (shards == 1) return;
    Dims after = at_;
    after[d] = head;
    const int64_t bytes = (shards - 1) * BytesOfShard(shape_, at_);
    Add(Kind::kAllGather, static_cast<int64_t>(d), -1, sharding::AfterPrefix(head, at_[d]),
        std::move(after), bytes);
  }

  bool Permuted(const Dims& to) {
    for (size_t d = 0; d < to.size(); ++d) {
      if (CountOf(at_, d) != CountOf(to, d)) return false;
    }
    if (!SameDims(at_, to)) {
      Add(Kind::kCollectivePermute, -1, -1, {}, to, BytesOfShard(shape_, at_));
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
    for (const Swap& swap : swaps) {
      const auto parts = sharding::SplitMajor(at_[swap.from], Product(at_[swap.to]));
      if (!parts) {
        failed_ = true;
        return;
      }
      after[swap.from] = parts->first;
      after[swap.to] = sharding::Concat(at_[swap.to], parts->second);
      all = sharding::Concat(all, parts->second);
    }
    const bool several = swaps.size() > 1;
    const int64_t bytes = ExchangeBytes(BytesOfShard(shape_, at_), all);
    Add(Kind::kAllToAll, several ? -1 : static_cast<int64_t>(swaps[0].from),
        several ? -1 : static_cast<int64_t>(swaps[0].to), all, std::move(after), bytes);
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
    if (!have || !want) return false;
    hlo::Shape shape = shape_;
    shape.dims[dim] = major;
    shape.dims.insert(shape.dims.begin() + static_cast<ptrdiff_t>(dim) + 1,
                      shape_.dims[dim] / major);
    std::vector<char> left = still;
    left.insert(left.begin() + static_cast<ptrdiff_t>(dim) + 1, 0);
    OrderedMoves inner(mesh_, shape, kept_, *have);
    if (!inner.Go(*want, left, /*may_gather=*/false)) return false;
    for (ReshardMove& move : inner.Take()) {
      Dims& after = move.after.dims;
      if (Product(after[dim]) != major) return false;  // then its parts are no neighbours
      after[dim] = sharding::Joined(sharding::Concat(after[dim], after[dim + 1]));
      after.erase(after.begin() + static_cast<ptrdiff_t>(dim) + 1);
      const auto merged = [&](int64_t d) { return d > static_cast<int64_t>(dim) ? d - 1 : d; };
      move.dim = merged(move.dim);
      move.to_dim = merged(move.to_dim);
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
  std::vector<ReshardMove> moves_;
  bool failed_ = false;
};

}  // namespace

std::optional<std::vector<ReshardMove>> MovesInOrder(const sharding::Mesh& mesh,
                                                     const hlo::Shape& shape, const Dims& from,
                                                     const Dims& to, const Axes& kept) {
  for (size_t d = 0; d < from.size(); ++d) {
    if (shape.dims[d] % Product(from[d]) != 0 || shape.dims[d] % Product(to[d]) != 0) {
      return std::nullopt;
    }
  }
  OrderedMoves moves(mesh, shape, kept, from);
  if (!moves.Go(to, std::vector<char>(to.size()), /*may_gather=*/true)) return std::nullopt;
  return moves.Take();
}

}  // namespace tpusim::spmd
