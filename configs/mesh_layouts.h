// The ways in which a logical mesh can lie on a slice.
//
// Every axis of the mesh takes a share of every axis of the torus, and the axes that share one
// nest in it in some order: the inner ones have neighbours side by side, the outer ones far apart.
// There are some dozens of such layouts for two or three axes. What tells them apart is how far
// the members of a group along a mesh axis are from each other; a layout that is farther for one
// axis and nearer for none is never better.
#ifndef TPUSIM_CONFIGS_MESH_LAYOUTS_H_
#define TPUSIM_CONFIGS_MESH_LAYOUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/topology.h"

namespace tpusim::configs {

struct NamedAxis {
  std::string name;
  int64_t size = 1;
};

struct MeshLayout {
  std::vector<int64_t> device_of_partition;
  std::string text;           // "data over y, model over x"
  std::vector<double> apart;  // by mesh axis, as MeanHops
};

// Hops between two members of a group along `axis`, on average over pairs and groups; of large
// meshes over some of them. Devices of one chip are no hop apart.
double MeanHops(const Topology& topology, const std::vector<NamedAxis>& mesh,
                const std::vector<int64_t>& device_of_partition, size_t axis);

// The layouts that no other one is as near as for every axis and nearer for one, at most `most` of
// them: in turn for every axis the nearest for it. Empty if the mesh does not take
// the whole of a slice, or there are several slices, or too many ways to look at.
std::vector<MeshLayout> MeshLayouts(const Topology& topology, const std::vector<NamedAxis>& mesh,
                                    size_t most);

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_MESH_LAYOUTS_H_
