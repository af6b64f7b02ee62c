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
// All-gathers begin with the last dimension. A shortest way over all shardings in between moved
// fewer bytes than the machine does, by up to a factor of ten where XLA gathers everything; it is
// left for partial sums and uneven shards (reshard_search.h).
#ifndef TPUSIM_WORKLOADS_SPMD_RESHARD_ORDER_H_
#define TPUSIM_WORKLOADS_SPMD_RESHARD_ORDER_H_

#include <optional>
#include <vector>

#include "workloads/hlo/ir/shape.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/spmd/reshard_search.h"

namespace tpusim::spmd {

// Returns the moves from one sharding to another of a value that is no partial sum to be added up;
// `kept` are axes over which it stays one. nullopt: shards on the way are uneven, or parts of axes
// do not nest.
std::optional<std::vector<ReshardMove>> MovesInOrder(const sharding::Mesh& mesh,
                                                     const hlo::Shape& shape,
                                                     const std::vector<sharding::Axes>& from,
                                                     const std::vector<sharding::Axes>& to,
                                                     const sharding::Axes& kept);

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_RESHARD_ORDER_H_
