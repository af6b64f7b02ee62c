#include "workloads/compile.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/buffers/donation.h"
#include "workloads/buffers/memory_plan.h"
#include "workloads/buffers/owners.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/device_placement.h"
#include "workloads/executable_form.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/assumed_trips.h"
#include "workloads/kernels/stated_time.h"
#include "workloads/lowering/lower.h"
#include "workloads/mesh_use.h"
#include "workloads/open_figures.h"
#include "workloads/passes/host/placement.h"
#include "workloads/passes/passes.h"
#include "workloads/passes/pipeline/pipeline.h"
#include "workloads/passes/spaces/memory_space_assignment.h"
#include "workloads/sharding/propagate.h"
#include "workloads/spmd/partition.h"
#include "workloads/target/target.h"
#include "workloads/trip_counts.h"

namespace tpusim::workloads {
namespace {

using hlo::Instruction;

// Names of the instructions of an opcode.
std::vector<std::string> NamesOf(const hlo::Module& module, hlo::Opcode opcode) {
  std::vector<std::string> names;
  for (const hlo::Computation* computation : module.computations()) {
    for (const Instruction* i : computation->instructions()) {
      if (i->opcode() == opcode) names.push_back(i->name());
    }
  }
  return names;
}

bool HasNamed(const hlo::Module& module, hlo::Opcode opcode, const std::string& pattern) {
  const std::vector<std::string> names = NamesOf(module, opcode);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

// "the program has no conditional", "its conditionals are a, b".
std::string WithNames(const hlo::Module& module, hlo::Opcode opcode, const char* none,
                      const char* some) {
  const std::vector<std::string> names = NamesOf(module, opcode);
  return names.empty() ? fmt::format("the program has {}", none)
                       : fmt::format("its {} are {}", some, fmt::join(names, ", "));
}

absl::Status CheckPasses(const char* option, const std::vector<std::string>& named,
                         const std::vector<std::string>& passes) {
  for (const std::string& name : named) {
    if (std::find(passes.begin(), passes.end(), name) != passes.end()) continue;
    return UserError(fmt::format("{}: no pass '{}' runs; the passes are {}", option, name,
                                 fmt::join(passes, ", ")));
  }
  return absl::OkStatus();
}

// Dumps go to `result`, which must live as long.
passes::PipelineOptions PipelineOptionsOf(const CompileOptions& options, CompileResult& result) {
  passes::PipelineOptions pipeline;
  pipeline.verify = options.verify_passes;
  pipeline.explain = options.explain;
  if (options.dump_after.empty() && options.explain.empty()) return pipeline;
  pipeline.after_pass = [&](const passes::PassRun& run, const hlo::Module& module) {
    const auto wants = [&run](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), run.pass) != names.end();
    };
    if (wants(options.explain)) {
      result.dumps.emplace_back("decisions of " + run.pass, Lines(run.records));
    }
    if (wants(options.dump_after)) {
      result.dumps.emplace_back("after " + run.pass, hlo::ToString(module, options.print));
    }
  };
  return pipeline;
}

// What the exporter knows of opaque kernels.
absl::StatusOr<std::vector<kernels::NamedCost>> ExportedCosts(const tpusim::Workload& workload,
                                                              TripCounts& trip_counts) {
  std::vector<kernels::NamedCost> costs;
  for (const tpusim::KernelCost& kernel : workload.kernels()) {
    ASSIGN_OR_RETURN(kernels::NamedCost cost,
                     kernels::NamedCostOf(kernel, [&](const tpusim::KernelLoop& loop) {
                       return trip_counts.OfKernelLoop(loop);
                     }));
    costs.push_back(std::move(cost));
  }
  return costs;
}

// Of Jacobi's method, in calls without a stated cost.
absl::Status CountSweeps(const hlo::Module& module, TripCounts& trip_counts) {
  for (const hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* i : computation->instructions()) {
      if (!hlo::IsEighCall(*i) || !kernels::IsFactorizationCall(*i)) continue;
      ASSIGN_OR_RETURN(const int64_t sweeps, trip_counts(*i));
      hlo::SetSweeps(i, sweeps);
    }
  }
  return absl::OkStatus();
}

