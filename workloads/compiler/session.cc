#include "workloads/compiler/session.h"

#include <algorithm>
#include <utility>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "workloads/buffers/fits.h"
#include "workloads/compiler/reasons.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/transforms/expand_composites.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/lowering/lower.h"
#include "workloads/lowering/op_places.h"
#include "workloads/passes/passes.h"
#include "workloads/passes/spaces/memory_space_assignment.h"
#include "workloads/sharding/decisions/decisions.h"
#include "workloads/sharding/propagation/propagate.h"
#include "workloads/sharding/text/decode.h"
#include "workloads/spmd/partition.h"

namespace tpusim::compiler {
namespace {

using hlo::Instruction;

// Returns what the workload states of opaque kernels.
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

void Append(const std::vector<Record>& more, std::vector<Record>& all) {
  all.insert(all.end(), more.begin(), more.end());
}

// Removes shardings of whole arrays, which XLA's partitioner leaves on the parameters of one
// device.
void ClearShardings(hlo::Module& module) {
  for (hlo::Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (i->attrs().has_sharding()) i->mutable_attrs().clear_sharding();
    }
  }
}

// Error: options state shardings, of a program that has none any more.
absl::Status CheckNothingStated(const CompileOptions& options) {
  const std::pair<bool, const char*> given[] = {{!options.mesh.empty(), "--mesh"},
                                                {!options.arguments.empty(), "--shard"},
                                                {!options.constraints.empty(), "--constrain"},
                                                {!options.kept.empty(), "--keep-argument"},
                                                {!options.donated.empty(), "--donate-argument"}};
  for (const auto& [is_given, option] : given) {
    if (is_given) return UserError(fmt::format("{}: the module is partitioned already", option));
  }
  return absl::OkStatus();
}

absl::StatusOr<passes::Pipeline> PipelineOf(const CompileOptions& options, bool by_tpu_compiler) {
  if (by_tpu_compiler && !options.passes.empty()) {
    return UserError("--passes: the TPU compiler wrote this module; it is run as it is");
  }
  ASSIGN_OR_RETURN(
      passes::Pipeline pipeline,
      passes::ParsePipeline(by_tpu_compiler ? passes::CompiledPipeline() : options.passes));
  pipeline = passes::WithAnnotations(std::move(pipeline));
  RETURN_IF_ERROR(passes::CheckNamed("--dump-after", options.dump_after, pipeline));
  RETURN_IF_ERROR(passes::CheckNamed("--explain", options.explain, pipeline));
  return pipeline;
}

// Takes the module of a program that came partitioned, with the mesh that it was partitioned for.
// `result` has the workload.
absl::Status TakePartitioned(hlo::ImportedWorkload& imported, CompileResult& result) {
  for (const tpusim::MeshAxis& axis : result.workload.mesh()) {
    result.mesh.axes.push_back({axis.name(), axis.size()});
  }
  if (result.mesh.axes.empty()) {
    const int64_t partitions = result.workload.num_partitions();
    ASSIGN_OR_RETURN(sharding::MeshTable table, sharding::FindMesh(*imported.module, partitions));
    result.mesh = std::move(table.mesh);
    if (partitions == 0) result.workload.set_num_partitions(result.mesh.size());
  }
  if (!imported.compiled) ClearShardings(*imported.module);
  hlo::ExpandComposites(*imported.module);
  result.module = std::move(imported.module);
  return absl::OkStatus();
}

// Makes the program of one device, with what `result` says of mesh, partitions and warnings.
absl::Status MakePartitioned(const sharding::ShardedModule& sharded, const configs::Config& slice,
                             CompileResult& result) {
  RETURN_IF_ERROR(CheckPartitions(sharded.num_partitions, slice));
  result.records = UnusedParts(sharded, slice);
  ASSIGN_OR_RETURN(spmd::PartitionResult made,
                   spmd::Partition(sharded, cost::LatencyOfReshards(slice.chip)));
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
  result.module = std::move(made.module);
  return absl::OkStatus();
}

}  // namespace

