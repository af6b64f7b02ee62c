// The workload compiler, stage by stage: from a program to the streams of a pod.
//
//   Normalise -> State -> Partition -> Simplify -> BuildKernels -> Schedule -> Lower
//
// Each stage is an object that holds the program as it is then, and whose one method that takes the
// program away returns the next stage. Whoever compiles may look at the program between two stages
// and go no further: a search leaves a candidate as soon as a bound excludes it, `tpusim compile
// --emit` prints a stage, `--dump` all of them.
//
// A session compiles one program after the other, or one many times with other statements and for
// other slices. It keeps what compilations for a slice, or for slices of one chip, have in common.
//
// The room answers what becomes of a program at each stage; `Session` is its entry point. Options
// that said where to stop, callbacks that looked at a program on its way, and the name of a pass
// for the stage before layouts were tried and rejected: every caller had to know the order of what
// happens inside.
#ifndef TPUSIM_WORKLOADS_COMPILER_SESSION_H_
#define TPUSIM_WORKLOADS_COMPILER_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "configs/config.h"
#include "configs/record.h"
#include "models/isa/place.h"
#include "models/isa/program.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/compiler/compile_options.h"
#include "workloads/compiler/slice_cache.h"
#include "workloads/compiler/stages.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pipeline.h"
#include "workloads/remat/policies.h"
#include "workloads/sharding/normalised/normalise.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::compiler {

// A program before anything is stated of its shardings.
struct NormalisedProgram {
  hlo::ImportedWorkload imported;  // without its module where `normalised` has that
  std::optional<sharding::NormalisedModule> normalised;  // nullopt: it came partitioned
  bool came_scheduled = false;                           // its module had an order of execution
};

// Reads what the workload states of kernels into the module, and shardings out of it. Errors: a
// module that was compiled for something else than a TPU; a kernel's cost that has another form; as
// remat::StatePolicies and sharding::Normalise.
absl::StatusOr<NormalisedProgram> Normalise(hlo::ImportedWorkload imported,
                                            const std::vector<remat::StatedPolicy>& remat = {});

// Returns all of a workload but its module.
hlo::ImportedWorkload WithoutModule(const hlo::ImportedWorkload& imported);
// Returns a copy with a module of its own, for one of many compilations.
NormalisedProgram CopyOf(const NormalisedProgram& program);

// Returns how many partitions a program is for; 0: it does not say.
int64_t PartitionsOf(const hlo::ImportedWorkload& imported);

// Lists the values that a program names (checkpoint_name). Errors: as Normalise.
absl::StatusOr<std::string> NamesText(const hlo::ImportedWorkload& imported);
// Lists what there is to decide about the shardings of a program. Error: it came partitioned.
absl::StatusOr<std::string> DecisionsText(const NormalisedProgram& program);

// A module with all that is known beside it; every stage adds to it.
struct CompileResult {
  std::unique_ptr<hlo::Module> module;  // as the latest stage leaves it
  isa::PodProgram program;              // from Lower on
  isa::PlacesOfOps op_places;           // likewise, where that is asked
  bool by_tpu_compiler = false;         // the TPU compiler wrote the module
  // The program's own statements beside its module, with mesh and partitions from Partition on.
  tpusim::Workload workload;
  sharding::Mesh mesh;                       // no axes: the program names none
  bool mesh_is_free = false;                 // it could be another (no shard_map)
  std::vector<int64_t> device_of_partition;  // the device that runs each partition
  std::vector<std::pair<std::string, std::string>> dumps;  // what, text
  std::vector<passes::PassRun> pass_runs;                  // in order
  // Warnings and assumptions of the stages until the passes, and decisions that were asked for.
  std::vector<Record> records;
  std::vector<isa::ReshardSite> reshard_sites;
  // Distinct kernels whose tiles were searched for, however often the program has them.
  int64_t kernel_searches = 0;
};

// One compilation on its way; the implementation of the stages.
struct Compilation;

class CompileStage {
 public:
  CompileStage(CompileStage&&) noexcept;
  CompileStage& operator=(CompileStage&&) noexcept;
  ~CompileStage();

  const CompileResult& result() const;
  const hlo::Module& module() const { return *result().module; }
  // Ends the compilation here.
  CompileResult Take() &&;

 protected:
  explicit CompileStage(std::unique_ptr<Compilation> compilation);

