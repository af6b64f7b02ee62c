#include "workloads/compile.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/hlo/cost.h"
#include "workloads/hlo/opcode.h"
#include "workloads/lowering/lower.h"
#include "workloads/passes/async_collectives.h"
#include "workloads/passes/control.h"
#include "workloads/passes/copies.h"
#include "workloads/passes/fuse.h"
#include "workloads/passes/layout.h"
#include "workloads/passes/memory.h"
#include "workloads/passes/placement.h"
#include "workloads/passes/schedule.h"
#include "workloads/passes/simplify.h"
#include "workloads/passes/sink_initializers.h"
#include "workloads/passes/target.h"
#include "workloads/sharding/propagate.h"
#include "workloads/spmd/partition.h"

namespace tpusim::workloads {
namespace {

using hlo::Instruction;

struct Pass {
  const char* name;
  absl::Status (*run)(hlo::Module&, const passes::Target&);
};

// In the order in which they run; the schedule follows.
constexpr Pass kPipeline[] = {
    {"simplify", passes::Simplify},
    {"layout", passes::AssignLayouts},
    {"sink-initializers", passes::SinkInitializers},
    {"fuse", passes::Fuse},
    {"copies", passes::InsertCopies},
    {"async-collectives", passes::MakeCollectivesAsync},
};
constexpr const char* kSchedulePass = "schedule";

// Where the partitions run.
struct Placement {
  std::vector<int64_t> device_of_partition;
  std::string rule;
};

absl::StatusOr<Placement> ExplicitOrder(const std::string& text, int64_t partitions,
                                        const configs::Config& config) {
  Placement placement;
  std::set<int64_t> seen;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, comma - at);
    const bool digits =
        !item.empty() && item.size() < 10 &&
        std::all_of(item.begin(), item.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    const int64_t id = digits ? std::stoll(item) : -1;
    if (id < 0 || id >= config.devices() || !seen.insert(id).second) {
      return UserError(fmt::format(
          "--device-order: '{}' is not a device of {} that is still free (0 to {}); give 'ids' or "
          "one device per partition, separated by commas",
          item, config.name, config.devices() - 1));
    }
    placement.device_of_partition.push_back(id);
    at = comma + 1;
  }
  if (static_cast<int64_t>(placement.device_of_partition.size()) != partitions) {
    return UserError(
        fmt::format("--device-order lists {} devices, but the program has {} partitions",
                    placement.device_of_partition.size(), partitions));
  }
  placement.rule = "as listed by --device-order";
  return placement;
}

absl::StatusOr<Placement> PlaceByCoordinates(const tpusim::Workload& workload, int64_t partitions,
                                             const configs::Config& config) {
  Placement placement;
  placement.rule = "coordinates from the exporter";
  if (workload.coordinates_size() != partitions) {
    return UserError(fmt::format("the workload has coordinates for {} devices and {} partitions",
                                 workload.coordinates_size(), partitions));
  }
  const auto& shape = config.topology.shape();
  std::set<int64_t> seen;
  for (const auto& c : workload.coordinates()) {
    const configs::Coordinates at{{c.x(), c.y(), c.z()}};
    for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
      if (at.at[axis] < 0 || at.at[axis] >= shape[axis]) {
        return UserError(fmt::format("the workload places a partition at ({},{},{}), outside of {}",
                                     c.x(), c.y(), c.z(), config.name));
      }
    }
    const int64_t device =
        config.topology.ChipAt(at) * config.topology.devices_per_chip() + c.core_on_chip();
    if (device < 0 || device >= config.devices() || !seen.insert(device).second) {
      return UserError(
          fmt::format("the workload places two partitions at ({},{},{})", c.x(), c.y(), c.z()));
    }
    placement.device_of_partition.push_back(device);
  }
  return placement;
}

absl::StatusOr<Placement> Place(const tpusim::Workload& workload, const sharding::Mesh& mesh,
                                int64_t partitions, const configs::Config& config,
                                const std::string& option) {
  if (partitions > config.devices()) {
    return UserError(fmt::format(
        "the program has {} partitions, but {} has only {} devices; choose a larger slice with "
        "--config or export for a smaller mesh",
        partitions, config.name, config.devices()));
  }
  if (option == "ids") {
    Placement placement;
    for (int64_t p = 0; p < partitions; ++p) placement.device_of_partition.push_back(p);
    placement.rule = "partition i on device i (--device-order=ids)";
    return placement;
  }
  if (!option.empty()) return ExplicitOrder(option, partitions, config);
  if (workload.coordinates_size() > 0) return PlaceByCoordinates(workload, partitions, config);
  std::vector<int64_t> shape;
  for (const sharding::MeshAxis& axis : mesh.axes) shape.push_back(axis.size);
  if (mesh.size() != partitions || shape.empty()) shape = {partitions};
  Placement placement;
  ASSIGN_OR_RETURN(placement.device_of_partition,
                   configs::DeviceOrder(config, shape, &placement.rule));
  return placement;
}

// Trip counts: what the user states wins, then what the loop itself says.
class TripCounts {
 public:
  TripCounts(const tpusim::Workload& workload, const CompileOptions& options)
      : stated_(options.trip_counts) {
    for (const auto& t : workload.trip_counts()) stated_.emplace_back(t.loop(), t.count());
  }

  absl::StatusOr<int64_t> operator()(const Instruction& loop) {
    const auto known = known_.find(loop.name());
    if (known != known_.end()) return known->second;
    for (const auto& [pattern, count] : stated_) {
      if (fnmatch(pattern.c_str(), loop.name().c_str(), 0) == 0) {
        assumptions_.push_back(fmt::format("{} runs {} times, as stated", loop.Describe(), count));
        return known_[loop.name()] = count;
      }
    }
    if (const auto derived = hlo::TripCount(loop)) return known_[loop.name()] = *derived;
    return UserError(
        fmt::format("the trip count of {} depends on data; state it with --trip-count {}=N",
                    loop.Describe(), loop.name()));
  }

