// The report as JSON, both ways. Fields() of a part names each of its fields once, followed by the
// member that holds it, in the order of the file; a Writer and a JsonReader visit them. The type of
// the member says what JSON holds: times are nanoseconds, quantities their number, parts objects.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "sim/results/report/report.h"

namespace tpusim::results {
namespace {

using Json = nlohmann::ordered_json;

// A part to be read, or one to be written.
template <typename Given, typename Part>
concept Is = std::same_as<std::remove_const_t<Given>, Part>;

void Fields(auto& visit, Is<Bounds> auto& b) {
  visit("compute", b.compute, "hbm", b.hbm, "ici", b.ici, "host", b.host, "dcn", b.dcn);
}

void Fields(auto& visit, Is<PathTimes> auto& path) {
  for (size_t i = 0; i < path.size(); ++i) {
    visit(std::string(SpentKey(static_cast<events::Spent>(i))), path[i]);
  }
}

void Fields(auto& visit, Is<OpReport> auto& o) {
  visit("name", o.name, "category", o.category, "scope", o.scope, "count", o.count,
        "total_ns", o.total, "flops", o.flops, "hbm_bytes", o.hbm_bytes, "engine", o.engine,
        "source", o.source);
  if (visit.Has("compiler_estimate_ns", o.compiler_estimate > Picoseconds(0))) {
    visit("compiler_estimate_ns", o.compiler_estimate);
  }
}

void Fields(auto& visit, Is<ErrorBar> auto& bar) {
  visit("chip", bar.chip, "kind", bar.kind, "rows", bar.rows);
  if (bar.rows > 0) {
    visit("mean_error", bar.mean, "worst_error", bar.worst, "worst_row", bar.worst_row);
  }
  visit("text", bar.text);
}

void Fields(auto& visit, Is<RoutingReport> auto& r) {
  visit("routing", r.routing, "hot_device", r.hot_device, "imbalance", r.imbalance,
        "dropped_percent", r.dropped_percent, "balanced_step_time_ns", r.balanced_step);
}

void Fields(auto& visit, Is<sim::FoldingReport::FoldingStep> auto& step) {
  visit("reason", step.reason, "device_classes", step.device_classes);
}

void Fields(auto& visit, Is<sim::FoldingReport> auto& folding) {
  visit("approximate", folding.is_approximate, "device_classes", folding.device_classes,
        "simulations", folding.simulations, "ignored_skew_ns", folding.ignored_skew,
        "error_bound_ns", folding.error_bound, "steps", folding.steps);
}

void Fields(auto& visit, Is<ScopeReport> auto& s) {
  visit("scope", s.scope, "total_ns", s.total, "exposed_communication_ns", s.exposed,
        "flops", s.flops);
}

void Fields(auto& visit, Is<CollectiveReport> auto& c) {
  visit("name", c.name, "kind", c.kind, "bytes", c.bytes, "group_size", c.group_size,
        "axes", c.axes, "algorithm", c.algorithm, "count", c.count, "total_ns", c.total);
  visit.Derived("hidden_ns", [&] { return c.hidden(); });
  visit("exposed_ns", c.exposed, "expected_ns", c.expected, "bound_ns", c.bound);
  visit.List("covered_by", c.covered_by, [&](auto& visit_cover, auto& o) {
    visit_cover("name", o.what, "hidden_ns", o.time);
    visit_cover.Derived("share", [&] { return Ratio(o.time, c.hidden()); });
  });
  visit.List("exposed_by", c.exposed_by, [](auto& visit_reason, auto& o) {
    visit_reason("reason", o.what, "exposed_ns", o.time, "text", o.text);
  });
  visit.Optional("scope", c.scope);
  visit.Optional("source", c.source);
}

void Fields(auto& visit, Is<isa::ReshardSite::Constraint> auto& c) {
  visit("constrain", c.text, "of_result", c.of_result);
}

void Fields(auto& visit, Is<ReshardSiteReport> auto& r) {
  auto& site = r.site;
  visit("kind", site.kind, "value", site.value, "user", site.user, "scope", site.scope,
        "source", site.source, "shape", site.shape, "from", site.from, "to", site.to,
        "why", site.why, "value_bytes", site.whole, "result_that_lost_it_bytes", site.lost_by,
        "bytes", site.bytes, "order", r.order, "places", site.places, "count", r.count,
        "total_ns", r.total, "exposed_ns", r.exposed, "constraints", site.constraints);
}

void RollupFields(auto& visit, Is<RollupRow> auto& row, RollupBy by, Picoseconds step) {
  visit("name", row.name, "members", row.members, "count", row.count, "time_ns", row.time);
  visit.Derived("share", [&] { return step == Picoseconds(0) ? 0.0 : Ratio(row.time, step); });
  visit("compute_ns", row.compute, "exposed_ns", row.exposed);
  if (by == RollupBy::kOp || by == RollupBy::kPath) {
    visit("category", row.category, "source", row.source);
    visit.Optional("scope", row.scope);
  }
  if (by == RollupBy::kScope) visit("total_ns", row.total);
  if (by == RollupBy::kCollective) {
    visit("in_flight_ns", row.in_flight, "hidden_ns", row.hidden);
  }
}

void Fields(auto& visit, Is<RecordReport> auto& r) {
  visit("reason", r.reason, "action", r.action, "pass", r.pass, "subject", r.subject,
        "text", r.text, "values", r.values);
}

void Fields(auto& visit, Is<std::pair<std::string, Bytes>> auto& owner) {
  visit("owner", owner.first, "bytes", owner.second);
}

void Fields(auto& visit, Is<isa::LiveArray> auto& a) {
  visit("name", a.name, "owner", a.owner, "scope", a.scope, "source", a.source, "shape", a.shape,
        "bytes", a.bytes, "unpadded_bytes", a.unpadded);
  visit.Derived("padding_bytes", [&] { return a.bytes - a.unpadded; });
}

void Fields(auto& visit, Is<MemoryReport> auto& m) {
  visit("time_ns", m.time, "operation", m.operation, "fragmentation_bytes", m.fragmentation,
        "owners", m.by_owner, "arrays", m.arrays);
}

void Fields(auto& visit, Is<isa::VmemAtPeak> auto& m) {
  visit("bytes", m.bytes, "capacity_bytes", m.capacity, "operation", m.operation,
        "windows_bytes", m.windows, "arrays", m.arrays);
}

void Fields(auto& visit, Is<LinkReport> auto& l) {
  visit("chip", l.chip, "direction", l.direction, "bytes", l.bytes, "utilization", l.utilization);
}

void Fields(auto& visit, Is<isa::SourcePlace> auto& place) {
  visit("scope", place.scope, "source", place.source);
}

void Fields(auto& visit, Is<PlacedCollective> auto& c) {
  visit("kind", c.kind, "algorithm", c.algorithm, "bytes", c.bytes, "group_size", c.group_size,
        "asynchronous", c.asynchronous);
}

void Fields(auto& visit, Is<PlacedOp> auto& op) {
  visit("name", op.name, "part", op.part, "place", op.place, "covered", op.covered,
        "count", op.count, "time_ns", op.time, "collective", op.collective);
}

void Fields(auto& visit, Is<PlacedProgram> auto& program) {
  visit("by_tpu_compiler", program.by_tpu_compiler, "places", program.places,
        "collectives", program.collectives, "ops", program.ops);
}

void MemoryFields(auto& visit, Is<Report> auto& r, const configs::Memory& memory) {
  visit(fmt::format("peak_{}_bytes", memory.name), r.peak.In(memory.space));
  visit(fmt::format("usable_{}_bytes", memory.name), r.usable.In(memory.space));
}

void Fields(auto& visit, Is<Report> auto& r, JsonDetail detail) {
  visit("tpusim_version", r.producer.version, "command_line", r.producer.command_line, "workload",
        r.workload, "config", r.config, "compiler", r.compiler, "step_time_ns", r.step_time,
        "error_bar", r.error_bar, "bound_ns", r.bound);
  if (visit.Has("routing", !r.routing.routing.empty())) visit("routing", r.routing);
  visit.Derived("bound_by", [&] {
    return std::string(r.critical_path == PathTimes{} ? ""
                                                      : BindingName(BindingOf(r.critical_path)));
  });
  visit("critical_path_ns", r.critical_path, "mfu", r.mfu, "hfu", r.hfu, "flops", r.flops,
        "peak_flops_per_second", r.peak_flops_per_second,
        "hbm_bytes_per_second", r.hbm_bytes_per_second, "exposed_communication_ns", r.exposed,
        "hidden_communication_ns", r.hidden);
  MemoryFields(visit, r, configs::MemoryOf(configs::MemorySpace::kHbm));
  visit("memory_at_peak", r.memory_at_peak);
  if (visit.Has("vmem_at_peak", r.vmem_at_peak.bytes > Bytes(0))) {
    visit("vmem_at_peak", r.vmem_at_peak);
  }
  visit("devices", r.devices, "chips", r.chips, "chip_classes", r.chip_classes,
        "folding", r.folding, "events", r.events, "ops", r.ops, "scopes", r.scopes,
        "collectives", r.collectives);
  visit.Optional("reshard_sites", r.reshard_sites);
  visit.Object("rollup", [&](auto& visit_table) {
    for (const RollupBy by : kRollups) {
      visit_table.List(std::string(RollupName(by)), r.rollups.Of(by),
                       [&](auto& v, auto& row) { RollupFields(v, row, by, r.step_time); });
    }
  });
  visit("links", r.links, "assumptions", r.assumptions, "warnings", r.warnings);
  visit.Optional("records", r.records);
  for (const configs::Memory& memory : configs::kMemories) {
    if (memory.space == configs::MemorySpace::kHbm) continue;
    if (visit.Has(fmt::format("usable_{}_bytes", memory.name),
                  r.usable.In(memory.space) > Bytes(0))) {
      MemoryFields(visit, r, memory);
    }
  }
  if (visit.Has("detail", detail != JsonDetail::kReport)) {
    visit.Object("detail", [&](auto& visit_detail) {
      visit_detail("partitions", r.partitions, "device_order", r.device_order,
                   "compute_busy_ns", r.compute_busy, "mxu_busy_ns", r.mxu_busy,
                   "vpu_busy_ns", r.vpu_busy);
    });
  }
  if (visit.Has("placed", detail == JsonDetail::kPlaced)) visit("placed", r.placed);
}

class Writer {
 public:
  explicit Writer(Json& to) : to_(to) {
    if (to.is_null()) to = Json::object();
  }