// The program of one device, with what `result` says of mesh, partitions and warnings. Null: the
// sharded module was all that was asked for.
absl::StatusOr<std::unique_ptr<hlo::Module>> PartitionedModule(hlo::ImportedWorkload& imported,
                                                               const configs::Config& config,
                                                               const CompileOptions& options,
                                                               CompileResult& result) {
  const Stage until = options.until;
  const tpusim::Workload& workload = imported.workload;
  const int64_t stated =
      workload.num_partitions() > 0 ? workload.num_partitions() : imported.num_partitions;
  result.workload = workload;
  result.workload.set_num_partitions(stated);
  // Before anything is made for each of them.
  if (until != Stage::kSharded) RETURN_IF_ERROR(CheckPartitions(stated, config));
  if (imported.partitioned) {
    if (until == Stage::kSharded) {
      return UserError("the module is partitioned already: it has no shardings to show");
    }
    if (!options.constraints.empty()) {
      return UserError("--constrain: the module is partitioned already");
    }
    for (const tpusim::MeshAxis& axis : workload.mesh()) {
      result.mesh.axes.push_back({axis.name(), axis.size()});
    }
    return std::move(imported.module);
  }
  sharding::PropagationOptions propagation;
  propagation.constraints = options.constraints;
  ASSIGN_OR_RETURN(sharding::ShardedModule sharded,
                   sharding::ShardModule(std::move(imported.module), stated, propagation));
  if (until == Stage::kSharded) {
    result.sharded_text = sharding::ToString(sharded);
    return std::unique_ptr<hlo::Module>();
  }
  RETURN_IF_ERROR(CheckPartitions(sharded.num_partitions, config));
  result.warnings = UnusedParts(sharded, config);
  ASSIGN_OR_RETURN(spmd::PartitionResult made, spmd::Partition(sharded));
  result.warnings.insert(result.warnings.end(), made.warnings.begin(), made.warnings.end());
  result.reshard_sites = std::move(made.reshard_sites);
  result.mesh = sharded.mesh;
  result.workload.set_num_partitions(sharded.num_partitions);
  result.workload.clear_mesh();
  for (const sharding::MeshAxis& axis : sharded.mesh.axes) {
    tpusim::MeshAxis& named = *result.workload.add_mesh();
    named.set_name(axis.name);
    named.set_size(axis.size);
  }
  return std::move(made.module);
}

}  // namespace

