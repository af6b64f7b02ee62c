// Reports on their way back: a function for each that report_json.cc writes with.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "configs/status_macros.h"
#include "sim/results/report.h"

namespace tpusim::results {
namespace {

using Json = nlohmann::ordered_json;

std::string TextOf(const Json& j, const char* key) { return j.at(key).get<std::string>(); }
int64_t CountOf(const Json& j, const char* key) { return j.at(key).get<int64_t>(); }
double NumberOf(const Json& j, const char* key) { return j.at(key).get<double>(); }
Bytes BytesOf(const Json& j, const char* key) { return Bytes(CountOf(j, key)); }
Flops FlopsOf(const Json& j, const char* key) { return Flops(CountOf(j, key)); }
Picoseconds TimeOf(const Json& j, const char* key) {
  return Picoseconds(static_cast<int64_t>(std::llround(NumberOf(j, key) * 1e3)));
}

template <typename T>
std::vector<T> ListOf(const Json& j, const char* key, T (*read)(const Json&)) {
  std::vector<T> items;
  for (const Json& item : j.at(key)) items.push_back(read(item));
  return items;
}

Bounds ReadBounds(const Json& j) {
  return {TimeOf(j, "compute"), TimeOf(j, "hbm"), TimeOf(j, "ici"), TimeOf(j, "host"),
          TimeOf(j, "dcn")};
}

PathTimes ReadPath(const Json& j) {
  PathTimes path{};
  for (size_t i = 0; i < path.size(); ++i) {
    path[i] = TimeOf(j, std::string(SpentKey(static_cast<events::Spent>(i))).c_str());
  }
  return path;
}

OpReport ReadOp(const Json& j) {
  OpReport op;
  op.name = TextOf(j, "name");
  op.category = TextOf(j, "category");
  op.scope = TextOf(j, "scope");
  op.count = CountOf(j, "count");
  op.total = TimeOf(j, "total_ns");
  op.flops = FlopsOf(j, "flops");
  op.hbm_bytes = BytesOf(j, "hbm_bytes");
  op.engine = TextOf(j, "engine");
  op.source = TextOf(j, "source");
  return op;
}

ErrorBar ReadErrorBar(const Json& j) {
  ErrorBar bar;
  bar.chip = TextOf(j, "chip");
  bar.kind = TextOf(j, "kind");
  bar.rows = CountOf(j, "rows");
  bar.text = TextOf(j, "text");
  if (bar.rows == 0) return bar;
  bar.mean = NumberOf(j, "mean_error");
  bar.worst = NumberOf(j, "worst_error");
  bar.worst_row = TextOf(j, "worst_row");
  return bar;
}

sim::FoldingReport ReadFolding(const Json& j) {
  sim::FoldingReport folding;
  folding.is_approximate = j.at("approximate").get<bool>();
  folding.device_classes = CountOf(j, "device_classes");
  folding.simulations = CountOf(j, "simulations");
  folding.ignored_skew = TimeOf(j, "ignored_skew_ns");
  folding.error_bound = TimeOf(j, "error_bound_ns");
  for (const Json& step : j.at("steps")) {
    folding.steps.push_back({TextOf(step, "reason"), CountOf(step, "device_classes")});
  }
  return folding;
}

ScopeReport ReadScope(const Json& j) {
  return {TextOf(j, "scope"), TimeOf(j, "total_ns"), TimeOf(j, "exposed_communication_ns"),
          FlopsOf(j, "flops")};
}

OverlapReport ReadCover(const Json& j) { return {TextOf(j, "name"), TimeOf(j, "hidden_ns"), ""}; }

OverlapReport ReadReason(const Json& j) {
  return {TextOf(j, "reason"), TimeOf(j, "exposed_ns"), TextOf(j, "text")};
}

CollectiveReport ReadCollective(const Json& j) {
  CollectiveReport c;
  c.name = TextOf(j, "name");
  c.kind = TextOf(j, "kind");
  c.bytes = BytesOf(j, "bytes");
  c.group_size = CountOf(j, "group_size");
  c.axes = TextOf(j, "axes");
  c.algorithm = TextOf(j, "algorithm");
  c.count = CountOf(j, "count");
  c.total = TimeOf(j, "total_ns");
  c.exposed = TimeOf(j, "exposed_ns");
  c.expected = TimeOf(j, "expected_ns");
  c.bound = TimeOf(j, "bound_ns");
  c.covered_by = ListOf(j, "covered_by", ReadCover);
  c.exposed_by = ListOf(j, "exposed_by", ReadReason);
  c.scope = j.value("scope", "");
  c.source = j.value("source", "");
  return c;
}

isa::ReshardSite::Constraint ReadConstraint(const Json& j) {
  return {TextOf(j, "constrain"), j.at("of_result").get<bool>()};
}

RecordReport ReadRecord(const Json& j) {
  RecordReport r{TextOf(j, "reason"),  TextOf(j, "action"), TextOf(j, "pass"),
                 TextOf(j, "subject"), TextOf(j, "text"),   {}};
  for (const auto& [name, value] : j.at("values").items()) {
    if (value.is_string()) {
      r.values.emplace_back(name, value.get<std::string>());
    } else if (value.is_number_integer()) {
      r.values.emplace_back(name, value.get<int64_t>());
    } else {
      r.values.emplace_back(name, value.get<double>());
    }
  }
  return r;
}

ReshardSiteReport ReadReshardSite(const Json& j) {
  ReshardSiteReport r;
  r.site.kind = TextOf(j, "kind");
  r.site.value = TextOf(j, "value");
  r.site.user = TextOf(j, "user");
  r.site.scope = TextOf(j, "scope");
  r.site.source = TextOf(j, "source");
  r.site.shape = TextOf(j, "shape");
  r.site.from = TextOf(j, "from");
  r.site.to = TextOf(j, "to");
  r.site.why = TextOf(j, "why");
  r.site.whole = BytesOf(j, "value_bytes");
  r.site.lost_by = BytesOf(j, "result_that_lost_it_bytes");
  r.site.bytes = BytesOf(j, "bytes");
  r.order = CountOf(j, "order");
  r.site.places = CountOf(j, "places");
  r.site.constraints = ListOf(j, "constraints", ReadConstraint);
  r.count = CountOf(j, "count");
  r.total = TimeOf(j, "total_ns");
  r.exposed = TimeOf(j, "exposed_ns");
  return r;
}

RollupRow ReadRollupRow(const Json& j, RollupBy by) {
  RollupRow row;
  row.name = TextOf(j, "name");
  row.members = CountOf(j, "members");
  row.count = CountOf(j, "count");
  row.time = TimeOf(j, "time_ns");
  row.compute = TimeOf(j, "compute_ns");
  row.exposed = TimeOf(j, "exposed_ns");
  if (by == RollupBy::kOp || by == RollupBy::kPath) {
    row.category = TextOf(j, "category");
    row.source = TextOf(j, "source");
    row.scope = j.value("scope", "");
  }
  if (by == RollupBy::kScope) row.total = TimeOf(j, "total_ns");
  if (by == RollupBy::kCollective) {
    row.in_flight = TimeOf(j, "in_flight_ns");
    row.hidden = TimeOf(j, "hidden_ns");
  }
  return row;
}

Rollups ReadRollups(const Json& j) {
  Rollups rollups;
  for (const RollupBy by : kRollups) {
    for (const Json& row : j.at(std::string(RollupName(by)))) {
      rollups.Of(by).push_back(ReadRollupRow(row, by));
    }
  }
  return rollups;
}

isa::LiveArray ReadLiveArray(const Json& j) {
  return {TextOf(j, "name"),  TextOf(j, "owner"),  TextOf(j, "scope"),          TextOf(j, "source"),
          TextOf(j, "shape"), BytesOf(j, "bytes"), BytesOf(j, "unpadded_bytes")};
}

MemoryReport ReadMemory(const Json& j) {
  MemoryReport m;
  m.time = TimeOf(j, "time_ns");
  m.operation = TextOf(j, "operation");
  m.fragmentation = BytesOf(j, "fragmentation_bytes");
  for (const Json& o : j.at("owners")) {
    m.by_owner.emplace_back(TextOf(o, "owner"), BytesOf(o, "bytes"));
  }
  m.arrays = ListOf(j, "arrays", ReadLiveArray);
  return m;
}

configs::Direction DirectionOf(const std::string& name) {
  for (int i = 0; i < configs::kDirections; ++i) {
    const auto d = static_cast<configs::Direction>(i);
    if (configs::DirectionName(d) == name) return d;
  }
  throw std::runtime_error("unknown direction '" + name + "'");
}

LinkReport ReadLink(const Json& j) {
  return {CountOf(j, "chip"), DirectionOf(TextOf(j, "direction")), BytesOf(j, "bytes"),
          NumberOf(j, "utilization")};
}

// The library reports by exceptions; they end in FromJson.
Report Read(const Json& j) {
  if (TextOf(j, "schema") != kReportSchema) {
    throw std::runtime_error(fmt::format("schema is not {}", kReportSchema));
  }
  Report r;
  r.producer = {TextOf(j, "tpusim_version"), j.at("command_line").get<std::vector<std::string>>()};
  r.error_bar = ReadErrorBar(j.at("error_bar"));
  r.workload = TextOf(j, "workload");
  r.config = TextOf(j, "config");
  r.step_time = TimeOf(j, "step_time_ns");
  r.bound = ReadBounds(j.at("bound_ns"));
  r.critical_path = ReadPath(j.at("critical_path_ns"));
  r.mfu = NumberOf(j, "mfu");
  r.hfu = NumberOf(j, "hfu");
  r.flops = FlopsOf(j, "flops");
  r.peak_flops_per_second = FlopsPerSecond(NumberOf(j, "peak_flops_per_second"));
  r.hbm_bytes_per_second = BytesPerSecond(NumberOf(j, "hbm_bytes_per_second"));
  r.exposed = TimeOf(j, "exposed_communication_ns");
  r.hidden = TimeOf(j, "hidden_communication_ns");
  r.peak_hbm = BytesOf(j, "peak_hbm_bytes");
  r.usable_hbm = BytesOf(j, "usable_hbm_bytes");
  r.memory_at_peak = ReadMemory(j.at("memory_at_peak"));
  if (j.contains("usable_cmem_bytes")) {
    r.peak_cmem = BytesOf(j, "peak_cmem_bytes");
    r.usable_cmem = BytesOf(j, "usable_cmem_bytes");
  }
  r.devices = CountOf(j, "devices");
  r.chips = CountOf(j, "chips");
  r.chip_classes = CountOf(j, "chip_classes");
  r.folding = ReadFolding(j.at("folding"));
  r.events = CountOf(j, "events");
  r.ops = ListOf(j, "ops", ReadOp);
  r.scopes = ListOf(j, "scopes", ReadScope);
  r.collectives = ListOf(j, "collectives", ReadCollective);
  if (j.contains("reshard_sites")) {
    r.reshard_sites = ListOf(j, "reshard_sites", ReadReshardSite);
  }
  r.rollups = ReadRollups(j.at("rollup"));
  r.links = ListOf(j, "links", ReadLink);
  r.assumptions = j.at("assumptions").get<std::vector<std::string>>();
  r.warnings = j.at("warnings").get<std::vector<std::string>>();
  if (j.contains("records")) r.records = ListOf(j, "records", ReadRecord);
  if (!j.contains("detail")) return r;

  const Json& d = j.at("detail");
  r.partitions = CountOf(d, "partitions");
  r.device_order = TextOf(d, "device_order");
  r.compute_busy = TimeOf(d, "compute_busy_ns");
  r.mxu_busy = TimeOf(d, "mxu_busy_ns");
  r.vpu_busy = TimeOf(d, "vpu_busy_ns");
  return r;
}

}  // namespace

absl::StatusOr<Report> FromJson(const std::string& text) {
  try {
    return Read(Json::parse(text));
  } catch (const std::exception& e) {
    return UserError(fmt::format("not a report of schema {}: {}", kReportSchema, e.what()));
  }
}

}  // namespace tpusim::results
