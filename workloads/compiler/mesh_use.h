// What of the slice and of its mesh a program leaves unused.
//
// Devices that no partition runs on do nothing; devices along an axis of the mesh over which no
// value is split, reduced or exchanged all do the same. Both are what was meant at times, and a
// forgotten sharding more often.
#ifndef TPUSIM_WORKLOADS_COMPILER_MESH_USE_H_
#define TPUSIM_WORKLOADS_COMPILER_MESH_USE_H_

#include <vector>

#include "configs/record.h"
#include "configs/topology.h"
#include "workloads/sharding/propagate.h"

namespace tpusim::compiler {

// The axes of the mesh over which nothing is split and no collective goes; those of size 1 do not
// count. None if the program asks for the number of its partition, which may tell any apart.
std::vector<sharding::MeshAxis> UnusedAxes(const sharding::ShardedModule& sharded);

// A warning for each thing left unused.
std::vector<Record> UnusedParts(const sharding::ShardedModule& sharded,
                                const configs::Config& config);

}  // namespace tpusim::compiler

#endif  // TPUSIM_WORKLOADS_COMPILER_MESH_USE_H_
