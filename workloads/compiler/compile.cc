#include "workloads/compiler/compile.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "workloads/buffers/fits.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/compiler/reasons.h"
#include "workloads/compiler/stages.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/transforms/split_tuple_copies.h"
#include "workloads/kernels/custom_cost.h"
#include "workloads/lowering/lower.h"
#include "workloads/lowering/op_places.h"
#include "workloads/passes/passes.h"
#include "workloads/passes/spaces/memory_space_assignment.h"
#include "workloads/sharding/decisions.h"
#include "workloads/sharding/decode.h"
#include "workloads/sharding/normalise.h"
#include "workloads/sharding/propagate.h"
#include "workloads/spmd/partition.h"
#include "workloads/target/async_form.h"
#include "workloads/target/target.h"

namespace tpusim::compiler {
namespace {

using hlo::Instruction;

// Dumps go to `result`, which must live as long.
passes::PipelineOptions PipelineOptionsOf(const CompileOptions& options, CompileResult& result) {
  passes::PipelineOptions pipeline;
  pipeline.verify = options.verify_passes;
  pipeline.explain = options.explain;
  pipeline.watch = options.pass_watch;
  if (options.dump_after.empty() && options.explain.empty()) return pipeline;
  pipeline.after_pass = [&](const passes::PassRun& run, const hlo::Module& module) {
    const auto wants = [&run](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), run.pass) != names.end();
    };
    if (wants(options.explain)) {
      result.dumps.emplace_back("decisions of " + run.pass, passes::DecisionsOf(run));
    }
    if (wants(options.dump_after)) {
      result.dumps.emplace_back("after " + run.pass, hlo::ToString(module, options.print));
    }
  };
  return pipeline;
}

// What the workload states of opaque kernels.
absl::StatusOr<std::vector<kernels::NamedCost>> ExportedCosts(const tpusim::Workload& workload) {
  std::vector<kernels::NamedCost> costs;
  for (const tpusim::StatedKernelCost& kernel : workload.kernels()) {
    ASSIGN_OR_RETURN(kernels::NamedCost cost, kernels::NamedCostOf(kernel));
    costs.push_back(std::move(cost));
  }
  return costs;
}

absl::Status CheckTarget(const hlo::ImportedWorkload& imported) {
  if (imported.compiled_for_other.empty()) return absl::OkStatus();
  return UserError(fmt::format(
      "the module is {}, and no TPU runs that: give it as it was before "
      "(before_optimizations.txt of --xla_dump_to), or export the program",
      imported.compiled_for_other));
}

absl::Status SetStatedCosts(hlo::ImportedWorkload& imported) {
  RETURN_IF_ERROR(CheckTarget(imported));
  ASSIGN_OR_RETURN(const std::vector<kernels::NamedCost> exported,
                   ExportedCosts(imported.workload));
  kernels::SetCustomCosts(*imported.module, exported);
  return absl::OkStatus();
}

int64_t PartitionsOf(const hlo::ImportedWorkload& imported) {
  const int64_t stated = imported.workload.num_partitions();
  return stated > 0 ? stated : imported.num_partitions;
}

void Append(const std::vector<Record>& more, std::vector<Record>& all) {
  all.insert(all.end(), more.begin(), more.end());
}

// The first option that states shardings; null: none is given.
const char* StatedOfShardings(const CompileOptions& options) {
  if (!options.mesh.empty()) return "--mesh";
  if (!options.arguments.empty()) return "--shard";
  return options.constraints.empty() ? nullptr : "--constrain";
}

// Shardings of the whole arrays, which XLA's partitioner leaves on the parameters of one device.
void ClearShardings(hlo::Module& module) {
  for (hlo::Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (i->attrs().has_sharding()) i->mutable_attrs().clear_sharding();
    }
  }
}