struct Compilation {
  Compilation(CompileOptions stated_options, passes::Pipeline passes, TripCounts trips,
              CompileResult so_far, DevicePlacement placed, SliceCache& slice)
      : options(std::move(stated_options)),
        pipeline(std::move(passes)),
        trip_counts(std::move(trips)),
        result(std::move(so_far)),
        placement(std::move(placed)),
        target(slice.target()),
        costs(target, slice.Costs(placement.device_of_partition, options.algorithms),
              [this](const Instruction& loop) { return trip_counts(loop); }),
        stated(options.stated),
        context(target, costs) {
    const tpusim::Workload& workload = result.workload;
    stated.partitions = workload.num_partitions();
    stated.kernel_trips = [this](const tpusim::KernelLoop& loop) {
      return trip_counts.OfKernelLoop(loop);
    };
    stated.argument_memories.assign(workload.argument_memory_kinds().begin(),
                                    workload.argument_memory_kinds().end());
    context.stated = &stated;
    result.device_of_partition = placement.device_of_partition;
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  hlo::Module& module() { return *result.module; }
  const buffers::MemoryPlan& memory() { return context.facts->PlanOf(module(), target); }

  absl::Status Run(const passes::Pipeline& steps);
  absl::Status Run(passes::Phase phase) { return Run(passes::StepsOf(pipeline, phase)); }
  absl::Status CheckNothingOpen();
  absl::StatusOr<isa::PodProgram> Lowered(const configs::Config& on,
                                          cost::CollectiveDecisions& decisions,
                                          std::vector<std::string>& assumed);
  void FillInfo(isa::ProgramInfo& info);
  std::vector<Record> RecordsInOrder(const std::vector<Record>& lowered,
                                     const std::vector<std::string>& algorithms);

  const CompileOptions options;
  passes::Pipeline pipeline;
  TripCounts trip_counts;
  CompileResult result;
  const DevicePlacement placement;
  const target::Target& target;
  cost::ChipCostModel costs;
  passes::Statements stated;
  passes::PassContext context;
  bool came_scheduled = false, is_closed = false;
};

// Runs some steps; texts that were asked for go into the result.
absl::Status Compilation::Run(const passes::Pipeline& steps) {
  passes::PipelineOptions how;
  how.verify = options.verify_passes;
  how.explain = options.explain;
  how.watch = options.pass_watch;
  how.after_pass = [this](const passes::PassRun& run, const hlo::Module& after) {
    const auto is_in = [&run](const std::vector<std::string>& names) {
      return std::ranges::find(names, run.pass) != names.end();
    };
    if (is_in(options.explain)) {
      result.dumps.emplace_back("decisions of " + run.pass, passes::DecisionsOf(run));
    }
    if (is_in(options.dump_after)) {
      result.dumps.emplace_back("after " + run.pass, hlo::ToString(after, options.print));
    }
  };
  const size_t before = result.pass_runs.size();
  RETURN_IF_ERROR(
      passes::RunPipeline(steps, module(), context, how, result.pass_runs).status());
  for (size_t n = before; n < result.pass_runs.size(); ++n) {
    Append(result.pass_runs[n].records, result.records);
  }
  return absl::OkStatus();
}

absl::Status Compilation::CheckNothingOpen() {
  if (is_closed) return absl::OkStatus();
  RETURN_IF_ERROR(compiler::CheckNothingOpen(module(), trip_counts));
  is_closed = true;
  return absl::OkStatus();
}

// Fills in what is known of the program beside its streams.
void Compilation::FillInfo(isa::ProgramInfo& info) {
  const buffers::MemoryPlan& plan = memory();
  info.module_name = result.workload.name().empty() ? module().name() : result.workload.name();
  info.partitions = result.workload.num_partitions();
  info.device_order = placement.rule;
  for (const configs::Memory& of : configs::kMemories) {
    if (!of.planned) continue;
    info.peak.In(of.space) = plan.PeakOf(of.number);
    info.usable.In(of.space) = target.Usable(of.number);
  }
  info.hbm_fragmentation = plan.fragmentation;
  if (plan.peak_at != nullptr) info.peak_at = plan.peak_at->name();
}

// Returns all records in the order in which reports have them; `lowered` are those of the lowering.
std::vector<Record> Compilation::RecordsInOrder(const std::vector<Record>& lowered,
                                                const std::vector<std::string>& algorithms) {
  std::vector<Record> all = trip_counts.assumptions();
  const auto say = [&](const Reason& reason, const std::string& sentence) {
    Records(&all).Add(reason, "", {{"sentence", sentence}});
  };
  for (const std::string& s : result.workload.assumptions()) say(reasons::kExporterAssumed, s);
  Append(lowered, all);
  Append(kernels::CostAssumptions(module()), all);
  Append(kernels::FreeHostCallbacks(module()), all);
  Append(result.records, all);
  for (const std::string& s : algorithms) say(reasons::kAlgorithmAssumed, s);
  Append(trip_counts.Unused(), all);
  return all;
}

// Lowers for a machine on which `decisions` hold; `assumed` gets what they take for granted.
absl::StatusOr<isa::PodProgram> Compilation::Lowered(const configs::Config& on,
                                                     cost::CollectiveDecisions& decisions,
                                                     std::vector<std::string>& assumed) {
  lowering::CollectiveLibrary collectives(decisions);
  const auto trips = [this](const Instruction& loop) { return trip_counts(loop); };
  ASSIGN_OR_RETURN(isa::PodProgram program,
                   lowering::Lower({&module(), &memory(), &costs.kernels(), &collectives, trips},
                                   target::Target(on)));
  FillInfo(program.info);
  assumed = collectives.Assumptions();
  return program;
}

CompileStage::CompileStage(std::unique_ptr<Compilation> compilation)
    : compilation_(std::move(compilation)) {}
CompileStage::CompileStage(CompileStage&&) noexcept = default;
CompileStage& CompileStage::operator=(CompileStage&&) noexcept = default;
CompileStage::~CompileStage() = default;
PartitionedProgram::PartitionedProgram(std::unique_ptr<Compilation> compilation)
    : CompileStage(std::move(compilation)) {}
SimplifiedProgram::SimplifiedProgram(std::unique_ptr<Compilation> compilation)
    : CompileStage(std::move(compilation)) {}
KernelProgram::KernelProgram(std::unique_ptr<Compilation> compilation)
    : CompileStage(std::move(compilation)) {}
ScheduledProgram::ScheduledProgram(std::unique_ptr<Compilation> compilation)
    : CompileStage(std::move(compilation)) {}
const CompileResult& CompileStage::result() const { return compilation_->result; }
CompileResult CompileStage::Take() && { return std::move(compilation_->result); }

hlo::ImportedWorkload WithoutModule(const hlo::ImportedWorkload& imported) {
  hlo::ImportedWorkload copy;
  copy.workload = imported.workload;
  copy.container = imported.container;
  copy.num_partitions = imported.num_partitions;
  copy.partitioned = imported.partitioned;
  copy.compiled = imported.compiled;
  copy.compiled_for_other = imported.compiled_for_other;
  return copy;
}

NormalisedProgram CopyOf(const NormalisedProgram& program) {
  NormalisedProgram copy{WithoutModule(program.imported), std::nullopt, program.came_scheduled};
  if (program.normalised) copy.normalised = sharding::CopyOf(*program.normalised);
  if (program.imported.module != nullptr) copy.imported.module = program.imported.module->Clone();
  return copy;
}

int64_t PartitionsOf(const hlo::ImportedWorkload& imported) {
  const int64_t stated = imported.workload.num_partitions();
  return stated > 0 ? stated : imported.num_partitions;
}

absl::StatusOr<std::string> NamesText(const hlo::ImportedWorkload& imported) {
  RETURN_IF_ERROR(CheckTarget(imported));
  if (imported.partitioned) {
    return UserError("the module is partitioned already: values have no names in it (--remat)");
  }
  ASSIGN_OR_RETURN(const std::vector<remat::NameUse> names, remat::NamesOf(*imported.module));
  return remat::ToString(names);
}

absl::StatusOr<std::string> DecisionsText(const NormalisedProgram& program) {
  if (!program.normalised) {
    return UserError("the module is partitioned already: it has no shardings to show");
  }
  ASSIGN_OR_RETURN(const sharding::Decisions decisions,
                   sharding::FindDecisions(*program.normalised));
  return sharding::ToString(decisions);
}

absl::StatusOr<NormalisedProgram> Normalise(hlo::ImportedWorkload imported,
                                            const std::vector<remat::StatedPolicy>& remat) {
  RETURN_IF_ERROR(CheckTarget(imported));
  ASSIGN_OR_RETURN(const std::vector<kernels::NamedCost> exported,
                   ExportedCosts(imported.workload));
  kernels::SetCustomCosts(*imported.module, exported);
  NormalisedProgram program;
  program.came_scheduled = !imported.module->entry()->schedule().empty();
  if (imported.partitioned) {
    if (!remat.empty()) {
      return UserError("the module is partitioned already: values have no names in it (--remat)");
    }
  } else {
    RETURN_IF_ERROR(remat::StatePolicies(remat, *imported.module));
    ASSIGN_OR_RETURN(program.normalised,
                     sharding::Normalise(std::move(imported.module), PartitionsOf(imported)));
  }
  program.imported = std::move(imported);
  return program;
}

absl::StatusOr<sharding::ShardedModule> State(NormalisedProgram program,
                                              const CompileOptions& options, bool reasons) {
  if (!program.normalised) {
    return UserError("the module is partitioned already: it has no shardings to show");
  }
  sharding::PropagationOptions propagation;
  propagation.mesh = options.mesh;
  propagation.arguments = options.arguments;
  propagation.constraints = options.constraints;
  propagation.donated = options.donated;
  propagation.kept = options.kept;
  propagation.reasons = reasons;
  return sharding::ShardModule(*std::move(program.normalised), propagation);
}

absl::StatusOr<PartitionedProgram> Session::Partition(NormalisedProgram program,
                                                      const CompileOptions& options,
                                                      const configs::Config& slice, bool reasons) {
  hlo::ImportedWorkload& imported = program.imported;
  CompileResult result;
  result.by_tpu_compiler = imported.compiled;
  ASSIGN_OR_RETURN(passes::Pipeline pipeline, PipelineOf(options, imported.compiled));
  const int64_t said = PartitionsOf(imported);
  // Before anything is made for each of them.
  RETURN_IF_ERROR(CheckPartitions(
      options.mesh.empty() ? said : sharding::Mesh{options.mesh, {}}.size(), slice));
  result.workload = std::move(imported.workload);
  result.workload.set_num_partitions(said);
  // Partitioned, instructions may have other names than the exporter saw.
  TripCounts trip_counts(result.workload, options.trip_counts);
  const bool came_scheduled = program.came_scheduled;
  if (imported.partitioned) {
    RETURN_IF_ERROR(CheckNothingStated(options));
    RETURN_IF_ERROR(TakePartitioned(imported, result));
  } else {
    // Where partitions were for another mesh.
    if (!options.mesh.empty()) result.workload.clear_coordinates();
    ASSIGN_OR_RETURN(const sharding::ShardedModule sharded,
                     State(std::move(program), options, reasons));
    RETURN_IF_ERROR(MakePartitioned(sharded, slice, result));
  }
  if (came_scheduled && !result.by_tpu_compiler && passes::HasPlaces(*result.module)) {
    const passes::Pass* const assigns = passes::FindPass("memory-space-assignment");
    std::erase_if(pipeline, [&](const passes::PipelineStep& step) { return step.pass == assigns; });
    Records(&result.records).Add(reasons::kPlacesKept, result.module->name());
  }
  RETURN_IF_ERROR(hlo::VerifyChanges(*result.module));
  ASSIGN_OR_RETURN(DevicePlacement placement,
                   PlacePartitions(result.workload, result.mesh, result.workload.num_partitions(),
                                   slice, options.device_order));
  auto compilation = std::make_unique<Compilation>(
      options, std::move(pipeline), std::move(trip_counts), std::move(result), std::move(placement),
      caches_.Of(slice, options.algorithms));
  compilation->came_scheduled = came_scheduled;
  return PartitionedProgram(std::move(compilation));
}

absl::StatusOr<SimplifiedProgram> PartitionedProgram::Simplify() && {
  Compilation& c = *compilation_;
  RETURN_IF_ERROR(c.Run(passes::Phase::kAnnotate));
  RETURN_IF_ERROR(c.Run(passes::Phase::kRead));
  passes::Pipeline steps = passes::StepsOf(c.pipeline, passes::Phase::kOptimize);
  steps.resize(passes::StepsBeforeKernels(steps));
  RETURN_IF_ERROR(c.Run(steps));
  return SimplifiedProgram(std::move(compilation_));
}

cost::ChipCostModel& SimplifiedProgram::costs() const { return compilation_->costs; }

absl::StatusOr<KernelProgram> SimplifiedProgram::BuildKernels() && {
  Compilation& c = *compilation_;
  passes::Pipeline steps = passes::StepsOf(c.pipeline, passes::Phase::kOptimize);
  const auto before = static_cast<ptrdiff_t>(passes::StepsBeforeKernels(steps));
  steps.erase(steps.begin(), steps.begin() + before);
  RETURN_IF_ERROR(c.Run(steps));
  if (c.came_scheduled && module().entry()->schedule().empty()) {
    Records(&c.result.records).Add(reasons::kOrderDropped, module().name());
  }
  return KernelProgram(std::move(compilation_));
}

cost::ChipCostModel& KernelProgram::costs() const { return compilation_->costs; }

absl::Status KernelProgram::CheckNothingOpen() const { return compilation_->CheckNothingOpen(); }

absl::StatusOr<ScheduledProgram> KernelProgram::Schedule() && {
  RETURN_IF_ERROR(CheckNothingOpen());
  RETURN_IF_ERROR(compilation_->Run(passes::Phase::kSchedule));
  return ScheduledProgram(std::move(compilation_));
}

const buffers::MemoryPlan& ScheduledProgram::memory() const { return compilation_->memory(); }

absl::Status ScheduledProgram::CheckFits() const {
  return buffers::CheckFits(module(), memory(), compilation_->target);
}

absl::StatusOr<isa::PodProgram> ScheduledProgram::LowerFor(const configs::Config& machine) const {
  RETURN_IF_ERROR(CheckFits());
  cost::CollectiveDecisions decisions(machine, result().device_of_partition,
                                      compilation_->options.algorithms);
  std::vector<std::string> assumed;
  return compilation_->Lowered(machine, decisions, assumed);
}

absl::StatusOr<CompileResult> ScheduledProgram::Lower(const configs::Config* machine) && {
  RETURN_IF_ERROR(CheckFits());
  Compilation& c = *compilation_;
  std::vector<std::string> assumed;
  if (machine != nullptr) {
    cost::CollectiveDecisions decisions(*machine, c.result.device_of_partition,
                                        c.options.algorithms);
    ASSIGN_OR_RETURN(c.result.program, c.Lowered(*machine, decisions, assumed));
  } else {
    ASSIGN_OR_RETURN(c.result.program,
                     c.Lowered(c.target.config(), c.costs.collectives(), assumed));
  }
  c.result.kernel_searches = c.costs.kernels().searches();
  isa::ProgramInfo& info = c.result.program.info;
  info.records = c.RecordsInOrder(info.records, assumed);
  info.reshard_sites = c.result.reshard_sites;
  if (c.options.op_places) c.result.op_places = lowering::PlacesOfOperations(module());
  return std::move(*this).Take();
}

absl::StatusOr<CompileResult> ScheduledProgram::MakeExecutable() && {
  compiler::MakeExecutable(compilation_->module());
  RETURN_IF_ERROR(hlo::VerifyChanges(compilation_->module()));
  return std::move(*this).Take();
}

absl::StatusOr<CompileResult> Finish(PartitionedProgram partitioned, Stage last,
                                     const configs::Config* machine) {
  if (last == Stage::kPartitioned) return std::move(partitioned).Take();
  ASSIGN_OR_RETURN(SimplifiedProgram simplified, std::move(partitioned).Simplify());
  ASSIGN_OR_RETURN(KernelProgram kernels, std::move(simplified).BuildKernels());
  if (last == Stage::kOptimized) return std::move(kernels).Take();
  ASSIGN_OR_RETURN(ScheduledProgram scheduled, std::move(kernels).Schedule());
  if (last == Stage::kSchedule) return std::move(scheduled).Take();
  if (last == Stage::kExecutable) return std::move(scheduled).MakeExecutable();
  return std::move(scheduled).Lower(machine);
}

absl::StatusOr<CompileResult> Compile(hlo::ImportedWorkload imported, const configs::Config& config,
                                      const CompileOptions& options, Stage last,
                                      const configs::Config* machine) {
  Session session;
  ASSIGN_OR_RETURN(NormalisedProgram program, Normalise(std::move(imported), options.remat));
  ASSIGN_OR_RETURN(PartitionedProgram partitioned,
                   session.Partition(std::move(program), options, config));
  return Finish(std::move(partitioned), last, machine);
}

}  // namespace tpusim::compiler