  void operator()(const std::string& key, const auto& value, const auto&... more) {
    Write(to_[key], value);
    if constexpr (sizeof...(more) > 0) (*this)(more...);
  }
  void Derived(const std::string& key, const auto& make) { Write(to_[key], make()); }
  void Optional(const std::string& key, const auto& value) { Write(to_[key], value); }
  bool Has(const std::string& /*key*/, bool has) { return has; }
  void Object(const std::string& key, const auto& fields) {
    Writer writer(to_[key]);
    fields(writer);
  }
  void List(const std::string& key, const auto& items, const auto& fields) {
    Json& list = to_[key] = Json::array();
    for (const auto& item : items) {
      Writer writer(list.emplace_back());
      fields(writer, item);
    }
  }

 private:
  template <typename T>
  static void Write(Json& to, const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      to = value;
    } else if constexpr (std::is_same_v<T, Picoseconds>) {
      to = ToNanoseconds(value);
    } else if constexpr (std::is_same_v<T, OpPart>) {
      to = PartName(value);
    } else if constexpr (requires { value.value(); }) {
      to = value.value();
    } else {
      Writer writer(to);
      Fields(writer, value);
    }
  }
  template <typename T>
  static void Write(Json& to, const std::vector<T>& items) {
    to = Json::array();
    for (const T& item : items) Write(to.emplace_back(), item);
  }
  static void Write(Json& to, const RecordReport::Values& values) {
    to = Json::object();
    for (const auto& [name, value] : values) {
      std::visit([&, key = name](const auto& v) { to[key] = v; }, value);
    }
  }
  // Leaves out the links, of which a pod has tens of thousands: AppendLinks writes them.
  static void Write(Json& to, const std::vector<LinkReport>& /*links*/) { to = Json::array(); }