// The program of one device, with what `result` says of mesh, partitions and warnings. Null: the
// sharded module was all that was asked for.
absl::StatusOr<std::unique_ptr<hlo::Module>> PartitionedModule(hlo::ImportedWorkload& imported,
                                                               const configs::Config& config,
                                                               const CompileOptions& options,
                                                               CompileResult& result) {
  const Stage until = options.until;
  const tpusim::Workload& workload = imported.workload;
  const int64_t stated = PartitionsOf(imported);
  const int64_t wanted = options.mesh.empty() ? stated : sharding::Mesh{options.mesh, {}}.size();
  result.workload = workload;
  result.workload.set_num_partitions(stated);
  // Before anything is made for each of them.
  const bool partitions = until > Stage::kSharded;
  if (partitions) RETURN_IF_ERROR(CheckPartitions(wanted, config));
  if (imported.partitioned) {
    if (until == Stage::kNames || !options.remat.empty()) {
      return UserError("the module is partitioned already: values have no names in it (--remat)");
    }
    if (!partitions) {
      return UserError("the module is partitioned already: it has no shardings to show");
    }
    if (const char* option = StatedOfShardings(options)) {
      return UserError(fmt::format("{}: the module is partitioned already", option));
    }
    if (!options.donated.empty() || !options.kept.empty()) {
      return UserError(fmt::format("{}: the module is partitioned already",
                                   options.kept.empty() ? "--donate-argument" : "--keep-argument"));
    }
    for (const tpusim::MeshAxis& axis : workload.mesh()) {
      result.mesh.axes.push_back({axis.name(), axis.size()});
    }
    if (result.mesh.axes.empty()) {
      ASSIGN_OR_RETURN(sharding::MeshTable table, sharding::FindMesh(*imported.module, stated));
      result.mesh = std::move(table.mesh);
      if (stated == 0) result.workload.set_num_partitions(result.mesh.size());
    }
    if (!imported.compiled) ClearShardings(*imported.module);
    hlo::SplitTupleCopies(*imported.module);
    return std::move(imported.module);
  }
  if (until == Stage::kNames) {
    ASSIGN_OR_RETURN(const std::vector<remat::NameUse> names, remat::NamesOf(*imported.module));
    result.sharded_text = remat::ToString(names);
    return std::unique_ptr<hlo::Module>();
  }
  if (options.normalised == nullptr) {
    RETURN_IF_ERROR(remat::StatePolicies(options.remat, *imported.module));
  }
  if (until == Stage::kDecisions) {
    if (const char* option = StatedOfShardings(options)) {
      return UserError(fmt::format(
          "{}: what there is to decide does not depend on it; leave it out, or --emit sharded",
          option));
    }
    ASSIGN_OR_RETURN(const sharding::NormalisedModule normalised,
                     sharding::Normalise(std::move(imported.module), stated));
    ASSIGN_OR_RETURN(const sharding::Decisions decisions, sharding::FindDecisions(normalised));
    result.sharded_text = sharding::ToString(decisions);
    return std::unique_ptr<hlo::Module>();
  }
  sharding::PropagationOptions propagation;
  propagation.mesh = options.mesh;
  propagation.arguments = options.arguments;
  propagation.constraints = options.constraints;
  propagation.donated = options.donated;
  propagation.kept = options.kept;
  // Where partitions were for another mesh.
  if (!options.mesh.empty()) {
    imported.workload.clear_coordinates();
    result.workload.clear_coordinates();
  }
  propagation.reasons = options.reasons;
  ASSIGN_OR_RETURN(sharding::ShardedModule sharded,
                   options.normalised != nullptr
                       ? sharding::ShardModule(sharding::CopyOf(*options.normalised), propagation)
                       : sharding::ShardModule(std::move(imported.module), stated, propagation));
  if (until == Stage::kSharded) {
    result.sharded_text = sharding::ToString(sharded);
    return std::unique_ptr<hlo::Module>();
  }
  RETURN_IF_ERROR(CheckPartitions(sharded.num_partitions, config));
  result.records = UnusedParts(sharded, config);
  ASSIGN_OR_RETURN(spmd::PartitionResult made,
                   spmd::Partition(sharded, cost::LatencyOfReshards(config.chip)));
  Append(made.warnings, result.records);
  result.reshard_sites = std::move(made.reshard_sites);
  result.mesh = sharded.mesh;
  result.mesh_is_free = sharded.manual_regions.empty();
  result.workload.set_num_partitions(sharded.num_partitions);
  result.workload.clear_mesh();
  for (const sharding::MeshAxis& axis : sharded.mesh.axes) {
    tpusim::MeshAxis& named = *result.workload.add_mesh();
    named.set_name(axis.name);
    named.set_size(axis.size);
  }
  return std::move(made.module);
}

