#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/status_macros.h"
#include "sim/results/report.h"

namespace tpusim::results {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "tpusim.report/1";

Picoseconds FromNanoseconds(double ns) {
  return Picoseconds(static_cast<int64_t>(std::llround(ns * 1e3)));
}

Json BoundsJson(const Bounds& b) {
  return {{"compute", ToNanoseconds(b.compute)},
          {"hbm", ToNanoseconds(b.hbm)},
          {"ici", ToNanoseconds(b.ici)},
          {"host", ToNanoseconds(b.host)},
          {"dcn", ToNanoseconds(b.dcn)}};
}

Json PathJson(const PathTimes& path) {
  Json j = Json::object();
  for (size_t i = 0; i < path.size(); ++i) {
    j[std::string(SpentKey(static_cast<events::Spent>(i)))] = ToNanoseconds(path[i]);
  }
  return j;
}

Json OpJson(const OpReport& o) {
  return {{"name", o.name},
          {"category", o.category},
          {"scope", o.scope},
          {"count", o.count},
          {"total_ns", ToNanoseconds(o.total)},
          {"flops", o.flops.value()},
          {"hbm_bytes", o.hbm_bytes.value()},
          {"engine", o.engine},
          {"source", o.source}};
}

Json FoldingJson(const sim::FoldingReport& folding) {
  Json steps = Json::array();
  for (const sim::FoldingReport::Step& step : folding.steps) {
    steps.push_back({{"reason", step.reason}, {"device_classes", step.device_classes}});
  }
  return {{"device_classes", folding.device_classes},
          {"simulations", folding.simulations},
          {"ignored_skew_ns", ToNanoseconds(folding.ignored_skew)},
          {"steps", std::move(steps)}};
}

Json ScopeJson(const ScopeReport& s) {
  return {{"scope", s.scope},
          {"total_ns", ToNanoseconds(s.total)},
          {"exposed_communication_ns", ToNanoseconds(s.exposed)},
          {"flops", s.flops.value()}};
}

Json CollectiveJson(const CollectiveReport& c) {
  Json covered_by = Json::array(), exposed_by = Json::array();
  for (const OverlapReport& o : c.covered_by) {
    covered_by.push_back({{"name", o.what},
                          {"hidden_ns", ToNanoseconds(o.time)},
                          {"share", Ratio(o.time, c.hidden())}});
  }
  for (const OverlapReport& o : c.exposed_by) {
    exposed_by.push_back(
        {{"reason", o.what}, {"exposed_ns", ToNanoseconds(o.time)}, {"text", o.text}});
  }
  return {{"name", c.name},
          {"kind", c.kind},
          {"bytes", c.bytes.value()},
          {"group_size", c.group_size},
          {"axes", c.axes},
          {"algorithm", c.algorithm},
          {"count", c.count},
          {"total_ns", ToNanoseconds(c.total)},
          {"hidden_ns", ToNanoseconds(c.hidden())},
          {"exposed_ns", ToNanoseconds(c.exposed)},
          {"expected_ns", ToNanoseconds(c.expected)},
          {"bound_ns", ToNanoseconds(c.bound)},
          {"covered_by", std::move(covered_by)},
          {"exposed_by", std::move(exposed_by)}};
}

Json RollupRowJson(const RollupRow& row, RollupBy by, Picoseconds step) {
  Json j = {{"name", row.name},
            {"members", row.members},
            {"count", row.count},
            {"time_ns", ToNanoseconds(row.time)},
            {"share", step == Picoseconds(0) ? 0.0 : Ratio(row.time, step)},
            {"compute_ns", ToNanoseconds(row.compute)},
            {"exposed_ns", ToNanoseconds(row.exposed)}};
  if (by == RollupBy::kOp || by == RollupBy::kPath) {
    j["category"] = row.category;
    j["source"] = row.source;
  }
  if (by == RollupBy::kScope) j["total_ns"] = ToNanoseconds(row.total);
  if (by == RollupBy::kCollective) {
    j["in_flight_ns"] = ToNanoseconds(row.in_flight);
    j["hidden_ns"] = ToNanoseconds(row.hidden);
  }
  return j;
}

Json RollupsJson(const Report& r) {
  Json j = Json::object();
  for (const RollupBy by : kRollups) {
    Json rows = Json::array();
    for (const RollupRow& row : r.rollups.Of(by)) {
      rows.push_back(RollupRowJson(row, by, r.step_time));
    }
    j[std::string(RollupName(by))] = std::move(rows);
  }
  return j;
}

Json MemoryJson(const MemoryReport& m) {
  Json owners = Json::array(), arrays = Json::array();
  for (const auto& [owner, bytes] : m.by_owner) {
    owners.push_back({{"owner", owner}, {"bytes", bytes.value()}});
  }
  for (const isa::LiveArray& a : m.arrays) {
    arrays.push_back({{"name", a.name},
                      {"owner", a.owner},
                      {"scope", a.scope},
                      {"source", a.source},
                      {"shape", a.shape},
                      {"bytes", a.bytes.value()},
                      {"unpadded_bytes", a.unpadded.value()},
                      {"padding_bytes", (a.bytes - a.unpadded).value()}});
  }
  return {{"time_ns", ToNanoseconds(m.time)},
          {"operation", m.operation},
          {"fragmentation_bytes", m.fragmentation.value()},
          {"owners", std::move(owners)},
          {"arrays", std::move(arrays)}};
}

// One line per link. A pod has tens of thousands of them, most of which differ from
// the last one of their direction in their chip only.
void AppendLinks(const std::vector<LinkReport>& links, std::string& text) {
  struct Last {
    LinkReport link;
    std::string rest;  // after the chip's number
  };
  std::array<Last, configs::kDirections> last_of;
  for (const LinkReport& l : links) {
    auto& [last, rest] = last_of[static_cast<size_t>(l.direction)];
    if (rest.empty() || last.bytes != l.bytes || last.utilization != l.utilization) {
      last = l;
      rest = fmt::format(", \"direction\": \"{}\", \"bytes\": {}, \"utilization\": {}}}",
                         DirectionName(l.direction), l.bytes.value(), Json(l.utilization).dump());
    }
    text += text.back() == '[' ? "\n    {\"chip\": " : ",\n    {\"chip\": ";
    text += std::to_string(l.chip);
    text += rest;
  }
  if (!links.empty()) text += "\n  ";
}

template <typename T, typename F>
Json Array(const std::vector<T>& items, F to_json) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(to_json(item));
  return array;
}

