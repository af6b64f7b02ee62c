// Lists of mesh axes, major to minor: the algebra under every sharding.
//
// A list splits a dimension into the product of its sizes; the shard number of a
// device is the mixed-radix number of its coordinates along the list. Axes may
// be cut: X of size 4 is the same as X:(1)2 then X:(2)2.
#ifndef TPUSIM_WORKLOADS_SHARDING_TYPES_AXES_H_
#define TPUSIM_WORKLOADS_SHARDING_TYPES_AXES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::sharding {

using Axes = std::vector<AxisRef>;

// The whole of axis number `axis`.
AxisRef FullAxis(const Mesh& mesh, int32_t axis);
int64_t Product(const Axes& axes);
bool Contains(const Axes& axes, const AxisRef& axis);
// True when some device coordinate is used by both.
bool Overlap(const AxisRef& a, const AxisRef& b);
bool Overlap(const Axes& a, const AxisRef& b);
bool Overlap(const Axes& a, const Axes& b);
// Neighbouring pieces of one axis joined: X:(1)2, X:(2)2 -> X.
Axes Joined(const Axes& axes);
// `axes` without its first `size` shards' worth of axes; {head, tail} with
// Product(head) == size. nullopt if no cut of the axes gives that product.
std::optional<std::pair<Axes, Axes>> SplitMajor(const Axes& axes, int64_t size);
// The longest list that both begin with, cutting axes where needed.
Axes CommonPrefix(const Axes& a, const Axes& b);
bool IsPrefix(const Axes& prefix, const Axes& axes);
// `axes` without `prefix`, which must be one.
Axes AfterPrefix(const Axes& prefix, const Axes& axes);
Axes Concat(Axes a, const Axes& b);

// Cuts the axes of all lists at the same places, so that any two pieces are
// equal or disjoint. False (lists untouched) if the cuts do not nest, as X:(1)2
// and X:(1)3 of X=6.
bool CutAlike(std::vector<Axes*> lists);

// Returns the distance of one step along the piece in row-major mesh position.
int64_t Stride(const Mesh& mesh, const AxisRef& axis);
// The shard number along `axes` of the device at a mesh position.
int64_t ShardIndex(const Mesh& mesh, const Axes& axes, int64_t position);
// Partition at each mesh position, and the reverse.
std::vector<int64_t> PartitionAtPosition(const Mesh& mesh);
std::vector<int64_t> PositionOfPartition(const Mesh& mesh);
// Partitions that differ only along `axes`, each group ordered by shard number.
std::vector<std::vector<int64_t>> ReplicaGroups(const Mesh& mesh, const Axes& axes);
// Returns the groups of ReplicaGroups, counted instead of listed.
std::optional<hlo::IotaGroups> IotaReplicaGroups(const Mesh& mesh, const Axes& axes);

// X, or X:(1)2 for a piece; lists joined by commas.
std::string ToString(const AxisRef& axis, const Mesh& mesh);
std::string ToString(const Axes& axes, const Mesh& mesh);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_TYPES_AXES_H_