// What is known once the instructions are ordered.
struct Scheduled {
  const DevicePlacement& placement;
  const target::Target& target;
  cost::ChipCostModel& costs;
  TripCounts& trip_counts;
  const CompileOptions& options;
  const buffers::MemoryPlan& memory;
};

// What is known of the program beside its streams.
void FillInfo(const CompileResult& result, const buffers::MemoryPlan& memory,
              const Scheduled& scheduled, isa::ProgramInfo& info) {
  const hlo::Module& module = *result.optimized;
  info.module_name = result.workload.name().empty() ? module.name() : result.workload.name();
  info.partitions = result.workload.num_partitions();
  info.device_order = scheduled.placement.rule;
  for (const configs::Memory& of : configs::kMemories) {
    if (!of.planned) continue;
    info.peak.In(of.space) = memory.PeakOf(of.number);
    info.usable.In(of.space) = scheduled.target.Usable(of.number);
  }
  info.hbm_fragmentation = memory.fragmentation;
  if (memory.peak_at != nullptr) info.peak_at = memory.peak_at->name();
}

// All records in the order in which reports have them; `lowered` are those of the lowering.
std::vector<Record> RecordsInOrder(const CompileResult& result, const TripCounts& trip_counts,
                                   const std::vector<Record>& lowered,
                                   const std::vector<std::string>& algorithms) {
  std::vector<Record> all = trip_counts.assumptions();
  const auto say = [&](const Reason& reason, const std::string& sentence) {
    Records(&all).Add(reason, "", {{"sentence", sentence}});
  };
  for (const std::string& s : result.workload.assumptions()) say(reasons::kExporterAssumed, s);
  Append(lowered, all);
  Append(kernels::CostAssumptions(*result.optimized), all);
  Append(kernels::FreeHostCallbacks(*result.optimized), all);
  Append(result.records, all);
  for (const std::string& s : algorithms) say(reasons::kAlgorithmAssumed, s);
  Append(trip_counts.Unused(), all);
  return all;
}

// The streams for `machine`, or for the slice that the module was compiled for.
absl::Status LowerProgram(const Scheduled& scheduled, const configs::Config* machine,
                          CompileResult& result) {
  const hlo::Module& module = *result.optimized;
  const CompileOptions& options = scheduled.options;
  const std::vector<int64_t>& device_of_partition = scheduled.placement.device_of_partition;
  const buffers::MemoryPlan& memory = scheduled.memory;
  RETURN_IF_ERROR(buffers::CheckFits(module, memory, scheduled.target));
  std::vector<std::string> algorithms_assumed;
  const auto lower = [&](const configs::Config& on,
                         cost::CollectiveDecisions& decisions) -> absl::StatusOr<isa::PodProgram> {
    lowering::CollectiveLibrary collectives(decisions);
    const auto trips = [&](const Instruction& loop) { return scheduled.trip_counts(loop); };
    ASSIGN_OR_RETURN(
        isa::PodProgram program,
        lowering::Lower({&module, &memory, &scheduled.costs.kernels(), &collectives, trips},
                        target::Target(on)));
    FillInfo(result, memory, scheduled, program.info);
    algorithms_assumed = collectives.Assumptions();
    return program;
  };
  const LowerFor lower_for = [&](const configs::Config& on) {
    cost::CollectiveDecisions decisions(on, device_of_partition, options.algorithms);
    return lower(on, decisions);
  };
  if (options.scheduled) options.scheduled(lower_for);
  ASSIGN_OR_RETURN(result.program, machine != nullptr ? lower_for(*machine)
                                                      : lower(scheduled.target.config(),
                                                              scheduled.costs.collectives()));
  result.kernel_searches = scheduled.costs.kernels().searches();
  result.device_of_partition = device_of_partition;
  isa::ProgramInfo& info = result.program.info;
  info.records = RecordsInOrder(result, scheduled.trip_counts, info.records, algorithms_assumed);
  info.reshard_sites = result.reshard_sites;
  return absl::OkStatus();
}

}  // namespace

