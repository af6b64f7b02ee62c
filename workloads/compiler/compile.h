// The workload compiler: every stage in order, from a file to a PodProgram.
//
//   import -> shard -> partition -> optimise -> schedule -> lower
//
// Each stage can be looked at by itself (`tpusim compile --emit STAGE`).
#ifndef TPUSIM_WORKLOADS_COMPILER_COMPILE_H_
#define TPUSIM_WORKLOADS_COMPILER_COMPILE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "configs/record.h"
#include "models/isa/place.h"
#include "models/isa/program.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/collectives/collective.h"
#include "workloads/compiler/trip_counts.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/kernels/kernel_library.h"
#include "workloads/passes/pipeline/pipeline.h"
#include "workloads/passes/pipeline/statements.h"
#include "workloads/remat/policies.h"
#include "workloads/sharding/normalise.h"
#include "workloads/sharding/sharding.h"
#include "workloads/sharding/stated_constraints.h"
#include "workloads/target/target.h"

namespace tpusim::compiler {

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

// The instruction streams of a program that is scheduled, for a machine: the slice that it was
// compiled for, with other speeds.
using LowerFor = std::function<absl::StatusOr<isa::PodProgram>(const configs::Config& machine)>;

// Looks at a program on its way, and says whether the compiler is to go on; it stops there if not.
struct Watch {
  // What each device runs, before any pass, and which device runs which partition.
  std::function<bool(const hlo::Module& module, const std::vector<int64_t>& device_of_partition)>
      partitioned;
  // Before arrays have layouts: it is known what is multiplied and what is exchanged.
  std::function<bool(const hlo::Module& module, cost::ChipCostModel& costs)> simplified;
  // After the passes that see no order, with what its operations cost.
  std::function<bool(const hlo::Module& module, cost::ChipCostModel& costs)> optimized;
  // Once instructions are ordered, before they are lowered, with where their arrays are.
  std::function<bool(const hlo::Module& module, const buffers::MemoryPlan& memory)> scheduled;
};

// What compilations for one slice have in common: kernels that were searched for, and how
// collectives are done.
//
// The compiler asks of a slice what its chip is, how collectives are done there, which groups fill
// which parts of it, and whether it is large, and nothing else. So a program that was compiled for one
// slice is known for another of the same chip if these questions have the same answers there.
class Common {
 public:
  // `kin` is that of another slice of the same chip, whose kernels this shares; it must live as long.
  explicit Common(configs::Config slice, const Common* kin = nullptr);
  Common(const Common&) = delete;
  Common& operator=(const Common&) = delete;

  const target::Target& target() const { return target_; }
  const std::shared_ptr<kernels::KernelLibrary>& kernels() const { return kernels_; }
  // `overrides` are the same every time.
  cost::ChipCostModel::Found Costs(const std::vector<int64_t>& device_of_partition,
                                   const collectives::AlgorithmOverrides& overrides);
  // Forgets all.
  void Clear();

  // Who runs what of the latest program, on any slice.
  using Place = std::function<absl::StatusOr<std::vector<int64_t>>(const configs::Config& slice)>;
  void SetPlace(Place place) { place_ = std::move(place); }
  // Whether the only program that was compiled with this would be scheduled the same way on
  // another slice of the same chip, which keeps the decisions that this takes.
  bool SameIn(Common& slice) const;

