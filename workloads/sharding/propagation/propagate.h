// From a module as JAX wrote it to a module in which every value has a sharding.
//
// Three steps, each its own file: Normalise removes every encoding (custom-call
// markers, OpSharding, Shardy strings, calls) and leaves plain HLO with
// constraints and manual regions; Propagate fills in the rest by factor rules;
// Print shows the result, with the reason per value.
//
// The room answers how every value is sharded, and why; `ShardModule` is its entry point. Sweeps
// over all ops until nothing changes were tried and rejected: work lists visit an op again only
// when one of its values has changed.
#ifndef TPUSIM_WORKLOADS_SHARDING_PROPAGATION_PROPAGATE_H_
#define TPUSIM_WORKLOADS_SHARDING_PROPAGATION_PROPAGATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/instruction_map.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/normalised/manual_region.h"
#include "workloads/sharding/stated/stated_constraints.h"
#include "workloads/sharding/types/axes.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::sharding {

struct NormalisedModule;

struct ShardedModule {
  std::unique_ptr<hlo::Module> module;  // global shapes, markers gone
  Mesh mesh;
  int64_t num_partitions = 1;
  // One ValueSharding per instruction of every computation that is partitioned.
  hlo::InstructionMap<ValueSharding> shardings;
  // Copies that stand for the program's sharding constraints: no data moves if
  // operand and result have one sharding.
  std::unordered_set<const hlo::Instruction*> constraints;
  std::unordered_map<const hlo::Instruction*, ManualRegion> manual_regions;
  // The texts that origins of values refer to: "argument params['w']", "constraint at model.py:12".
  std::vector<std::string> origins;
};

struct PropagationOptions {
  // In every step first what conflicts with nothing, then the rest. XLA's default
  // is to resolve conflicts as it meets them, and so is ours.
  bool basic_first = false;
  // Whether it is asked why values are sharded as they are, and where that came from.
  bool reasons = true;
  std::vector<MeshAxis> mesh;                 // stated_shardings.h; none: the program's
  std::vector<StatedConstraint> arguments;    // likewise
  std::vector<StatedConstraint> constraints;  // stated_constraints.h
  std::vector<std::string> donated, kept;     // arguments: stated_donations.h
};

// `num_partitions` 0 = take it from the module. Errors: two sources disagree on
// the number of partitions, an encoding that does not parse, an op without a
// sharding rule (named, with source line).
absl::StatusOr<ShardedModule> ShardModule(std::unique_ptr<hlo::Module> module,
                                          int64_t num_partitions,
                                          const PropagationOptions& options = {});
absl::StatusOr<ShardedModule> ShardModule(NormalisedModule module,
                                          const PropagationOptions& options);
// Shards a copy of the module.
absl::StatusOr<ShardedModule> ShardModule(const hlo::Module& module, int64_t num_partitions,
                                          const PropagationOptions& options = {});

// HLO text with `sharding=[{X}, {}]` and the reason behind every value.
std::string ToString(const ShardedModule& sharded);

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_PROPAGATION_PROPAGATE_H_