  const std::vector<std::string>& assumptions() const { return assumptions_; }

  // Statements that no loop was asked about.
  std::vector<std::string> Unused() const {
    std::vector<std::string> warnings;
    for (const auto& [pattern, count] : stated_) {
      const bool used = std::any_of(known_.begin(), known_.end(), [&](const auto& loop) {
        return fnmatch(pattern.c_str(), loop.first.c_str(), 0) == 0;
      });
      if (used) continue;
      std::vector<std::string> loops;
      for (const auto& [name, trips] : known_) loops.push_back(name);
      warnings.push_back(
          fmt::format("trip count {}={} has no effect: {}", pattern, count,
                      loops.empty() ? "the program has no loop"
                                    : fmt::format("its loops are {}", fmt::join(loops, ", "))));
    }
    return warnings;
  }

 private:
  std::vector<std::pair<std::string, int64_t>> stated_;
  std::map<std::string, int64_t> known_;
  std::vector<std::string> assumptions_;
};

// The user's word first, then the exporter's.
std::vector<lowering::StatedCost> CustomCosts(const tpusim::Workload& workload,
                                              const CompileOptions& options) {
  std::vector<lowering::StatedCost> costs = options.kernel_costs;
  for (const tpusim::KernelCost& kernel : workload.kernels()) {
    costs.push_back({kernel.name(),
                     {Flops(kernel.flops()), Flops(kernel.transcendentals()),
                      Bytes(kernel.bytes_accessed())}});
  }
  return costs;
}

}  // namespace

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : kPipeline) names.emplace_back(pass.name);
  names.emplace_back(kSchedulePass);
  return names;
}

absl::StatusOr<CompileResult> Compile(hlo::ImportedWorkload imported, const configs::Config& config,
                                      const CompileOptions& options) {
  const std::vector<std::string> names = PassNames();
  for (const std::string& name : options.dump_after) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return UserError(fmt::format("--dump-after: there is no pass '{}'; the passes are {}", name,
                                   fmt::join(names, ", ")));
    }
  }
  const auto wants_dump = [&](const std::string& name) {
    return std::find(options.dump_after.begin(), options.dump_after.end(), name) !=
           options.dump_after.end();
  };

  CompileResult result;
  const tpusim::Workload& workload = imported.workload;
  const int64_t stated =
      workload.num_partitions() > 0 ? workload.num_partitions() : imported.num_partitions;
  ASSIGN_OR_RETURN(const sharding::ShardedModule sharded,
                   sharding::ShardModule(*imported.module, stated));
  if (options.until == Stage::kSharded) {
    result.sharded_text = sharding::ToString(sharded);
    return result;
  }

  ASSIGN_OR_RETURN(spmd::PartitionResult partitioned, spmd::Partition(sharded));
  RETURN_IF_ERROR(hlo::Verify(*partitioned.module));
  result.warnings = partitioned.warnings;
  if (options.until == Stage::kPartitioned) {
    result.partitioned = std::move(partitioned.module);
    return result;
  }

  const passes::Target target(config);
  result.optimized = std::move(partitioned.module);
  hlo::Module& module = *result.optimized;
  RETURN_IF_ERROR(passes::AssignMemorySpaces(
      module, {workload.argument_memory_kinds().begin(), workload.argument_memory_kinds().end()}));
  lowering::StateCustomCosts(module, CustomCosts(workload, options));
  for (const Pass& pass : kPipeline) {
    RETURN_IF_ERROR(pass.run(module, target));
    if (wants_dump(pass.name)) result.dumps.emplace_back(pass.name, hlo::ToString(module));
  }
  if (options.until == Stage::kOptimized) return result;

  ASSIGN_OR_RETURN(const Placement placement, Place(workload, sharded.mesh, sharded.num_partitions,
                                                    config, options.device_order));
  TripCounts trip_counts(workload, options);
  const auto trips = [&trip_counts](const Instruction& loop) { return trip_counts(loop); };
  RETURN_IF_ERROR(passes::Schedule(
      module, target, lowering::MakeEstimator(target, placement.device_of_partition, trips)));
  if (wants_dump(kSchedulePass)) result.dumps.emplace_back(kSchedulePass, hlo::ToString(module));
  if (options.until == Stage::kSchedule) return result;

  ASSIGN_OR_RETURN(const passes::MemoryPlan memory, passes::PlanMemory(module, target));
  ASSIGN_OR_RETURN(
      result.program,
      lowering::Lower({&module, &memory, placement.device_of_partition, trips, options.branches},
                      target));
  isa::ProgramInfo& info = result.program.info;
  info.module_name = workload.name().empty() ? module.name() : workload.name();
  info.partitions = sharded.num_partitions;
  info.device_order = placement.rule;
  info.peak_hbm = memory.peak;
  info.usable_hbm = target.UsableHbm();
  for (size_t n = 0; n < memory.live_at_peak.size() && n < 10; ++n) {
    info.largest_live.push_back(info.buffers[memory.live_at_peak[n]]);
  }
  const std::vector<std::string> trips_assumed = trip_counts.assumptions();
  info.assumptions.insert(info.assumptions.begin(), trips_assumed.begin(), trips_assumed.end());
  for (std::string& warning : trip_counts.Unused()) result.warnings.push_back(std::move(warning));
  info.warnings = result.warnings;
  return result;
}

}  // namespace tpusim::workloads