  std::unique_ptr<Compilation> compilation_;
};

// The program is scheduled: its instructions are ordered and its arrays have places.
class ScheduledProgram : public CompileStage {
 public:
  const buffers::MemoryPlan& memory() const;
  // Error: what is live does not fit in HBM; says by how much, and the largest buffers.
  absl::Status CheckFits() const;
  // Returns the streams for `machine`, the slice that the program was compiled for with other
  // speeds: closed forms of the report, and algorithms that are chosen by time, are for that.
  // Errors: as CheckFits and of the lowering.
  absl::StatusOr<isa::PodProgram> LowerFor(const configs::Config& machine) const;
  // Lowers for the slice that the program was compiled for, or for `machine`.
  absl::StatusOr<CompileResult> Lower(const configs::Config* machine = nullptr) &&;
  // Gives the module the form that other backends can compile (stages.h).
  absl::StatusOr<CompileResult> MakeExecutable() &&;

 private:
  explicit ScheduledProgram(std::unique_ptr<Compilation> compilation);
  friend class KernelProgram;
};

// Operations are kernels and collectives, whose costs are known; they have no order yet.
class KernelProgram : public CompileStage {
 public:
  cost::ChipCostModel& costs() const;
  // Error: loops without a trip count or kernels without a price; names all of them.
  absl::Status CheckNothingOpen() const;
  // Runs the passes of Phase::kSchedule. Errors: as CheckNothingOpen and of the passes.
  absl::StatusOr<ScheduledProgram> Schedule() &&;

 private:
  explicit KernelProgram(std::unique_ptr<Compilation> compilation);
  friend class SimplifiedProgram;
};

// Arrays have no layouts yet; what is multiplied and what is exchanged is known.
class SimplifiedProgram : public CompileStage {
 public:
  cost::ChipCostModel& costs() const;
  // Runs the passes of Phase::kOptimize from the one that begins kernels on.
  absl::StatusOr<KernelProgram> BuildKernels() &&;

 private:
  explicit SimplifiedProgram(std::unique_ptr<Compilation> compilation);
  friend class PartitionedProgram;
};

// The program of one device, before any pass, and the device that runs each partition.
class PartitionedProgram : public CompileStage {
 public:
  // Runs the passes before the one that begins kernels.
  absl::StatusOr<SimplifiedProgram> Simplify() &&;

 private:
  explicit PartitionedProgram(std::unique_ptr<Compilation> compilation);
  friend class Session;
};

// Returns the program with shardings of all values. `reasons`: whether it is asked why values are
// sharded as they are. Errors: of the options and the propagation; a program that came partitioned.
absl::StatusOr<sharding::ShardedModule> State(NormalisedProgram program,
                                              const CompileOptions& options, bool reasons = true);

class Session {
 public:
  // States and partitions a program for a slice. Errors: as State; more partitions than the slice
  // has devices; options that state shardings of a program that came partitioned; an unknown pass
  // in `passes`, `dump_after` or `explain`.
  absl::StatusOr<PartitionedProgram> Partition(NormalisedProgram program,
                                               const CompileOptions& options,
                                               const configs::Config& slice, bool reasons = true);

  SliceCaches& caches() { return caches_; }

 private:
  SliceCaches caches_;
};

// The stages by the names that `tpusim compile --emit` has for them.
enum class Stage {
  kNames,
  kDecisions,
  kSharded,
  kPartitioned,
  kOptimized,
  kSchedule,
  kExecutable,
  kStreams
};

// Runs the stages behind `partitioned` up to `last`, one of kPartitioned and later; kStreams for
// `machine` where one is given (ScheduledProgram::LowerFor). Errors: as the stages.
absl::StatusOr<CompileResult> Finish(PartitionedProgram partitioned, Stage last = Stage::kStreams,
                                     const configs::Config* machine = nullptr);

// Compiles one program once, in a session of its own: Normalise, Partition and Finish.
absl::StatusOr<CompileResult> Compile(hlo::ImportedWorkload imported, const configs::Config& config,
                                      const CompileOptions& options, Stage last = Stage::kStreams,
                                      const configs::Config* machine = nullptr);

}  // namespace tpusim::compiler

#endif  // TPUSIM_WORKLOADS_COMPILER_SESSION_H_
