// The partitioner: a global module and its shardings in, the module that one
// device executes out.
//
// All devices run the same module; what differs between them comes from
// partition-id. Collectives are explicit, with channel ids, global device ids
// and explicit replica groups over partition numbers, so that XLA can compile the
// result. A collective that runs along mesh axes names them in the frontend
// attribute `tpusim.axes` ("Y" or "X,Y").
//
// The room answers what each device executes of a global program; `Partition` is its entry point.
// Plans of reshards that count bytes alone were tried and rejected: a small value took three
// collectives instead of one, so a collective costs what a link carries while it starts
// (reshard_plan.h). Gathering a dimension whose shards are uneven was rejected for permutes of the
// elements that are missing (refit.h).
#ifndef TPUSIM_WORKLOADS_SPMD_PARTITION_H_
#define TPUSIM_WORKLOADS_SPMD_PARTITION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/record.h"
#include "models/isa/program_info.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/propagation/propagate.h"
#include "workloads/spmd/reshard_plan.h"

namespace tpusim::spmd {

struct PartitionResult {
  std::unique_ptr<hlo::Module> module;
  std::vector<Record> warnings;                 // involuntary full gathers, with source lines
  std::vector<isa::ReshardSite> reshard_sites;  // collectives name them (annotations::kReshardSite)
  // Shardings of the entry's arguments and results, leaf by leaf.
  std::vector<sharding::Sharding> parameter_shardings, result_shardings;
};

// `latency`: of collectives on the chip, beside the bytes that reshards move.
absl::StatusOr<PartitionResult> Partition(const sharding::ShardedModule& sharded,
                                          const ReshardLatency& latency);

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_PARTITION_H_
