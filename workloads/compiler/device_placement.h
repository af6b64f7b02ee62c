// Which device of the slice runs which partition.
//
// In order of precedence: what --device-order says, the coordinates that the
// exporter wrote into the workload, JAX's own order for the program's mesh on
// this slice (configs::DeviceOrder).
#ifndef TPUSIM_WORKLOADS_COMPILER_DEVICE_PLACEMENT_H_
#define TPUSIM_WORKLOADS_COMPILER_DEVICE_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "configs/config.h"
#include "workloads/sharding/sharding.h"
#include "workloads/workload.pb.h"

namespace tpusim::compiler {

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

}  // namespace tpusim::compiler

#endif  // TPUSIM_WORKLOADS_COMPILER_DEVICE_PLACEMENT_H_
