// Shardy's text forms, as JAX puts them into HLO frontend attributes.
//
//   meshes    {mesh = #sdy.mesh<["x"=4, "y"=2]>, ...}     device_ids=[...] optional
//   sharding  #sdy.sharding<@mesh, [{"x"}, {"y":(1)2, ?}p1], replicated={"z"}, unreduced={...}>
//   per value #sdy.sharding_per_value<[<@mesh, [...]>, ...]>
//   axes      #sdy<manual_axes{"x"}>
//
// Axes are given as axes of one mesh, the program's; other meshes in the table
// are other views of the same devices.
#ifndef TPUSIM_WORKLOADS_SHARDING_TEXT_SHARDY_PARSER_H_
#define TPUSIM_WORKLOADS_SHARDING_TEXT_SHARDY_PARSER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::sharding {

struct NamedMesh {
  std::string name;
  Mesh mesh;             // no axes: a mesh of one device
  bool maximal = false;  // one particular device: device_ids has it
};

// Every mesh of `xla.sdy.meshes`, in order.
absl::StatusOr<std::vector<NamedMesh>> ParseMeshes(std::string_view text);

// `mesh` is the one that shardings refer to; meshes of `table` without axes
// shard nothing. Unknown mesh or axis names are errors.
absl::StatusOr<Sharding> ParseSharding(std::string_view text, const Mesh& mesh,
                                       const std::vector<NamedMesh>& table);
// Either form: one sharding, or one per value.
absl::StatusOr<std::vector<Sharding>> ParseShardings(std::string_view text, const Mesh& mesh,
                                                     const std::vector<NamedMesh>& table);
absl::StatusOr<Axes> ParseManualAxes(std::string_view text, const Mesh& mesh,
                                     const std::vector<NamedMesh>& table);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_TEXT_SHARDY_PARSER_H_
