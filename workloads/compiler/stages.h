// Steps of the compiler beside passes: it places partitions on devices, finds what of a slice is
// unused, what a program leaves open, and its form for other backends.
#ifndef TPUSIM_WORKLOADS_COMPILER_STAGES_H_
#define TPUSIM_WORKLOADS_COMPILER_STAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "configs/config.h"
#include "configs/record.h"
#include "configs/topology.h"
#include "workloads/compiler/trip_counts.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/propagation/propagate.h"
#include "workloads/sharding/types/sharding.h"
#include "workloads/workload.pb.h"

namespace tpusim::compiler {

// The device of the slice that runs each partition.
//
// In order of precedence: what --device-order says, the coordinates that the
// exporter wrote into the workload, JAX's own order for the program's mesh on
// this slice (configs::DeviceOrder).
struct DevicePlacement {
  std::vector<int64_t> device_of_partition;
  std::string rule;  // for the report: how the order came about
};

// Error: more partitions than devices.
absl::Status CheckPartitions(int64_t partitions, const configs::Config& config);

// `option` is --device-order: "", "ids" (partition i on device i) or a list of
// device ids separated by commas. Errors: more partitions than devices; a list
// or coordinates that name a device twice, one that the slice lacks, or not one
// per partition.
absl::StatusOr<DevicePlacement> PlacePartitions(const tpusim::Workload& workload,
                                                const sharding::Mesh& mesh, int64_t partitions,
                                                const configs::Config& config,
                                                const std::string& option);

// Finds devices of the slice and axes of the mesh that a program leaves unused.
//
// Devices that no partition runs on do nothing; devices along an axis of the mesh over which no
// value is split, reduced or exchanged all do the same. Both are what was meant at times, and a
// forgotten sharding more often.
//
// The axes of the mesh over which nothing is split and no collective goes; those of size 1 do not
// count. None if the program asks for the number of its partition, which may tell any apart.
std::vector<sharding::MeshAxis> UnusedAxes(const sharding::ShardedModule& sharded);

// A warning for each thing left unused.
std::vector<Record> UnusedParts(const sharding::ShardedModule& sharded,
                                const configs::Config& config);

// Checks that nothing is left open: trip counts and costs of kernels that depend on data.
//
// One error names all of them with the options that state them, so that a program with
// ten such loops does not take ten runs to find out.
//
// Error: loops that the entry reaches without a trip count, or kernels without a price.
absl::Status CheckNothingOpen(const hlo::Module& module, TripCounts& trip_counts);

// A module as any XLA backend can compile it.
//
// What the passes leave speaks of a TPU: fusions, operations in two halves, bitcasts between
// layouts, memory spaces, memory that nothing has written, an order of execution. The
// executable form computes the same values with none of these, so that a run on CPU devices
// says whether the passes are right.
//
// In place. Optimization barriers stay. Memory with arbitrary content holds NaN (integers: a
// large number), which spoils every result that depends on it.
void MakeExecutable(hlo::Module& module);

}  // namespace tpusim::compiler

#endif  // TPUSIM_WORKLOADS_COMPILER_STAGES_H_
