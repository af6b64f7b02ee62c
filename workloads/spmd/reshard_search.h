// The shortest path over the shardings in between: for partial sums, which may be added up before,
// between and after other moves, and for uneven shards, where reshard_order.h has no way.
//
// A state is where a value is: the axes of every dimension, and the axes over which it
// still is a partial sum. A move is one collective or one local slice. The length of a
// move is what it makes a device receive, counted once per link, plus, for a collective,
// what a link could have carried while it starts and goes from hop to hop. So a few
// kilobytes go the way of the fewest collectives, large values the way of the fewest bytes.
#ifndef TPUSIM_WORKLOADS_SPMD_RESHARD_SEARCH_H_
#define TPUSIM_WORKLOADS_SPMD_RESHARD_SEARCH_H_

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/shape.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"
#include "workloads/spmd/reshard_plan.h"

namespace tpusim::spmd {

// A state has all axes cut alike: two pieces are equal or disjoint.
struct ReshardState {
  std::vector<sharding::Axes> dims;
  sharding::Axes sums;  // to be added up
  auto operator<=>(const ReshardState&) const = default;
};

struct ReshardMove {
  ReshardKind kind = ReshardKind::kSlice;
  int64_t dim = -1, to_dim = -1;
  sharding::Axes axes;
  ReshardState after;
  int64_t bytes = 0;
};

class ReshardSearch {
 public:
  // `kept`: the value is and stays a partial sum over these axes.
  ReshardSearch(const sharding::Mesh& mesh, const hlo::Shape& shape, ReshardState from,
                std::vector<sharding::Axes> to, sharding::Axes kept);

  // The moves of the shortest way.
  std::vector<ReshardMove> Shortest(const ReshardLatency& latency) const;

 private:
  int64_t ShardBytes(const ReshardState& state) const;
  bool MayKeep(const ReshardState& state, size_t d, size_t keep) const;
  bool MayGain(const ReshardState& state, size_t d, const sharding::Axes& axes) const;
  void AddSlices(const ReshardState& state, size_t d, std::vector<ReshardMove>& moves) const;
  void AddGathers(const ReshardState& state, size_t d, std::vector<ReshardMove>& moves) const;
  void AddRefit(const ReshardState& state, size_t d, std::vector<ReshardMove>& moves) const;
  void AddSums(const ReshardState& state, std::vector<ReshardMove>& moves) const;
  void AddPermute(const ReshardState& state, std::vector<ReshardMove>& moves) const;
  std::vector<ReshardMove> Moves(const ReshardState& state) const;
  std::vector<ReshardMove> GatherAndSlice() const;

  const sharding::Mesh& mesh_;
  const hlo::Shape& shape_;
  ReshardState from_, to_;
  sharding::Axes kept_;
  // The bytes that a refit to the wanted shards moves; -1: there is none.
  mutable std::map<std::pair<int64_t, sharding::Axes>, int64_t> refits_;
  sharding::Axes pieces_;
};

// Returns the move that adds up all partial sums.
ReshardMove SumUp(const hlo::Shape& shape, const ReshardState& state);

// Whether nothing splits a value.
bool IsWhole(const std::vector<sharding::Axes>& dims);

// Bytes of one device's shard, padding included.
int64_t BytesOfShard(const hlo::Shape& shape, const std::vector<sharding::Axes>& dims);

// Bytes times links of an all-to-all of `bytes` along the axes: half of an axis away at most, a
// quarter on average.
int64_t ExchangeBytes(int64_t bytes, const sharding::Axes& axes);

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_RESHARD_SEARCH_H_
