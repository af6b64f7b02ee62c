// The way from one sharding of a value to another.
//
// A plan is a list of steps, each a collective or a local slice, with the bytes that it makes a
// device receive. The way is that of XLA's partitioner (reshard_order.h):
//
//   slice           a dimension gains axes that split nothing so far       free
//   all-gather      a dimension loses its minor-most axes                  (n-1) v
//   all-to-all      axes move from one dimension's minor end to another's  n/4 v
//   permute         shards of one size change devices                      v
//   sum of parts    a gather of few elements over many shards, by all-reduce  2(n-1)/n w
//   refit           uneven shards of a dimension become others (refit.h)   what moves
//   reduce-scatter  partial sums are added up, a dimension gains their axes  (n-1)/n v
//   all-reduce      all partial sums are added up                          2(n-1)/n v
//
// (v = bytes of the shard before the step, w = after it, n = devices of a group.) These
// are bytes times links, per device: on a ring of n an all-gather's shard crosses n - 1
// links, and what an all-to-all sends goes n/4 links far on average (over several axes
// the sum of theirs). Beside them a collective takes time to start and per hop, counted as
// the bytes that a link of the chip could carry meanwhile (ReshardLatency).
//
// Uneven shards: the local size is the ceiling, what is too much at the end is
// padding. A dimension of 10 over 4 has shards of 3, over 2 shards of 5: no shard
// of the finer split lies within one of the coarser, so a slice or gather between the
// two does not exist and the way leads over the whole dimension, or a refit.
// Permutes do not care; all-to-all and reduce-scatter pad what they split.
#ifndef TPUSIM_WORKLOADS_SPMD_RESHARD_PLAN_H_
#define TPUSIM_WORKLOADS_SPMD_RESHARD_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/hlo/ir/shape.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::spmd {

enum class ReshardKind {
  kSlice,
  kAllGather,
  kAllToAll,
  kCollectivePermute,
  kAllReduce,
  kReduceScatter,
  kRefit,
  kSumOfParts,
};

// The collective that a value is moved by; "" for slices and for sums, which an op itself asks for.
std::string_view MovedBy(ReshardKind kind);

// The bytes that a link carries while a collective starts, and while it goes on by one hop. The
// cost model says so of a chip (cost::LatencyOfReshards).
struct ReshardLatency {
  Bytes start{0}, hop{0};
};

// A pair of dimensions of an all-to-all: the axes move from the minor end of one to the other's.
struct DimExchange {
  int64_t dim = -1, to_dim = -1;
  sharding::Axes axes;
};

struct ReshardStep {
  ReshardKind kind = ReshardKind::kSlice;
  sharding::Axes axes;               // of the group; empty for slice and permute
  int64_t dim = -1;                  // gathered, scattered or refitted
  std::vector<DimExchange> exchanges;  // of an all-to-all
  sharding::Sharding before, after;
  Bytes bytes{0};
};

struct ReshardPlan {
  std::vector<ReshardStep> steps;
  Bytes bytes{0};
  // Every device holds the whole value on the way, although neither sharding
  // says so.
  bool full_gather = false;
};

// Error (no rule): partial sums wanted of a value that has none.
absl::StatusOr<ReshardPlan> PlanReshard(const hlo::Shape& shape, const sharding::Sharding& from,
                                        const sharding::Sharding& to, const sharding::Mesh& mesh,
                                        const ReshardLatency& latency);

// The plans of one program, each made once: layers repeat.
class ReshardPlans {
 public:
  ReshardPlans(const sharding::Mesh& mesh, const ReshardLatency& latency)
      : mesh_(mesh), latency_(latency) {}
  const sharding::Mesh& mesh() const { return mesh_; }
  // Valid as long as this object.
  absl::StatusOr<const ReshardPlan*> Find(const hlo::Shape& shape, const sharding::Sharding& from,
                                          const sharding::Sharding& to);

 private:
  const sharding::Mesh& mesh_;
  const ReshardLatency latency_;
  std::unordered_map<std::string, ReshardPlan> plans_;  // looked up, never iterated
  ReshardPlan none_;
};

// Whether shards of a dimension of `size` elements that is split `coarse` ways are
// made of whole shards of the `fine` split, which continues it.
bool Nested(int64_t size, int64_t coarse, int64_t fine);

// "all-to-all 0->1 over X (1024 bytes)", one step per line.
std::string ToString(const ReshardPlan& plan, const sharding::Mesh& mesh);

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_RESHARD_PLAN_H_
