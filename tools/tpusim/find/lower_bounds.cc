#include "tools/tpusim/find/lower_bounds.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/compiler/session.h"
#include "workloads/search/compiled_bound.h"
#include "workloads/search/program.h"
#include "workloads/search/whole_reads.h"

namespace tpusim::tools {
namespace {

// Fills in what the simplified module of one device tells, on the machine that runs it.
absl::Status FillBounds(const hlo::Module& module, const hlo::ImportedWorkload& imported,
                        const target::Target& machine, cost::ChipCostModel& costs,
                        LowerBounds& bounds) {
  ASSIGN_OR_RETURN(bounds.schedule, search::SimplifiedBound(module, machine, costs));
  const std::vector<bool> whole = search::WholeReads(
      module, [&](const hlo::Instruction& loop) { return costs.TripsOf(loop); });
  Bytes read(0);
  for (size_t n = 0; n < whole.size(); ++n) {
    if (search::StartsOnHost(imported, n)) continue;
    const Bytes bytes = module.entry()->parameters()[n]->shape().ByteSize();
    bounds.arguments += bytes;
    if (whole[n]) read += bytes;
  }
  const double seconds =
      static_cast<double>(read.value()) / machine.chip().hbm.bytes_per_second.value();
  bounds.reads = Picoseconds(static_cast<int64_t>(std::floor(seconds * 1e12)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LowerBounds> LowerBoundsOf(const std::string& workload, const std::string& config,
                                          const ProgramFlags& flags) {
  if (!flags.passes.empty()) {
    return UserError("--emit bounds: the bounds are of the default passes: leave --passes out");
  }
  ASSIGN_OR_RETURN(const Source source, SourceOf(workload));
  ASSIGN_OR_RETURN(const hlo::ImportedWorkload imported, source.import());
  const compiler::CompileOptions options = CompileOptionsOf(flags);
  compiler::Session session;
  LowerBounds bounds;
  const auto simplify = [&](compiler::PartitionedProgram partitioned,
                            const Machine& on) -> absl::StatusOr<compiler::CompileResult> {
    compiler::SliceCache& machine = session.caches().Of(on.config, options.algorithms);
    bounds.chips = on.config.topology.chips();
    bounds.usable = machine.target().Usable(hlo::kHbmSpace);
    ASSIGN_OR_RETURN(auto simplified, std::move(partitioned).Simplify());
    cost::ChipCostModel& costs = simplified.costs();
    cost::ChipCostModel on_machine(
        machine.target(),
        machine.Costs(costs.collectives().device_of_partition(), options.algorithms),
        [&costs](const hlo::Instruction& loop) { return costs.TripsOf(loop); });
    RETURN_IF_ERROR(
        FillBounds(simplified.module(), imported, machine.target(), on_machine, bounds));
    return std::move(simplified).Take();
  };
  RETURN_IF_ERROR(Prepare(source, config, flags, options, session, simplify).status());
  return bounds;
}

std::string ToJsonText(const LowerBounds& bounds) {
  const auto nanoseconds = [](Picoseconds time) { return static_cast<double>(time.value()) / 1e3; };
  return nlohmann::ordered_json{{"schedule_ns", nanoseconds(bounds.schedule)},
                                {"reads_ns", nanoseconds(bounds.reads)},
                                {"argument_bytes", bounds.arguments.value()},
                                {"usable_hbm_bytes", bounds.usable.value()},
                                {"chips", bounds.chips}}
             .dump() +
         "\n";
}

}  // namespace tpusim::tools
