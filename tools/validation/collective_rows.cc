// Simulates collectives alone on a slice: JSON lines in, JSON lines out.
//
//   tpusim_collective_rows [--jobs N] < rows.jsonl
//
// A row has `config` (a slice), `kind`, `bytes` (V: the whole array of the group,
// per device; of an all-to-all what each device sends) and optionally `axes` (of the
// slice, such as "xy", "c" for the devices of a chip; default all) and `algorithm`
// ("compiler"). The groups are all that lie alike along these axes. What comes back
// has besides: `name`, `expected_ns`, `bound_ns`, `simulated_ns`, `events`,
// `assumptions`, or `error`; `efficiency` is what links reach of their nominal rate
// where all axes close, 0 where some do not.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "configs/status_macros.h"
#include "sim/simulate.h"
#include "tools/tpusim/children.h"
#include "workloads/lowering/collective.h"
#include "workloads/lowering/collectives/steps.h"

namespace tpusim {
namespace {

using Json = nlohmann::ordered_json;
using lowering::CollectiveKind;
using lowering::CollectiveRequest;

absl::StatusOr<CollectiveKind> KindOf(const std::string& name) {
  if (name == "all-reduce") return CollectiveKind::kAllReduce;
  if (name == "all-gather") return CollectiveKind::kAllGather;
  if (name == "reduce-scatter") return CollectiveKind::kReduceScatter;
  if (name == "all-to-all") return CollectiveKind::kAllToAll;
  return UserError(fmt::format("no collective \"{}\"", name));
}

std::vector<std::vector<int64_t>> GroupsOf(const configs::Topology& topology,
                                           const std::string& axes) {
  const int64_t per_chip = topology.devices_per_chip();
  std::map<lowering::Position, std::vector<int64_t>> groups;
  for (int64_t device = 0; device < topology.devices(); ++device) {
    const configs::Coordinates at = topology.At(device / per_chip);
    lowering::Position rest = {at.at[0], at.at[1], at.at[2], device % per_chip};
    for (const char axis : axes) rest[axis == 'c' ? lowering::kCoreAxis : axis - 'x'] = 0;
    groups[rest].push_back(device);
  }
  std::vector<std::vector<int64_t>> result;
  for (auto& [rest, group] : groups) result.push_back(std::move(group));
  return result;
}

absl::StatusOr<Json> Run(Json row) {
  ASSIGN_OR_RETURN(const configs::Config config,
                   configs::LoadConfig(row.at("config").get<std::string>(), {}));
  CollectiveRequest request;
  ASSIGN_OR_RETURN(request.kind, KindOf(row.at("kind").get<std::string>()));
  request.groups = GroupsOf(config.topology, row.value("axes", "xyzc"));
  const auto n = static_cast<int64_t>(request.groups[0].size());
  const auto bytes = row.at("bytes").get<int64_t>();
  request.operand_bytes =
      Bytes(request.kind == CollectiveKind::kAllGather ? CeilDiv(bytes, n) : bytes);
  ASSIGN_OR_RETURN(const lowering::AlgorithmWish wish,
                   lowering::ParseAlgorithmWish(
                       row.value("algorithm", std::string(lowering::kCompilersAlgorithm))));
  ASSIGN_OR_RETURN(const auto decision, lowering::DecideCollective(config, request, {wish}));

  isa::PodProgram program;
  const lowering::LoweredCollective lowered =
      lowering::LowerCollective(config, request, *decision, program);
  program.programs = lowered.bodies;
  program.programs.push_back(std::make_shared<const isa::Body>());  // takes no part
  for (const int32_t role : *lowered.role_of_device) {
    program.program_of_device.push_back(role >= 0 ? role
                                                  : static_cast<int32_t>(lowered.bodies.size()));
  }
  ASSIGN_OR_RETURN(const sim::Timeline timeline, sim::Simulate(config, program, {}));

  double efficiency = config.chip.ici.wrapped_efficiency;
  for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
    if (config.topology.shape()[axis] > 1 && !config.topology.wraps(axis)) efficiency = 0;
  }
  row["group"] = n;
  row["name"] = lowered.info.algorithm;
  row["expected_ns"] = ToNanoseconds(lowered.info.expected);
  row["bound_ns"] = ToNanoseconds(lowered.info.bound);
  row["simulated_ns"] = ToNanoseconds(timeline.step_time);
  row["efficiency"] = efficiency;
  row["events"] = timeline.events;
  row["assumptions"] = lowering::AssumptionsOf(*decision);
  return row;
}

int Main(int argc, char** argv) {
  CLI::App app("Simulates collectives alone on a slice");
  int jobs = tools::Processors();
  app.add_option("--jobs", jobs, "Simulations at a time");
  CLI11_PARSE(app, argc, argv);
  std::vector<Json> rows;
  for (std::string line; std::getline(std::cin, line);) rows.push_back(Json::parse(line));
  // SystemC runs one simulation per process.
  std::vector<tools::Task> tasks;
  for (const Json& row : rows) {
    tasks.push_back([row]() -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const Json result, Run(row));
      return result.dump();
    });
  }
  const auto results = tools::InChildren(tasks, jobs);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!results[i].ok()) rows[i]["error"] = Message(results[i].status());
    fmt::print("{}\n", results[i].ok() ? *results[i] : rows[i].dump());
  }
  return 0;
}

}  // namespace
}  // namespace tpusim

int main(int argc, char** argv) { return tpusim::Main(argc, argv); }
