// From a module as JAX wrote it to plain HLO plus what it says about shardings.
//
// Afterwards there are no calls except those of manual regions, no marker custom
// calls and no shardings in attributes. What the markers said is in
// `annotations`: fixed shardings of parameters and of constraints, the latter
// being kCopy instructions listed in `constraints`.
#ifndef TPUSIM_WORKLOADS_SHARDING_NORMALISE_H_
#define TPUSIM_WORKLOADS_SHARDING_NORMALISE_H_

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir.h"
#include "workloads/sharding/decode.h"
#include "workloads/sharding/propagate.h"

namespace tpusim::sharding {

struct Annotation {
  std::vector<std::optional<Sharding>> leaves;
  std::string reason;
};

struct NormalisedModule {
  std::unique_ptr<hlo::Module> module;
  MeshTable mesh;
  // The entry, loop bodies and conditions, branches: what the partitioner
  // rewrites. Callers before callees; each has one caller.
  std::vector<hlo::Computation*> partitioned;
  std::unordered_map<const hlo::Instruction*, Annotation> annotations;
  std::unordered_set<const hlo::Instruction*> constraints;
  std::unordered_map<const hlo::Instruction*, ManualRegion> manual_regions;
};

absl::StatusOr<NormalisedModule> Normalise(const hlo::Module& module, int64_t num_partitions);

// Puts the caller's op_name in front of those of an instruction and of everything
// that it alone calls (bodies, branches): the scope it has once it is inlined.
// What has no metadata gets the caller's.
void PrefixOpNames(hlo::Instruction* instruction, const hlo::pb::OpMetadata& caller);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_NORMALISE_H_