  Json& to_;
};

// The library reports by exceptions; they end in FromJson.
class JsonReader {
 public:
  explicit JsonReader(const Json& from) : from_(from) {}

  void operator()(const std::string& key, auto& value, auto&&... more) {
    Read(from_.at(key), value);
    if constexpr (sizeof...(more) > 0) (*this)(more...);
  }
  void Derived(const std::string& /*key*/, const auto& /*make*/) {}
  void Optional(const std::string& key, auto& value) {
    if (from_.contains(key)) Read(from_.at(key), value);
  }
  bool Has(const std::string& key, bool /*has*/) { return from_.contains(key); }
  void Object(const std::string& key, const auto& fields) {
    JsonReader reader(from_.at(key));
    fields(reader);
  }
  void List(const std::string& key, auto& items, const auto& fields) {
    for (const Json& item : from_.at(key)) {
      JsonReader reader(item);
      fields(reader, items.emplace_back());
    }
  }

 private:
  template <typename T>
  static void Read(const Json& from, T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      value = from.get<T>();
    } else if constexpr (std::is_same_v<T, Picoseconds>) {
      value = Picoseconds(static_cast<int64_t>(std::llround(from.get<double>() * 1e3)));
    } else if constexpr (requires { value.value(); }) {
      value = T(from.get<decltype(value.value())>());
    } else {
      JsonReader reader(from);
      Fields(reader, value);
    }
  }
  template <typename T>
  static void Read(const Json& from, std::vector<T>& items) {
    for (const Json& item : from) Read(item, items.emplace_back());
  }
  static void Read(const Json& from, RecordReport::Values& values) {
    for (const auto& [name, value] : from.items()) {
      if (value.is_string()) {
        values.emplace_back(name, value.get<std::string>());
      } else if (value.is_number_integer()) {
        values.emplace_back(name, value.get<int64_t>());
      } else {
        values.emplace_back(name, value.get<double>());
      }
    }
  }
  static void Read(const Json& from, OpPart& part) {
    const auto name = from.get<std::string>();
    for (const OpPart known : kOpParts) {
      part = known;
      if (PartName(known) == name) return;
    }
    throw std::runtime_error("unknown part '" + name + "'");
  }
  static void Read(const Json& from, configs::Direction& direction) {
    const auto name = from.get<std::string>();
    for (int i = 0; i < configs::kDirections; ++i) {
      direction = static_cast<configs::Direction>(i);
      if (configs::DirectionName(direction) == name) return;
    }
    throw std::runtime_error("unknown direction '" + name + "'");
  }

  const Json& from_;
};

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

}  // namespace

std::string ToJson(const Report& r, JsonDetail detail) {
  Json j = {{"schema", kReportSchema}};
  Writer writer(j);
  Fields(writer, r, detail);
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
    const Json j = Json::parse(text);
    if (j.at("schema").get<std::string>() != kReportSchema) {
      throw std::runtime_error(fmt::format("schema is not {}", kReportSchema));
    }
    Report r;
    JsonReader reader(j);
    Fields(reader, r, JsonDetail::kExchange);
    return r;
  } catch (const std::exception& e) {
    return UserError(fmt::format("not a report of schema {}: {}", kReportSchema, e.what()));
  }
}

}  // namespace tpusim::results