absl::StatusOr<CompileResult> Compile(hlo::ImportedWorkload imported, const configs::Config& config,
                                      const CompileOptions& options,
                                      const configs::Config* machine) {
  ASSIGN_OR_RETURN(passes::Pipeline pipeline, passes::ParsePipeline(options.passes));
  const std::vector<std::string> names = passes::NamesOf(pipeline);
  RETURN_IF_ERROR(CheckPasses("--dump-after", options.dump_after, names));
  RETURN_IF_ERROR(CheckPasses("--explain", options.explain, names));

  CompileResult result;
  const tpusim::Workload& workload = imported.workload;
  const bool scheduled = !imported.module->entry()->schedule().empty();
  // Partitioned, instructions may have other names than the exporter saw.
  TripCounts trip_counts(workload, options.trip_counts);
  ASSIGN_OR_RETURN(const std::vector<kernels::NamedCost> exported,
                   ExportedCosts(workload, trip_counts));
  kernels::SetCustomCosts(*imported.module, exported);
  ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> partitioned,
                   PartitionedModule(imported, config, options, result));
  if (partitioned == nullptr) return result;
  if (scheduled && passes::HasPlaces(*partitioned)) {
    const passes::Pass* const assigns = passes::FindPass("memory-space-assignment");
    std::erase_if(pipeline, [&](const passes::PipelineStep& step) { return step.pass == assigns; });
    result.warnings.push_back(
        "the module comes compiled, with arrays in VMEM or CMEM: they stay there, and no others "
        "are "
        "put there (memory-space-assignment is not run)");
  }
  const sharding::Mesh& mesh = result.mesh;
  const int64_t partitions = result.workload.num_partitions();
  RETURN_IF_ERROR(hlo::Verify(*partitioned));
  if (options.until == Stage::kPartitioned) {
    result.partitioned = std::move(partitioned);
    return result;
  }

  const target::Target target(config);
  result.optimized = std::move(partitioned);
  hlo::Module& module = *result.optimized;
  RETURN_IF_ERROR(passes::SetArgumentMemories(
      module, {workload.argument_memory_kinds().begin(), workload.argument_memory_kinds().end()}));
  if (options.donate) buffers::DonateArguments(module);
  // The user's word counts more than the exporter's.
  const std::vector<int64_t> uses = kernels::SetCustomCosts(module, options.kernel_costs);
  for (size_t n = 0; n < options.kernel_costs.size(); ++n) {
    if (uses[n] > 0) continue;
    result.warnings.push_back(
        fmt::format("--kernel-cost {} has no effect: {}", options.kernel_costs[n].name,
                    WithNames(module, hlo::Opcode::kCustomCall, "no custom call", "custom calls")));
  }
  kernels::HoldToStatedTimes(module, target);
  hlo::SetAssumedTrips(module);
  RETURN_IF_ERROR(CountSweeps(module, trip_counts));
  for (const auto& [pattern, choice] : options.branches) {
    if (HasNamed(module, hlo::Opcode::kConditional, pattern)) continue;
    result.warnings.push_back(fmt::format(
        "--branch {}={} has no effect: {}", pattern, choice,
        WithNames(module, hlo::Opcode::kConditional, "no conditional", "conditionals")));
  }
  ASSIGN_OR_RETURN(const lowering::RaggedNotes ragged,
                   lowering::SetRaggedSizes(module, partitions, options.ragged));
  result.warnings.insert(result.warnings.end(), ragged.warnings.begin(), ragged.warnings.end());
  ASSIGN_OR_RETURN(const DevicePlacement placement,
                   PlacePartitions(workload, mesh, partitions, config, options.device_order));
  const auto trips = [&trip_counts](const Instruction& loop) { return trip_counts(loop); };
  cost::ChipCostModel costs(target, placement.device_of_partition, options.algorithms, trips);
  const passes::PipelineOptions pipeline_options = PipelineOptionsOf(options, result);
  RETURN_IF_ERROR(passes::RunPipeline(passes::StepsOf(pipeline, passes::Phase::kOptimize), module,
                                      {target, &costs}, pipeline_options, result.pass_runs)
                      .status());
  if (scheduled && module.entry()->schedule().empty()) {
    result.warnings.push_back(
        "the module comes in an order of execution (is_scheduled), which is not kept: passes have "
        "changed it, and its instructions are ordered anew");
  }
  if (options.until == Stage::kOptimized) return result;

  RETURN_IF_ERROR(CheckNothingOpen(module, trip_counts));
  RETURN_IF_ERROR(passes::RunPipeline(passes::StepsOf(pipeline, passes::Phase::kSchedule), module,
                                      {target, &costs}, pipeline_options, result.pass_runs)
                      .status());
  if (options.until == Stage::kSchedule) return result;
  if (options.until == Stage::kExecutable) {
    MakeExecutable(module);
    RETURN_IF_ERROR(hlo::Verify(module));
    return result;
  }

  ASSIGN_OR_RETURN(const buffers::MemoryPlan memory, buffers::PlanMemory(module, target));
  std::vector<std::string> algorithms_assumed;
  const auto lower = [&](const configs::Config& on,
                         cost::CollectiveDecisions& decisions) -> absl::StatusOr<isa::PodProgram> {
    lowering::CollectiveLibrary collectives(decisions);
    ASSIGN_OR_RETURN(
        isa::PodProgram program,
        lowering::Lower({&module, &memory, &costs.kernels(), &collectives, trips, options.branches},
                        target::Target(on)));
    isa::ProgramInfo& info = program.info;
    info.module_name = workload.name().empty() ? module.name() : workload.name();
    info.partitions = partitions;
    info.device_order = placement.rule;
    info.peak_hbm = memory.PeakOf(hlo::kHbmSpace);
    info.usable_hbm = target.Usable(hlo::kHbmSpace);
    info.peak_cmem = memory.PeakOf(hlo::kCmemSpace);
    info.usable_cmem = target.Usable(hlo::kCmemSpace);
    info.hbm_fragmentation = memory.fragmentation;
    if (memory.peak_at != nullptr) info.peak_at = memory.peak_at->name();
    algorithms_assumed = collectives.Assumptions();
    return program;
  };
  const LowerFor lower_for = [&](const configs::Config& on) {
    cost::CollectiveDecisions decisions(on, placement.device_of_partition, options.algorithms);
    return lower(on, decisions);
  };
  if (options.scheduled) options.scheduled(lower_for);
  ASSIGN_OR_RETURN(result.program,
                   machine != nullptr ? lower_for(*machine) : lower(config, costs.collectives()));
  result.kernel_searches = costs.kernels().searches();
  isa::ProgramInfo& info = result.program.info;
  result.device_of_partition = placement.device_of_partition;
  buffers::Ownership ownership = buffers::FindOwners(module, memory);
  info.live_at_peak = std::move(ownership.at_peak);
  info.owners = std::move(ownership.owners);
  for (size_t n = 0; n < info.buffers.size(); ++n) {
    info.buffers[n].owner = ownership.of_buffer[n];
  }
  const std::vector<std::string> trips_assumed = trip_counts.assumptions();
  info.assumptions.insert(info.assumptions.begin(), workload.assumptions().begin(),
                          workload.assumptions().end());
  info.assumptions.insert(info.assumptions.begin(), trips_assumed.begin(), trips_assumed.end());
  for (std::string& sentence : kernels::CostAssumptions(module)) {
    info.assumptions.push_back(std::move(sentence));
  }
  for (std::string& sentence : kernels::FreeHostCallbacks(module)) {
    info.assumptions.push_back(std::move(sentence));
  }
  info.assumptions.insert(info.assumptions.end(), ragged.assumptions.begin(),
                          ragged.assumptions.end());
  info.assumptions.insert(info.assumptions.end(), algorithms_assumed.begin(),
                          algorithms_assumed.end());
  for (std::string& warning : trip_counts.Unused()) result.warnings.push_back(std::move(warning));
  info.warnings = result.warnings;
  info.reshard_sites = result.reshard_sites;
  return result;
}

}  // namespace tpusim::workloads