 private:
  const configs::Config config_;
  const target::Target target_;
  Place place_;
  std::shared_ptr<kernels::KernelLibrary> kernels_;
  std::map<std::vector<int64_t>, std::shared_ptr<cost::CollectiveDecisions>> collectives_;
};

struct CompileOptions {
  // --trip-count LOOP=N.
  TripCountOverrides trip_counts;
  // --branch, --kernel-cost, --ragged, --donate. Memories of arguments and the number of
  // partitions are the workload's.
  passes::Statements stated;
  // --mesh, --shard ARGUMENT=SHARDING: what it is taken to say of its mesh and arguments.
  std::vector<sharding::MeshAxis> mesh;
  std::vector<sharding::StatedConstraint> arguments;
  // --constrain VALUE=SHARDING: what the program is taken to ask for besides.
  std::vector<sharding::StatedConstraint> constraints;
  // --donate-argument, --keep-argument: which arguments lend results their buffers, and which do
  // not.
  std::vector<std::string> donated, kept;
  // --remat NAME=POLICY: what its backward pass is taken to compute again.
  std::vector<remat::StatedPolicy> remat;
  // --device-order: "" = the rule, "ids" = partition i on device i, or an
  // explicit list of device ids.
  std::string device_order;
  // --algorithm [KIND=]NAME of collectives.
  collectives::AlgorithmOverrides algorithms;
  // --passes: the passes to run, as passes::ParsePipeline reads them.
  std::string passes;
  // --no-verify-passes: the module is not verified after every pass.
  bool verify_passes = true;
  hlo::PrintOptions print;  // of dumps
  // --dump-after PASS: text of the module after each named pass.
  std::vector<std::string> dump_after;
  // --explain PASS: what each named pass says of its decisions.
  std::vector<std::string> explain;
  // Is given that once, before the program is lowered for the machine of the run.
  std::function<void(const LowerFor& lower)> scheduled;
  Watch watch;
  passes::PassWatch* pass_watch = nullptr;  // null: nobody
  // What other compilations found, for the same slice and the same algorithms.
  Common* common = nullptr;
  // What NormalisedOf made of the program, for one of many compilations: `imported.module` is not
  // read then.
  const sharding::NormalisedModule* normalised = nullptr;
  // Whether it is asked why values are sharded as they are.
  bool reasons = true;
  // Whether it is asked which lines of the program operations come from.
  bool op_places = false;
  // Where to stop; what comes later is left empty in the result.
  Stage until = Stage::kStreams;
};

struct CompileResult {
  std::string sharded_text;                  // kNames, kDecisions, kSharded
  std::unique_ptr<hlo::Module> partitioned;  // a copy of the module at that stage
  std::unique_ptr<hlo::Module> optimized;    // after all passes; scheduled from kSchedule
                                             // on; kExecutable: in that form
  isa::PodProgram program;                   // kStreams
  isa::PlacesOfOps op_places;                // likewise, where that is asked
  bool by_tpu_compiler = false;              // the TPU compiler wrote the module
  bool stopped = false;                      // by the watch
  // What the program said beside its module, from kPartitioned on with mesh and partitions.
  tpusim::Workload workload;
  sharding::Mesh mesh;                       // likewise; no axes: the program names none
  bool mesh_is_free = false;                 // likewise: it could be another (no shard_map)
  std::vector<int64_t> device_of_partition;  // likewise
  std::vector<std::pair<std::string, std::string>> dumps;  // what, text
  std::vector<passes::PassRun> pass_runs;                  // in order
  // Warnings and assumptions of the stages until the passes, and decisions that were asked for.
  std::vector<Record> records;
  std::vector<isa::ReshardSite> reshard_sites;  // from kPartitioned on
  // Distinct kernels whose tiles were searched for, however often the program has them.
  int64_t kernel_searches = 0;
};

// The first steps of Compile, which no option but --remat changes; `imported.module` is consumed.
// Errors: as sharding::Normalise and remat::StatePolicies; a kernel's cost that has another form.
absl::StatusOr<sharding::NormalisedModule> NormalisedOf(
    hlo::ImportedWorkload& imported, const std::vector<remat::StatedPolicy>& remat = {});

// `imported.module` is consumed. The program is what the compiler makes for `config`. It runs on
// `machine`, the same slice with other speeds, where one is given: closed forms of the report and
// algorithms that are chosen by time are for that. Errors: as the stages; also more partitions
// than the slice has devices, a tensor set that does not fit in HBM (by how
// much, the largest buffers), a loop without a known trip count (named, with
// the option that states it), an unknown pass in passes or dump_after.
absl::StatusOr<CompileResult> Compile(hlo::ImportedWorkload imported, const configs::Config& config,
                                      const CompileOptions& options,
                                      const configs::Config* machine = nullptr);

}  // namespace tpusim::compiler

#endif  // TPUSIM_WORKLOADS_COMPILER_COMPILE_H_