configs::Direction DirectionOf(const std::string& name) {
  for (int i = 0; i < configs::kDirections; ++i) {
    const auto d = static_cast<configs::Direction>(i);
    if (configs::DirectionName(d) == name) return d;
  }
  throw std::runtime_error("unknown direction '" + name + "'");
}

// The library reports by exceptions; they end in FromJson.
Report Read(const Json& j) {
  const auto text = [](const Json& o, const char* key) { return o.at(key).get<std::string>(); };
  const auto count = [](const Json& o, const char* key) { return o.at(key).get<int64_t>(); };
  const auto time = [](const Json& o, const char* key) {
    return FromNanoseconds(o.at(key).get<double>());
  };
  if (text(j, "schema") != kSchema) {
    throw std::runtime_error(fmt::format("schema is not {}", kSchema));
  }
  Report r;
  r.workload = text(j, "workload");
  r.config = text(j, "config");
  r.step_time = time(j, "step_time_ns");
  const Json& b = j.at("bound_ns");
  r.bound = {time(b, "compute"), time(b, "hbm"), time(b, "ici"), time(b, "host"), time(b, "dcn")};
  if (j.contains("critical_path_ns")) {
    for (size_t i = 0; i < r.critical_path.size(); ++i) {
      r.critical_path[i] =
          time(j.at("critical_path_ns"), SpentKey(static_cast<events::Spent>(i)).data());
    }
  }
  r.mfu = j.at("mfu").get<double>();
  r.hfu = j.at("hfu").get<double>();
  r.flops = Flops(count(j, "flops"));
  r.peak_flops_per_second = FlopsPerSecond(j.value("peak_flops_per_second", 0.0));
  r.hbm_bytes_per_second = BytesPerSecond(j.value("hbm_bytes_per_second", 0.0));
  r.exposed = time(j, "exposed_communication_ns");
  r.hidden = time(j, "hidden_communication_ns");
  r.peak_hbm = Bytes(count(j, "peak_hbm_bytes"));
  r.usable_hbm = Bytes(count(j, "usable_hbm_bytes"));
  if (j.contains("memory_at_peak")) {
    const Json& m = j.at("memory_at_peak");
    r.memory_at_peak.time = time(m, "time_ns");
    r.memory_at_peak.operation = text(m, "operation");
    r.memory_at_peak.fragmentation = Bytes(count(m, "fragmentation_bytes"));
    for (const Json& o : m.at("owners")) {
      r.memory_at_peak.by_owner.emplace_back(text(o, "owner"), Bytes(count(o, "bytes")));
    }
    for (const Json& a : m.at("arrays")) {
      r.memory_at_peak.arrays.push_back(
          {text(a, "name"), text(a, "owner"), text(a, "scope"), text(a, "source"), text(a, "shape"),
           Bytes(count(a, "bytes")), Bytes(count(a, "unpadded_bytes"))});
    }
  }
  if (j.contains("usable_cmem_bytes")) {
    r.peak_cmem = Bytes(count(j, "peak_cmem_bytes"));
    r.usable_cmem = Bytes(count(j, "usable_cmem_bytes"));
  }
  r.devices = count(j, "devices");
  r.chips = count(j, "chips");
  r.chip_classes = count(j, "chip_classes");
  if (j.contains("folding")) {
    const Json& folding = j.at("folding");
    r.folding.device_classes = count(folding, "device_classes");
    r.folding.simulations = count(folding, "simulations");
    r.folding.ignored_skew = time(folding, "ignored_skew_ns");
    for (const Json& step : folding.at("steps")) {
      r.folding.steps.push_back({text(step, "reason"), count(step, "device_classes")});
    }
  }
  r.events = count(j, "events");
  for (const Json& o : j.at("ops")) {
    OpReport op;
    op.name = text(o, "name");
    op.category = text(o, "category");
    op.scope = text(o, "scope");
    op.count = count(o, "count");
    op.total = time(o, "total_ns");
    op.flops = Flops(count(o, "flops"));
    op.hbm_bytes = Bytes(count(o, "hbm_bytes"));
    op.engine = text(o, "engine");
    op.source = text(o, "source");
    r.ops.push_back(std::move(op));
  }
  for (const Json& s : j.at("scopes")) {
    r.scopes.push_back({text(s, "scope"), time(s, "total_ns"), time(s, "exposed_communication_ns"),
                        Flops(count(s, "flops"))});
  }
  for (const Json& o : j.at("collectives")) {
    CollectiveReport c;
    c.name = text(o, "name");
    c.kind = text(o, "kind");
    c.bytes = Bytes(count(o, "bytes"));
    c.group_size = count(o, "group_size");
    c.axes = text(o, "axes");
    c.algorithm = text(o, "algorithm");
    c.count = count(o, "count");
    c.total = time(o, "total_ns");
    c.exposed = time(o, "exposed_ns");
    c.expected = time(o, "expected_ns");
    c.bound = time(o, "bound_ns");
    if (o.contains("covered_by")) {
      for (const Json& by : o.at("covered_by")) {
        c.covered_by.push_back({text(by, "name"), time(by, "hidden_ns"), ""});
      }
      for (const Json& by : o.at("exposed_by")) {
        c.exposed_by.push_back({text(by, "reason"), time(by, "exposed_ns"), text(by, "text")});
      }
    }
    r.collectives.push_back(std::move(c));
  }
  if (j.contains("rollup")) {
    for (const RollupBy by : kRollups) {
      const std::string name(RollupName(by));
      if (!j.at("rollup").contains(name)) continue;  // older than this table
      for (const Json& o : j.at("rollup").at(name)) {
        RollupRow row;
        row.name = text(o, "name");
        row.members = count(o, "members");
        row.count = count(o, "count");
        row.time = time(o, "time_ns");
        row.compute = time(o, "compute_ns");
        row.exposed = time(o, "exposed_ns");
        if (by == RollupBy::kOp || by == RollupBy::kPath) {
          row.category = text(o, "category");
          row.source = text(o, "source");
        }
        if (by == RollupBy::kScope) row.total = time(o, "total_ns");
        if (by == RollupBy::kCollective) {
          row.in_flight = time(o, "in_flight_ns");
          row.hidden = time(o, "hidden_ns");
        }
        r.rollups.Of(by).push_back(std::move(row));
      }
    }
  }
  for (const Json& l : j.at("links")) {
    r.links.push_back({count(l, "chip"), DirectionOf(text(l, "direction")),
                       Bytes(count(l, "bytes")), l.at("utilization").get<double>()});
  }
  r.assumptions = j.at("assumptions").get<std::vector<std::string>>();
  r.warnings = j.at("warnings").get<std::vector<std::string>>();
  if (!j.contains("detail")) return r;

  const Json& d = j.at("detail");
  r.partitions = count(d, "partitions");
  r.device_order = text(d, "device_order");
  r.compute_busy = time(d, "compute_busy_ns");
  r.mxu_busy = time(d, "mxu_busy_ns");
  r.vpu_busy = time(d, "vpu_busy_ns");
  return r;
}

}  // namespace

