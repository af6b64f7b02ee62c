// Simulates collectives alone on a slice: JSON lines in, JSON lines out.
//
//   tpusim_collective_rows [--jobs N] < rows.jsonl
//   tpusim_collective_rows --choices < validation/collectives/choices.jsonl
//
// A row has `config` (a slice), `kind`, `bytes` (V: the whole array of the group,
// per device; of an all-to-all and of a permute, by which every member sends to the next of its
// group, what each device sends) and optionally `axes` (of the
// slice, such as "xy", "c" for the devices of a chip; default all) and `algorithm`
// ("compiler"). The groups are all that lie alike along these axes. What comes back
// has besides: `name`, `expected_ns`, `bound_ns`, `simulated_ns`, `events`,
// `assumptions`, or `error`; `efficiency` is what links reach of their nominal rate
// where all axes close, 0 where some do not.
//
// With --choices nothing is simulated: rows are collectives as in validation/collectives (chip,
// slice, axes, op, operand_bytes), and what comes back has besides, as `chosen`, what the rows of
// configs/compilers say that the TPU compiler prints, in the same fields.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "configs/chip_file.h"
#include "configs/config.h"
#include "configs/status_macros.h"
#include "sim/simulate.h"
#include "tools/tpusim/find/pool.h"
#include "workloads/collectives/box.h"
#include "workloads/collectives/collective.h"
#include "workloads/collectives/compiler_choice.h"

namespace tpusim {
namespace {

using Json = nlohmann::ordered_json;
using collectives::CollectiveKind;
using collectives::CollectiveRequest;

absl::StatusOr<CollectiveKind> KindOf(const std::string& name) {
  const std::optional<CollectiveKind> kind = collectives::KindOf(name);
  if (!kind) return UserError(fmt::format("no collective \"{}\"", name));
  return *kind;
}

absl::StatusOr<Json> Run(Json row) {
  ASSIGN_OR_RETURN(const configs::Config config,
                   configs::LoadConfig(row.at("config").get<std::string>(), {}));
  CollectiveRequest request;
  ASSIGN_OR_RETURN(request.kind, KindOf(row.at("kind").get<std::string>()));
  std::vector<int> axes;
  for (const char axis : row.value("axes", std::string("xyzc"))) {
    axes.push_back(axis == 'c' ? collectives::kCoreAxis : axis - 'x');
  }
  request.groups = collectives::GroupsAlong(config.topology, axes);
  const auto n = static_cast<int64_t>(request.groups[0].size());
  const auto bytes = row.at("bytes").get<int64_t>();
  request.operand_bytes =
      Bytes(request.kind == CollectiveKind::kAllGather ? CeilDiv(bytes, n) : bytes);
  for (const std::vector<int64_t>& group : request.groups) {
    if (request.kind != CollectiveKind::kPermute) break;
    for (size_t i = 0; i < group.size(); ++i) {
      request.pairs.push_back({group[i], group[(i + 1) % group.size()]});
    }
  }
  ASSIGN_OR_RETURN(const collectives::AlgorithmOverride algorithm_override,
                   collectives::ParseAlgorithmOverride(
                       row.value("algorithm", std::string(collectives::kCompilersAlgorithm))));
  ASSIGN_OR_RETURN(const auto decision,
                   collectives::DecideCollective(config, request, {algorithm_override}));

  isa::PodProgram program;
  const collectives::LoweredCollective lowered =
      collectives::LowerCollective(config, request, *decision, program);
  collectives::RunAlone(lowered, program);
  ASSIGN_OR_RETURN(const sim::Timeline timeline, sim::Simulate(config, program, {}));

  double efficiency = config.chip.ici.wrapped_efficiency;
  for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
    if (config.topology.shape()[axis] > 1 && !config.topology.wraps(axis) &&
        !config.topology.IsTwisted(axis)) {
      efficiency = 0;
    }
  }
  row["group"] = n;
  row["name"] = lowered.info.algorithm;
  row["expected_ns"] = ToNanoseconds(lowered.info.expected);
  row["bound_ns"] = ToNanoseconds(lowered.info.bound);
  row["simulated_ns"] = ToNanoseconds(timeline.step_time);
  row["efficiency"] = efficiency;
  row["events"] = timeline.events;
  row["assumptions"] = collectives::AssumptionsOf(*decision);
  return row;
}

// The operations of jax.lax, and HLO's own names.
absl::StatusOr<CollectiveKind> KindOfOperation(const std::string& op) {
  if (op == "psum") return CollectiveKind::kAllReduce;
  if (op.starts_with("psum_scatter")) return CollectiveKind::kReduceScatter;
  if (op.starts_with("all_gather")) return CollectiveKind::kAllGather;
  if (op == "all_to_all") return CollectiveKind::kAllToAll;
  if (op == "ppermute") return CollectiveKind::kPermute;
  return KindOf(op);
}

absl::StatusOr<Json> Choose(Json row) {
  const auto op = row.at("op").get<std::string>();
  ASSIGN_OR_RETURN(const CollectiveKind kind, KindOfOperation(op));
  ASSIGN_OR_RETURN(const configs::ChipFile file,
                   configs::LoadChip(row.at("chip").get<std::string>(), ""));
  auto slice = row.at("slice").get<std::vector<int64_t>>();
  slice.resize(configs::kMaxAxes, 1);
  collectives::CompilerQuery query = collectives::QueryAlong(
      file.chip, {slice[0], slice[1], slice[2]}, row.at("axes").get<std::string>(), kind,
      Bytes(row.at("operand_bytes").get<int64_t>()));
  query.minor = op.ends_with("_minor");
  // Where nothing is said the last dimension has 1024 elements of 2 bytes.
  if (query.minor) query.part_row = Bytes(row.value("row_bytes", 2048) / query.members);
  const collectives::CompilerChoice choice = collectives::ChoiceOfCompiler(query);
  std::string done_as(collectives::KindName(choice.kind));
  if (choice.asynchronous) done_as += "-start";
  Json& chosen = row["chosen"];
  chosen["done_as"] = choice.offloaded ? "custom-call" : done_as;
  if (!choice.emitter.empty()) chosen["emitter"] = choice.emitter;
  if (!choice.strategy.empty()) {
    chosen["strategy"] = choice.strategy;
    chosen["colors"] = choice.colors;
    chosen["phases"] = choice.phases;
  }
  chosen["rows"] = choice.rows;
  return row;
}

int Main(int argc, char** argv) {
  CLI::App app("Simulates collectives alone on a slice");
  int jobs = tools::Processors();
  bool choices = false;
  app.add_option("--jobs", jobs, "Simulations at a time");
  app.add_flag("--choices", choices, "What the TPU compiler would choose, instead");
  CLI11_PARSE(app, argc, argv);
  std::vector<Json> rows;
  for (std::string line; std::getline(std::cin, line);) rows.push_back(Json::parse(line));
  for (Json& row : rows) {
    if (!choices) break;
    const absl::StatusOr<Json> chosen = Choose(row);
    if (!chosen.ok()) row["error"] = Message(chosen.status());
    fmt::print("{}\n", chosen.ok() ? chosen->dump() : row.dump());
  }
  if (choices) return 0;
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
