// Facts that HLO does not state, kept in a frontend attribute of a partitioned module.
//
// A module that the partitioner made is a plain HloModuleProto, which XLA compiles. With its name,
// slice, mesh, trip counts, ... attached it is still what it was: read back, it runs the same. XLA
// hands frontend attributes on and ignores what it does not know.
#ifndef TPUSIM_WORKLOADS_HLO_IO_ATTACHED_WORKLOAD_H_
#define TPUSIM_WORKLOADS_HLO_IO_ATTACHED_WORKLOAD_H_

#include <optional>

#include "absl/status/statusor.h"
#include "workloads/hlo/hlo.pb.h"
#include "workloads/workload.pb.h"

namespace tpusim::hlo {

void AttachWorkload(const tpusim::Workload& workload, pb::HloModuleProto& module);

// Removes it from the module; nothing if there is none. Error: it does not parse.
absl::StatusOr<std::optional<tpusim::Workload>> DetachWorkload(pb::HloModuleProto& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_ATTACHED_WORKLOAD_H_
