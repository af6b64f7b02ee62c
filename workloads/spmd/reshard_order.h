// The moves that XLA's partitioner makes between two shardings: the first of its attempts that
// applies, whatever it costs.
//
// XLA does not search. It counts the shards of each dimension and tries, in this order:
//
//   1  equal counts                    a permute
//   2  the same counts, exchanged      all-to-alls, several pairs of dimensions in one; a permute
//   3  counts that only grow           a slice by axes that split nothing; a permute
//   4  counts that only shrink         a permute, so that axes to be lost are minor; all-gathers
//   5  a dimension's minor part goes   that dimension seen as two, by the attempts above
//      elsewhere, or comes from there
//   6  a dimension becomes whole, or   a gather or slice of that dimension first
//      takes all axes that are free
//   7  some counts are equal           the other dimensions, among the devices that have the same
//                                      part of those
//   8  otherwise                       everything is gathered, then cut ("involuntary full
//                                      rematerialization")
//
// All-gathers begin with the last dimension. Dimensions whose uneven shards do not nest are
// refitted first (refit.h). Partial sums are added up before that, after slices by axes that split
// nothing: scattered over the axes that dimensions are to continue with and the rest added up, or
// all at once and cut afterwards, whichever moves less.
//
// A shortest way over all shardings in between was rejected: it moved fewer bytes than the machine
// does, by up to a factor of ten where XLA gathers everything.
#ifndef TPUSIM_WORKLOADS_SPMD_RESHARD_ORDER_H_
#define TPUSIM_WORKLOADS_SPMD_RESHARD_ORDER_H_

#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/shape.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"
#include "workloads/spmd/reshard_plan.h"

namespace tpusim::spmd {

// The place of a value: the axes of every dimension, and those over which it is a partial sum that
// is to be added up.
struct ReshardState {
  std::vector<sharding::Axes> dims;
  sharding::Axes sums;
};

struct ReshardMove {
  ReshardKind kind = ReshardKind::kSlice;
  int64_t dim = -1;  // gathered, scattered or refitted
  sharding::Axes axes;
  ReshardState after;
  int64_t bytes = 0;
  std::vector<DimExchange> exchanges = {};  // of an all-to-all
};

// Returns the moves from a state to the sharding `to`; `kept` are axes over which the value is and
// stays a partial sum.
std::vector<ReshardMove> MovesInOrder(const sharding::Mesh& mesh, const hlo::Shape& shape,
                                      const ReshardState& from,
                                      const std::vector<sharding::Axes>& to,
                                      const sharding::Axes& kept, const ReshardLatency& latency);

// Whether nothing splits a value.
bool IsWhole(const std::vector<sharding::Axes>& dims);

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_RESHARD_ORDER_H_