std::string ToJson(const Report& r, JsonDetail detail) {
  Json j = {
      {"schema", std::string(kSchema)},
      {"workload", r.workload},
      {"config", r.config},
      {"step_time_ns", ToNanoseconds(r.step_time)},
      {"bound_ns", BoundsJson(r.bound)},
      {"bound_by",
       r.critical_path == PathTimes{} ? "" : std::string(BindingName(BindingOf(r.critical_path)))},
      {"critical_path_ns", PathJson(r.critical_path)},
      {"mfu", r.mfu},
      {"hfu", r.hfu},
      {"flops", r.flops.value()},
      {"peak_flops_per_second", r.peak_flops_per_second.value()},
      {"hbm_bytes_per_second", r.hbm_bytes_per_second.value()},
      {"exposed_communication_ns", ToNanoseconds(r.exposed)},
      {"hidden_communication_ns", ToNanoseconds(r.hidden)},
      {"peak_hbm_bytes", r.peak_hbm.value()},
      {"usable_hbm_bytes", r.usable_hbm.value()},
      {"memory_at_peak", MemoryJson(r.memory_at_peak)},
      {"devices", r.devices},
      {"chips", r.chips},
      {"chip_classes", r.chip_classes},
      {"folding", FoldingJson(r.folding)},
      {"events", r.events},
      {"ops", Array(r.ops, OpJson)},
      {"scopes", Array(r.scopes, ScopeJson)},
      {"collectives", Array(r.collectives, CollectiveJson)},
      {"rollup", RollupsJson(r)},
      {"links", Json::array()},
      {"assumptions", r.assumptions},
      {"warnings", r.warnings}};
  if (r.usable_cmem > Bytes(0)) {
    j["peak_cmem_bytes"] = r.peak_cmem.value();
    j["usable_cmem_bytes"] = r.usable_cmem.value();
  }
  if (detail == JsonDetail::kExchange) {
    j["detail"] = {{"partitions", r.partitions},
                   {"device_order", r.device_order},
                   {"compute_busy_ns", ToNanoseconds(r.compute_busy)},
                   {"mxu_busy_ns", ToNanoseconds(r.mxu_busy)},
                   {"vpu_busy_ns", ToNanoseconds(r.vpu_busy)}};
  }
  // Names come from the workload and may hold any bytes.
  const std::string others = j.dump(2, ' ', false, Json::error_handler_t::replace);
  // No text inside a string begins a line.
  constexpr std::string_view kEmpty = "\n  \"links\": []";
  const size_t end = others.find(kEmpty) + kEmpty.size() - 1;
  std::string text;
  text.reserve(others.size() + r.links.size() * 100);
  text.append(others, 0, end);
  AppendLinks(r.links, text);
  text.append(others, end);
  text += '\n';
  return text;
}

absl::StatusOr<Report> FromJson(const std::string& text) {
  try {
    return Read(Json::parse(text));
  } catch (const std::exception& e) {
    return UserError(fmt::format("not a report of schema {}: {}", kSchema, e.what()));
  }
}

}  // namespace tpusim::results
