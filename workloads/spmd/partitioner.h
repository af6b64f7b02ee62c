// The state of one partitioning. Internal to spmd/: call Partition().
#ifndef TPUSIM_WORKLOADS_SPMD_PARTITIONER_H_
#define TPUSIM_WORKLOADS_SPMD_PARTITIONER_H_

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/sharding/propagation/propagate.h"
#include "workloads/sharding/rules/rule_cache.h"
#include "workloads/spmd/emit/builder.h"
#include "workloads/spmd/partition.h"
#include "workloads/spmd/reshard.h"
#include "workloads/spmd/reshard_sites.h"

namespace tpusim::spmd {

class Partitioner {
 public:
  Partitioner(const sharding::ShardedModule& sharded, const ReshardLatency& latency);

  absl::StatusOr<PartitionResult> Run();

 private:
  // A value under one of several shardings; the first one is what was computed.
  struct ShardedValue {
    sharding::Sharding sharding;
    hlo::Instruction* value = nullptr;
    RegionMaker region;  // what combines partial results, if it is no sum
  };

  absl::Status PartitionComputation(const hlo::Computation& global);
  absl::StatusOr<hlo::Instruction*> PartitionInstruction(const hlo::Instruction& global);
  // Any op with a factor rule.
  absl::StatusOr<hlo::Instruction*> PartitionOp(const hlo::Instruction& global);
  // control.cc
  absl::StatusOr<hlo::Instruction*> PartitionWhile(const hlo::Instruction& global);
  absl::StatusOr<hlo::Instruction*> PartitionConditional(const hlo::Instruction& global);
  absl::StatusOr<hlo::Instruction*> PartitionManualRegion(const hlo::Instruction& global);

  // The shard of `value` under another sharding, from whichever form of it that
  // exists already is nearest. What was asked for before is shared. `moved`: for which op of the
  // program, where no constraint asks for it.
  absl::StatusOr<hlo::Instruction*> Reshard(hlo::Instruction* value, const hlo::Shape& global,
                                            const sharding::Sharding& from,
                                            const sharding::Sharding& to,
                                            const RegionMaker& region = {},
                                            const Moved* moved = nullptr);
  // Whether any device can make any part of a value by itself.
  bool IsMade(const hlo::Instruction* value) const;
  void NoteIota(const hlo::Instruction& global, const hlo::Instruction* local);
  // The other shardings that a value exists in.
  std::vector<sharding::Sharding> OtherForms(const hlo::Instruction* value) const;
  // Leaf by leaf.
  absl::StatusOr<hlo::Instruction*> ReshardTuple(hlo::Instruction* value, const hlo::Shape& global,
                                                 const std::vector<sharding::Sharding>& from,
                                                 const std::vector<sharding::Sharding>& to);
  const std::vector<sharding::Sharding>& Leaves(const hlo::Instruction& global) const;
  const sharding::Sharding& Only(const hlo::Instruction& global) const;
  // Shape of one device's part of a value of one or several leaves.
  static hlo::Shape LocalShape(const hlo::Shape& global,
                               const std::vector<sharding::Sharding>& leaves);
  // Returns the shardings that a program's caller sees: parameters and results are split evenly, by
  // the longest major parts of their shardings that divide them.
  std::vector<sharding::Sharding> EvenLeaves(const hlo::Instruction& global) const;
  // Warns about the instruction at hand. Of one kind and source line, such as that of all layers,
  // the first warning is kept.
  void Warn(Record warning);
  void CountWarnings();
  hlo::Instruction* Local(const hlo::Instruction* global) const { return local_[global->id()]; }
  // The forms of a local value; null if there is only itself.
  const std::vector<ShardedValue>* FormsOf(const hlo::Instruction* value) const;
  const hlo::Instruction* FirstForm(const hlo::Instruction* value) const;
  void IsForm(const hlo::Instruction* value, int32_t forms);
  absl::Status FinishCollectives();

  const sharding::ShardedModule& in_;
  PartitionResult result_;
  struct Warned {
    size_t index = 0;  // of the first, in result_.warnings
    std::unordered_set<std::string> texts;
  };
  std::map<std::string, Warned> warned_;  // by kind and source line
  std::unordered_map<const hlo::Computation*, hlo::Computation*> computations_;
  // The loop or conditional that calls a computation, and as which of its callees.
  std::unordered_map<const hlo::Computation*, std::pair<const hlo::Instruction*, size_t>> callers_;
  ReshardSites sites_;
  std::vector<hlo::Instruction*> local_;  // by id of the global instruction
  std::vector<std::vector<ShardedValue>> forms_;
  std::vector<int32_t> forms_of_;  // index into forms_ by id of the local instruction, or -1
  // Shards of iotas, repeated or not, which any device can make by itself: the dimension.
  std::unordered_map<const hlo::Instruction*, int64_t> iotas_;
  ReshardPlans plans_;
  sharding::RuleCache rules_;
  Builder* builder_ = nullptr;  // of the computation at hand
};

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_PARTITIONER_H_
