#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "sim/results/report.h"

namespace tpusim::results {
namespace {

using Json = nlohmann::ordered_json;

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

Json ErrorBarJson(const ErrorBar& bar) {
  Json j = {{"chip", bar.chip}, {"kind", bar.kind}, {"rows", bar.rows}};
  if (bar.rows > 0) {
    j["mean_error"] = bar.mean;
    j["worst_error"] = bar.worst;
    j["worst_row"] = bar.worst_row;
  }
  j["text"] = bar.text;
  return j;
}

Json FoldingJson(const sim::FoldingReport& folding) {
  Json steps = Json::array();
  for (const sim::FoldingReport::Step& step : folding.steps) {
    steps.push_back({{"reason", step.reason}, {"device_classes", step.device_classes}});
  }
  return {{"approximate", folding.is_approximate},
          {"device_classes", folding.device_classes},
          {"simulations", folding.simulations},
          {"ignored_skew_ns", ToNanoseconds(folding.ignored_skew)},
          {"error_bound_ns", ToNanoseconds(folding.error_bound)},
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
          {"exposed_by", std::move(exposed_by)},
          {"scope", c.scope},
          {"source", c.source}};
}

Json RecordJson(const RecordReport& r) {
  Json values = Json::object();
  for (const auto& [name, value] : r.values) {
    std::visit([&, key = name](const auto& v) { values[key] = v; }, value);
  }
  return {{"reason", r.reason},   {"action", r.action}, {"pass", r.pass},
          {"subject", r.subject}, {"text", r.text},     {"values", std::move(values)}};
}

Json ReshardSiteJson(const ReshardSiteReport& r) {
  const isa::ReshardSite& s = r.site;
  Json constraints = Json::array();
  for (const isa::ReshardSite::Constraint& c : s.constraints) {
    constraints.push_back({{"constrain", c.text}, {"of_result", c.of_result}});
  }
  return {{"kind", s.kind},
          {"value", s.value},
          {"user", s.user},
          {"scope", s.scope},
          {"source", s.source},
          {"shape", s.shape},
          {"from", s.from},
          {"to", s.to},
          {"why", s.why},
          {"value_bytes", s.whole.value()},
          {"result_that_lost_it_bytes", s.lost_by.value()},
          {"bytes", s.bytes.value()},
          {"order", r.order},
          {"places", s.places},
          {"count", r.count},
          {"total_ns", ToNanoseconds(r.total)},
          {"exposed_ns", ToNanoseconds(r.exposed)},
          {"constraints", std::move(constraints)}};
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
    j["scope"] = row.scope;
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

}  // namespace

std::string ToJson(const Report& r, JsonDetail detail) {
  Json j = HeadOf(kReportSchema, r.producer);
  j.update(Json{
      {"workload", r.workload},
      {"config", r.config},
      {"step_time_ns", ToNanoseconds(r.step_time)},
      {"error_bar", ErrorBarJson(r.error_bar)},
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
      {"reshard_sites", Array(r.reshard_sites, ReshardSiteJson)},
      {"rollup", RollupsJson(r)},
      {"links", Json::array()},
      {"assumptions", r.assumptions},
      {"warnings", r.warnings},
      {"records", Array(r.records, RecordJson)}});
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

}  // namespace tpusim::results
