// From a module as JAX wrote it to plain HLO plus what it says about shardings.
//
// Afterwards there are no calls except those of manual regions, no marker custom
// calls and no shardings in attributes. What the markers said is in
// `annotations`: fixed shardings of parameters and of constraints, the latter
// being kCopy instructions listed in `constraints`.
//
// The room answers what a program says about shardings, apart from its computation; `Normalise` is
// its entry point. It does not know propagation, which reads what it returns.
#ifndef TPUSIM_WORKLOADS_SHARDING_NORMALISED_NORMALISE_H_
#define TPUSIM_WORKLOADS_SHARDING_NORMALISED_NORMALISE_H_

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/factors/factor_propagation.h"
#include "workloads/sharding/normalised/constants.h"
#include "workloads/sharding/normalised/manual_region.h"
#include "workloads/sharding/text/decode.h"

namespace tpusim::sharding {

struct Annotation {
  std::vector<std::optional<Sharding>> leaves;
  std::string reason;
  bool is_result = false;  // of the program: ties, but does not tell what it is made of
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
  // The call of a region whose body is partitioned.
  std::unordered_map<const hlo::Computation*, const hlo::Instruction*> region_of;
  // Values that must be sharded alike: value -> number of its group.
  std::unordered_map<const hlo::Instruction*, int64_t> sharding_groups;
  // Copies over which axes flow one way only, or not at all.
  std::unordered_map<const hlo::Instruction*, Flow> barriers;
  ConstantCopies constant_copies;
  // Values that the program names (checkpoint_name), one by one, in the order of the program.
  std::vector<std::pair<const hlo::Instruction*, std::string>> names;
};

// Puts what calls call in their places, but for the bodies of manual regions. Error: a module that
// would become too large.
absl::Status InlinePlainCalls(hlo::Module& module);

// `num_partitions` 0 = take it from the module.
absl::StatusOr<NormalisedModule> Normalise(std::unique_ptr<hlo::Module> module,
                                           int64_t num_partitions);

// A copy with a module of its own, names and ids kept: for one of many propagations.
NormalisedModule CopyOf(const NormalisedModule& of);

// Puts the caller's op_name in front of those of an instruction and of everything
// that it alone calls (bodies, branches): the scope it has once it is inlined.
// What has no metadata gets the caller's.
void PrefixOpNames(hlo::Instruction* instruction, const hlo::pb::OpMetadata& caller);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_NORMALISED_NORMALISE_H_