Common::Common(configs::Config slice, const Common* kin)
    : config_(std::move(slice)),
      target_(config_),
      kernels_(kin != nullptr ? kin->kernels_ : std::make_shared<kernels::KernelLibrary>(target_)) {
}

cost::ChipCostModel::Found Common::Costs(const std::vector<int64_t>& device_of_partition,
                                         const collectives::AlgorithmOverrides& overrides) {
  std::shared_ptr<cost::CollectiveDecisions>& decisions = collectives_[device_of_partition];
  if (decisions == nullptr) {
    decisions =
        std::make_shared<cost::CollectiveDecisions>(config_, device_of_partition, overrides);
  }
  return {kernels_, decisions};
}

bool Common::SameIn(Common& slice) const {
  if (place_ == nullptr ||
      target::HasAsyncPermutes(target_) != target::HasAsyncPermutes(slice.target_)) {
    return false;
  }
  const absl::StatusOr<std::vector<int64_t>> here = place_(config_), there = place_(slice.config_);
  if (!here.ok() || !there.ok()) return false;
  const auto found = collectives_.find(*here);
  return found != collectives_.end() &&
         found->second->SameIn(*slice.Costs(*there, found->second->overrides()).collectives);
}

void Common::Clear() {
  kernels_ = std::make_shared<kernels::KernelLibrary>(target_);
  collectives_.clear();
}

absl::StatusOr<sharding::NormalisedModule> NormalisedOf(
    hlo::ImportedWorkload& imported, const std::vector<remat::StatedPolicy>& remat) {
  RETURN_IF_ERROR(SetStatedCosts(imported));
  RETURN_IF_ERROR(remat::StatePolicies(remat, *imported.module));
  return sharding::Normalise(std::move(imported.module), PartitionsOf(imported));
}

