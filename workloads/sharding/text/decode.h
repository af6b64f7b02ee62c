// From the encodings of a sharding to the one form.
//
// XLA has three encodings of an OpSharding (V1: a list of devices, V2: iota,
// reshape, transpose, V3: named axes) and Shardy's text beside them. V1 and V2
// have no axis names: the list of devices is factored into digits (runs of
// equal stride), and digits are pieces of mesh axes.
//
// The room answers what the text or wire form of a sharding means; `DecodeOpSharding` is its entry
// point, shardy_parser.h that of Shardy's text.
#ifndef TPUSIM_WORKLOADS_SHARDING_TEXT_DECODE_H_
#define TPUSIM_WORKLOADS_SHARDING_TEXT_DECODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/text/digits.h"
#include "workloads/sharding/text/shardy_parser.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::sharding {

// The program's one mesh and the names that the file has for it.
struct MeshTable {
  Mesh mesh;                   // no axes: one device
  std::vector<NamedMesh> sdy;  // xla.sdy.meshes
  std::string source;          // where the mesh came from, for messages
};

// From xla.sdy.meshes, else from V3 meshes, else factored from all tile
// assignments. With nothing that says so, `num_partitions` devices in one axis
// (0 = one device). Errors: meshes that differ, a size other than a non-zero
// `num_partitions`.
absl::StatusOr<MeshTable> FindMesh(const hlo::Module& module, int64_t num_partitions);

// The sharding that an OpSharding states for one array.
struct DecodedSharding {
  bool known = true;  // UNKNOWN: nothing is said
  Sharding sharding;
  Axes manual;  // axes over which the value is already per shard
};

// One per leaf of `shape` (a single OpSharding applies to every leaf).
absl::StatusOr<std::vector<DecodedSharding>> DecodeOpSharding(const hlo::pb::OpSharding& proto,
                                                              const hlo::Shape& shape,
                                                              const Mesh& mesh);

// Per tile dimension its digits, major to minor. The devices in positions of
// the mesh: `positions[partition]`, empty = iota.
absl::StatusOr<std::vector<std::vector<Digit>>> TileDigits(const hlo::pb::OpSharding& proto,
                                                           const std::vector<int64_t>& positions);
}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_TEXT_DECODE_H_
