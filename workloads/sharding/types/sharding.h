// One form for every sharding: array dimension -> mesh axes.
//
// A Mesh names its axes; a Sharding lists, per array dimension, the (sub-)axes
// that split it, major to minor. What no dimension uses is replicated. Nothing
// after decoding knows which encoding (OpSharding V1, V2, V3, Shardy text) a
// sharding came in.
//
// The room answers what a sharding is; `Sharding` is its entry point. There is no type per
// encoding, so that propagation and partitioner know one form.
#ifndef TPUSIM_WORKLOADS_SHARDING_TYPES_SHARDING_H_
#define TPUSIM_WORKLOADS_SHARDING_TYPES_SHARDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/hlo/ir/shape.h"

namespace tpusim::sharding {

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool operator==(const MeshAxis&) const = default;
};

struct Mesh {
  std::vector<MeshAxis> axes;       // major to minor
  std::vector<int64_t> device_ids;  // partition at each mesh position; empty = iota
  int64_t size() const;             // product of the axes
  bool operator==(const Mesh&) const = default;
};

// A mesh axis, or the factor of size `size` that is left of it after splitting
// `pre_size` off on the major side. A full axis has pre_size 1 and its own size.
struct AxisRef {
  int32_t axis = 0;
  int64_t pre_size = 1;
  int64_t size = 1;
  auto operator<=>(const AxisRef&) const = default;
};

struct DimSharding {
  std::vector<AxisRef> axes;  // major to minor
  bool open = false;          // propagation may add axes
  int32_t priority = 0;       // user priority (Shardy's p0, p1, ...)
  bool operator==(const DimSharding&) const = default;
};

// The operation that makes an unreduced value of its parts.
enum class Reduction : uint8_t { kSum, kMax, kMin };

struct Sharding {
  std::vector<DimSharding> dims;    // one per array dimension
  std::vector<AxisRef> replicated;  // pinned: propagation must not use them
  std::vector<AxisRef> unreduced;   // parts over these axes, partial sums by default
  Reduction reduction = Reduction::kSum;  // of the parts
  bool operator==(const Sharding&) const = default;

  int64_t Shards(int64_t dim) const;  // product of the dimension's axes
};

// The statement of the program that gave a value an axis of the mesh: index into
// ShardedModule::origins.
struct AxisOrigin {
  int32_t axis = 0, origin = 0;
};

// A value's sharding: one Sharding per tuple leaf (pre-order), and why.
struct ValueSharding {
  std::vector<Sharding> leaves;
  std::string reason;  // "parameter", "constraint at f.py:3", "from operand 0 of dot.1"
  std::vector<AxisOrigin> origins;  // of an array, as far as they are known
};

// No dimension split.
Sharding Replicated(int64_t rank);
// Propagation may add axes to no dimension.
bool FullyClosed(const Sharding& sharding);
// Every device holds the same piece: equal axes per dimension, whatever is open,
// pinned or prioritised.
bool SamePlacement(const Sharding& a, const Sharding& b);

std::string ToString(const Mesh& mesh);                            // mesh['X'=2,'Y'=4]
std::string ToString(const Sharding& sharding, const Mesh& mesh);  // [{X}, {Y,?}] unreduced=max{Z}
// Shape of one device's shard: every sharded dimension divided, rounded up.
hlo::Shape ShardShape(const hlo::Shape& shape, const Sharding& sharding);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_TYPES_SHARDING_H_