absl::StatusOr<CompileResult> Compile(hlo::ImportedWorkload imported, const configs::Config& config,
                                      const CompileOptions& options,
                                      const configs::Config* machine) {
  const bool compiled = imported.compiled;
  if (compiled && !options.passes.empty()) {
    return UserError("--passes: the TPU compiler wrote this module; it is run as it is");
  }
  ASSIGN_OR_RETURN(passes::Pipeline pipeline,
                   passes::ParsePipeline(compiled ? passes::CompiledPipeline() : options.passes));
  pipeline = passes::WithAnnotations(std::move(pipeline));
  RETURN_IF_ERROR(passes::CheckNamed("--dump-after", options.dump_after, pipeline));
  RETURN_IF_ERROR(passes::CheckNamed("--explain", options.explain, pipeline));

  CompileResult result;
  result.by_tpu_compiler = compiled;
  const hlo::Module& source =
      options.normalised != nullptr ? *options.normalised->module : *imported.module;
  const bool scheduled = !source.entry()->schedule().empty();
  // Partitioned, instructions may have other names than the exporter saw.
  TripCounts trip_counts(imported.workload, options.trip_counts);
  if (options.normalised == nullptr) RETURN_IF_ERROR(SetStatedCosts(imported));
  ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> partitioned,
                   PartitionedModule(imported, config, options, result));
  if (partitioned == nullptr) return result;
  if (scheduled && !compiled && passes::HasPlaces(*partitioned)) {
    const passes::Pass* const assigns = passes::FindPass("memory-space-assignment");
    std::erase_if(pipeline, [&](const passes::PipelineStep& step) { return step.pass == assigns; });
    Records(&result.records).Add(reasons::kPlacesKept, partitioned->name());
  }
  RETURN_IF_ERROR(hlo::VerifyChanges(*partitioned));
  if (options.until == Stage::kPartitioned) {
    result.partitioned = std::move(partitioned);
    return result;
  }

  result.optimized = std::move(partitioned);
  hlo::Module& module = *result.optimized;
  passes::Statements stated = options.stated;
  stated.partitions = result.workload.num_partitions();
  stated.kernel_trips = [&](const tpusim::KernelLoop& loop) {
    return trip_counts.OfKernelLoop(loop);
  };
  stated.argument_memories.assign(imported.workload.argument_memory_kinds().begin(),
                                  imported.workload.argument_memory_kinds().end());
  ASSIGN_OR_RETURN(const DevicePlacement placement,
                   PlacePartitions(imported.workload, result.mesh, stated.partitions, config,
                                   options.device_order));
  if (options.watch.partitioned &&
      !options.watch.partitioned(module, placement.device_of_partition)) {
    result.stopped = true;
    return result;
  }
  std::optional<Common> own;
  Common& common = options.common != nullptr ? *options.common : own.emplace(config);
  if (options.common != nullptr) {
    common.SetPlace([workload = imported.workload, mesh = result.mesh,
                     partitions = stated.partitions, order = options.device_order](
                        const configs::Config& slice) -> absl::StatusOr<std::vector<int64_t>> {
      ASSIGN_OR_RETURN(DevicePlacement placed,
                       PlacePartitions(workload, mesh, partitions, slice, order));
      return std::move(placed.device_of_partition);
    });
  }
  const target::Target& target = common.target();
  cost::ChipCostModel costs(target, common.Costs(placement.device_of_partition, options.algorithms),
                            [&](const Instruction& loop) { return trip_counts(loop); });
  passes::PassContext context(target, &costs);
  context.stated = &stated;
  const passes::PipelineOptions pipeline_options = PipelineOptionsOf(options, result);
  const auto run_steps = [&](const passes::Pipeline& steps) -> absl::Status {
    const size_t before = result.pass_runs.size();
    RETURN_IF_ERROR(
        passes::RunPipeline(steps, module, context, pipeline_options, result.pass_runs).status());
    for (size_t n = before; n < result.pass_runs.size(); ++n) {
      Append(result.pass_runs[n].records, result.records);
    }
    return absl::OkStatus();
  };
  const auto run = [&](passes::Phase phase) { return run_steps(passes::StepsOf(pipeline, phase)); };
  RETURN_IF_ERROR(run(passes::Phase::kAnnotate));
  RETURN_IF_ERROR(run(passes::Phase::kRead));
  passes::Pipeline simplify = passes::StepsOf(pipeline, passes::Phase::kOptimize);
  const auto layout =
      simplify.begin() + static_cast<ptrdiff_t>(passes::StepsBefore(simplify, "layout"));
  const passes::Pipeline make_kernels(layout, simplify.end());
  simplify.erase(layout, simplify.end());
  RETURN_IF_ERROR(run_steps(simplify));
  if (options.watch.simplified && !options.watch.simplified(module, costs)) {
    result.stopped = true;
    return result;
  }
  RETURN_IF_ERROR(run_steps(make_kernels));
  if (scheduled && module.entry()->schedule().empty()) {
    Records(&result.records).Add(reasons::kOrderDropped, module.name());
  }
  if (options.until == Stage::kOptimized) return result;

  RETURN_IF_ERROR(CheckNothingOpen(module, trip_counts));
  if (options.watch.optimized && !options.watch.optimized(module, costs)) {
    result.stopped = true;
    return result;
  }
  RETURN_IF_ERROR(run(passes::Phase::kSchedule));
  if (options.until == Stage::kSchedule) return result;
  if (options.until == Stage::kExecutable) {
    MakeExecutable(module);
    RETURN_IF_ERROR(hlo::VerifyChanges(module));
    return result;
  }
  const buffers::MemoryPlan& memory = context.facts->PlanOf(module, target);
  if (options.watch.scheduled && !options.watch.scheduled(module, memory)) {
    result.stopped = true;
    return result;
  }
  RETURN_IF_ERROR(LowerProgram({placement, target, costs, trip_counts, options, memory}, machine,
                               result));
  if (options.op_places) result.op_places = lowering::PlacesOfOperations(module);
  return result;
}

}  // namespace tpusim::compiler
