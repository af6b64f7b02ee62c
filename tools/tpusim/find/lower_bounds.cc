#include "tools/tpusim/find/lower_bounds.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/compiler/session.h"
#include "workloads/search/compiled_bound.h"
#include "workloads/search/whole_reads.h"

namespace tpusim::tools {
namespace {

// Fills in what the simplified program of one device tells, on the machine that runs it.
absl::Status FillBounds(const compiler::SimplifiedProgram& program, const target::Target& machine,
                        cost::ChipCostModel& costs, LowerBounds& bounds) {
  const hlo::Module& module = program.module();
  const tpusim::Workload& workload = program.result().workload;
  ASSIGN_OR_RETURN(bounds.schedule, search::SimplifiedBound(module, machine, costs));
  const std::vector<Bytes> read = search::BytesRead(
      module, workload, [&](const hlo::Instruction& loop) { return costs.TripsOf(loop); });
  const double seconds =
      static_cast<double>(std::accumulate(read.begin(), read.end(), Bytes(0)).value()) /
      machine.chip().hbm.bytes_per_second.value();
  bounds.reads = Picoseconds(static_cast<int64_t>(std::floor(seconds * 1e12)));
  for (size_t n = 0; n < read.size(); ++n) {
    if (search::StartsOnHost(workload, n)) continue;
    bounds.arguments += module.entry()->parameters()[n]->shape().ByteSize();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LowerBounds> LowerBoundsOf(const std::string& workload, const std::string& config,
                                          const ProgramFlags& flags) {
  if (!flags.passes.empty()) {
    return UserError("--emit bounds: the bounds are of the default passes: leave --passes out");
  }
  ASSIGN_OR_RETURN(const Source source, SourceOf(workload));
  const compiler::CompileOptions options = CompileOptionsOf(flags);
  compiler::Session session;
  LowerBounds bounds;
  const auto simplify = [&](compiler::PartitionedProgram partitioned,
                            const Machine& on) -> absl::StatusOr<compiler::CompileResult> {
    compiler::SliceCache& machine = session.caches().Of(on.config, options.algorithms);
    bounds.chips = on.config.topology.chips();
    bounds.usable = machine.target().Usable(hlo::kHbmSpace);
    ASSIGN_OR_RETURN(auto simplified, std::move(partitioned).Simplify());
    cost::ChipCostModel costs = machine.CostsLike(simplified.costs(), options.algorithms);
    RETURN_IF_ERROR(FillBounds(simplified, machine.target(), costs, bounds));
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
