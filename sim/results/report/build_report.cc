#include "sim/results/report/build_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include "configs/hosts.h"
#include "configs/memory.h"
#include "configs/status_macros.h"
#include "sim/results/report/error_bar.h"
#include "sim/results/report/invariants.h"
#include "sim/results/report/overlap.h"
#include "sim/results/report/rollup.h"
#include "sim/results/report/scope.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

using configs::Config;
using configs::Direction;

// Zero bytes take no time whatever the rate, even if there is none.
Picoseconds TimeAt(Bytes bytes, BytesPerSecond rate) {
  return bytes.value() == 0 ? Picoseconds(0) : TransferTime(bytes, rate);
}

std::string EngineOf(const isa::OpInfo& op) {
  if (op.sparse_core) return "sparse_core";
  if (op.collective >= 0) return "collective";
  if (op.is_async) return "dma";
  if (op.category.find("host") != std::string::npos) return "host";
  return "tensor_core";
}

std::vector<OpReport> Ops(const isa::ProgramInfo& info, const std::vector<sim::OpTotals>& totals) {
  std::map<std::string, OpReport> by_name;
  for (size_t i = 0; i < totals.size(); ++i) {
    const isa::OpInfo& op = info.ops[i];
    const sim::OpTotals& t = totals[i];
    if (t.count == 0) continue;
    OpReport& r = by_name[op.name];
    if (r.count == 0) {
      r.name = op.name;
      r.category = op.category;
      r.scope = op.scope;
      r.source = op.source;
      r.engine = EngineOf(op);
    }
    r.count += t.count;
    r.total += t.total;
    r.flops += op.flops * t.count;
    r.hbm_bytes += t.hbm_bytes;
    r.compiler_estimate += op.compiler_estimate * t.count;
  }
  std::vector<OpReport> ops;
  for (auto& [name, op] : by_name) ops.push_back(std::move(op));
  std::ranges::stable_sort(ops, std::greater<>(), &OpReport::total);
  return ops;
}

std::vector<ScopeReport> Scopes(const isa::ProgramInfo& info,
                                const std::vector<sim::OpTotals>& totals) {
  std::map<std::string, ScopeReport> by_prefix;
  for (size_t i = 0; i < totals.size(); ++i) {
    const isa::OpInfo& op = info.ops[i];
    const sim::OpTotals& t = totals[i];
    if (t.count == 0 || IsContainer(op)) continue;
    std::vector<std::string> parts = ScopesOf(op.scope);
    if (parts.empty()) parts.push_back("(no scope)");
    std::string prefix;
    for (const std::string& part : parts) {
      prefix += (prefix.empty() ? "" : "/") + part;
      ScopeReport& r = by_prefix[prefix];
      r.scope = prefix;
      // What runs beside the main stream takes time where that waits for it.
      if (!op.is_async) r.total += t.total;
      if (op.collective >= 0) r.exposed += t.exposed;
      r.flops += op.flops * t.count;
    }
  }
  std::vector<ScopeReport> scopes;
  for (auto& [prefix, scope] : by_prefix) scopes.push_back(std::move(scope));
  return scopes;
}

// Whether the members of a collective may start apart: then the critical device can come so late
// that what it waits for has arrived, and is done sooner than a collective takes from its start.
bool DevicesDiffer(const sim::Timeline& timeline) {
  const std::vector<int32_t>& classes = timeline.class_of;
  return std::ranges::adjacent_find(classes, std::ranges::not_equal_to()) != classes.end();
}

// Returns the bound of one execution; 0 if the critical device came late, so that none holds for
// it.
Picoseconds BoundOf(const isa::CollectiveInfo& collective, const sim::OpTotals& totals,
                    bool devices_differ) {
  const bool holds = collective.bound * totals.count <= totals.total;
  return holds || !devices_differ ? collective.bound : Picoseconds(0);
}

std::vector<CollectiveReport> Collectives(const isa::ProgramInfo& info,
                                          const sim::Timeline& timeline) {
  const std::vector<sim::OpTotals>& totals = timeline.ops;
  std::vector<CollectiveReport> collectives;
  std::vector<std::vector<OverlapReport>> covers = CoversOf(info, timeline);
  const bool differ = DevicesDiffer(timeline);
  for (size_t i = 0; i < totals.size(); ++i) {
    const isa::OpInfo& op = info.ops[i];
    if (op.collective < 0 || totals[i].count == 0) continue;
    const isa::CollectiveInfo& c = info.collectives[op.collective];
    CollectiveReport r;
    r.name = op.name;
    r.kind = c.kind;
    r.axes = c.axes;
    r.algorithm = c.algorithm;
    r.scope = ScopeText(ScopesOf(op.scope));
    r.source = op.source;
    r.bytes = c.bytes;
    r.group_size = c.group_size;
    r.count = totals[i].count;
    r.total = totals[i].total;
    r.exposed = totals[i].exposed;
    r.expected = c.expected;
    r.bound = BoundOf(c, totals[i], differ);
    r.covered_by = std::move(covers[i]);
    r.exposed_by = ReasonsOf(c, totals[i]);
    collectives.push_back(std::move(r));
  }
  std::ranges::stable_sort(collectives, std::greater<>(), &CollectiveReport::total);
  return collectives;
}

MemoryReport MemoryAtPeak(const isa::ProgramInfo& info, const sim::DeviceTotals& device) {
  MemoryReport m;
  m.time = device.peak_live_hbm_at;
  m.operation = info.peak_at;
  m.fragmentation = info.hbm_fragmentation;
  m.arrays = info.live_at_peak;
  std::map<std::string, Bytes> sums;
  for (const isa::LiveArray& array : m.arrays) sums[array.owner] += array.bytes;
  m.by_owner.assign(sums.begin(), sums.end());
  std::ranges::stable_sort(m.by_owner, std::greater<>(), [](const auto& o) { return o.second; });
  return m;
}

// Devices of one chip share its links.
std::vector<LinkReport> Links(const Config& config, const sim::Timeline& timeline) {
  const configs::Topology& topology = config.topology;
  const std::vector<configs::Link> all = topology.AllLinks();
  std::vector<LinkReport> links;
  links.reserve(all.size());
  for (const configs::Link& link : all) {
    LinkReport r;
    r.chip = link.chip;
    r.direction = link.direction;
    for (int64_t i = 0; i < topology.devices_per_chip(); ++i) {
      const int64_t device = link.chip * topology.devices_per_chip() + i;
      r.bytes += timeline.devices[device].sent[static_cast<int>(link.direction)];
    }
    const double capacity =
        config.chip.ici.link_bytes_per_second.value() * ToSeconds(timeline.step_time);
    r.utilization = r.bytes.value() == 0 ? 0 : static_cast<double>(r.bytes.value()) / capacity;
    links.push_back(r);
  }
  return links;
}

// The longest that a link was needed.
Picoseconds BusiestLink(const Config& config, const std::vector<LinkReport>& links) {
  Bytes most{0};
  for (const LinkReport& link : links) most = std::max(most, link.bytes);
  return TimeAt(most, config.chip.ici.link_bytes_per_second);
}

// The longest that a chip's PCIe was needed; its devices share it.
Picoseconds BusiestPcie(const Config& config, const sim::Timeline& timeline) {
  const auto per_chip = static_cast<size_t>(config.topology.devices_per_chip());
  Bytes most{0};
  for (size_t first = 0; first < timeline.devices.size(); first += per_chip) {
    Bytes to_host{0}, from_host{0};
    for (size_t d = first; d < first + per_chip; ++d) {
      to_host += timeline.devices[d].to_host;
      from_host += timeline.devices[d].from_host;
    }
    most = std::max({most, to_host, from_host});
  }
  return TimeAt(most, config.chip.host.pcie_bytes_per_second);
}

// The longest that a host's network card was needed, at its full rate.
Picoseconds BusiestNic(const Config& config, const sim::Timeline& timeline) {
  if (timeline.hosts.empty()) return Picoseconds(0);
  const std::vector<int64_t> chips = configs::HostsOf(config).chips;
  Picoseconds busiest{0};
  for (size_t host = 0; host < chips.size(); ++host) {
    const sim::HostTotals& totals = timeline.hosts[host];
    const BytesPerSecond rate =
        config.chip.host.dcn_bytes_per_second * static_cast<double>(chips[host]);
    busiest = std::max(busiest, TimeAt(std::max(totals.sent, totals.received), rate));
  }
  return busiest;
}

// Collectives of ICI or of DCN that the main stream waits for run one after the other. Those in
// flight beside it may share the time, so only the longest of them counts.
Picoseconds SerialCollectives(const isa::ProgramInfo& info, const sim::Timeline& timeline,
                              bool dcn) {
  const std::vector<sim::OpTotals>& totals = timeline.ops;
  const bool differ = DevicesDiffer(timeline);
  Picoseconds serial{0}, longest{0};
  for (size_t i = 0; i < totals.size(); ++i) {
    const isa::OpInfo& op = info.ops[i];
    if (op.collective < 0 || totals[i].count == 0) continue;
    if (info.collectives[op.collective].dcn != dcn) continue;
    const Picoseconds bound = BoundOf(info.collectives[op.collective], totals[i], differ);
    if (op.is_async) {
      longest = std::max(longest, bound);
    } else {
      serial += bound * totals[i].count;
    }
  }
  return std::max(serial, longest);
}

Bounds BoundsOf(const Config& config, const isa::ProgramInfo& info, const sim::Timeline& timeline,
                const std::vector<LinkReport>& links) {
  const Bytes through_hbm = timeline.devices[timeline.critical_device].moved.hbm();
  Bounds b;
  if (info.mxu_flops.value() > 0) b.compute = ComputeTime(info.mxu_flops, config.chip.MxuPeak());
  b.hbm = TimeAt(through_hbm, config.chip.hbm.bytes_per_second);
  b.ici =
      std::max(BusiestLink(config, links), SerialCollectives(info, timeline, /*dcn=*/false));
  b.host = BusiestPcie(config, timeline);
  b.dcn =
      std::max(BusiestNic(config, timeline), SerialCollectives(info, timeline, /*dcn=*/true));
  return b;
}

// Checks that everything exists that the tables below index.
absl::Status CheckShape(const Config& config, const isa::ProgramInfo& info,
                        const sim::Timeline& timeline) {
  if (static_cast<int64_t>(timeline.devices.size()) != config.devices()) {
    return absl::InternalError(fmt::format("timeline has {} devices, the slice {}",
                                           timeline.devices.size(), config.devices()));
  }
  if (timeline.ops.size() != info.ops.size()) {
    return absl::InternalError(fmt::format("timeline has {} operations, the program {}",
                                           timeline.ops.size(), info.ops.size()));
  }
  if (timeline.critical_device < 0 || timeline.critical_device >= config.devices()) {
    return absl::InternalError(fmt::format("critical device {} is not one of the {} of the slice",
                                           timeline.critical_device, config.devices()));
  }
  for (const isa::OpInfo& op : info.ops) {
    if (op.collective >= static_cast<int64_t>(info.collectives.size())) {
      return absl::InternalError(fmt::format("operation {} names collective {} of {}", op.name,
                                             op.collective, info.collectives.size()));
    }
  }
  return absl::OkStatus();
}

// Empty: the step is exact.
std::string ApproximationOf(const sim::Timeline& timeline) {
  const sim::FoldingReport& folding = timeline.folding;
  if (folding.error_bound == Picoseconds(0)) return "";
  const std::string bound =
      fmt::format("by {} at most ({:.2g} %); --fold on is exact, --exact-under asks for more", TimeText(folding.error_bound),
                  100.0 * static_cast<double>(folding.error_bound.value()) /
                      static_cast<double>(std::max<int64_t>(1, timeline.step_time.value())));
  if (!folding.is_approximate) {
    return fmt::format(
        "passes of loops that are nearly the same are taken for the same: the step "
        "is off {}",
        bound);
  }
  return fmt::format(
      "{} classes stand for {} devices, of which more differ: coarser classes change the step by {}, "
      "and it is off {}",
      folding.device_classes, timeline.devices.size(), TimeText(folding.ignored_skew), bound);
}

std::vector<RecordReport> RecordsOf(const std::vector<Record>& records) {
  std::vector<RecordReport> rows;
  for (const Record& record : records) {
    RecordReport row{std::string(record.reason->id),
                     std::string(ToString(record.reason->action)),
                     std::string(record.pass),
                     record.subject,
                     ToString(record),
                     {}};
    for (const RecordValue& value : record.values) {
      row.values.emplace_back(value.name, value.value);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

absl::StatusOr<Report> BuildReport(const Config& config, const isa::ProgramInfo& info,
                                   const sim::Timeline& timeline, const std::string& workload) {
  RETURN_IF_ERROR(CheckShape(config, info, timeline));
  const sim::DeviceTotals& critical = timeline.devices[timeline.critical_device];

  Report r;
  r.workload = workload;
  r.config = config.name;
  r.step_time = timeline.step_time;
  r.links = Links(config, timeline);
  r.bound = BoundsOf(config, info, timeline, r.links);
  r.peak_flops_per_second = FlopsPerSecond(config.chip.peak_bf16.value() /
                                           static_cast<double>(config.topology.devices_per_chip()));
  r.hbm_bytes_per_second = config.chip.hbm.bytes_per_second;
  const double peak_flops = r.peak_flops_per_second.value() * ToSeconds(timeline.step_time);
  if (peak_flops > 0) {
    r.mfu = static_cast<double>(info.model_flops.value()) / peak_flops;
    r.hfu = static_cast<double>(info.hardware_flops.value()) / peak_flops;
  }
  r.flops = info.hardware_flops;
  r.exposed = critical.exposed;
  r.hidden = critical.collective - critical.exposed;
  r.peak = info.peak;
  for (const sim::DeviceTotals& d : timeline.devices) {
    for (size_t i = 0; i < configs::kMemoryCount; ++i) {
      r.peak.of[i] = std::max(r.peak.of[i], d.peak_live.of[i]);
    }
  }
  r.memory_at_peak = MemoryAtPeak(info, critical);
  r.vmem_at_peak = info.vmem_at_peak;
  r.usable = info.usable;
  r.devices = config.devices();
  r.chips = config.topology.chips();
  r.chip_classes = timeline.chip_classes;
  r.folding = timeline.folding;
  r.events = timeline.events;
  r.ops = Ops(info, timeline.ops);
  r.scopes = Scopes(info, timeline.ops);
  r.collectives = Collectives(info, timeline);
  r.reshard_sites = ReshardSites(info, timeline);
  r.rollups = RollUp(info, timeline);
  r.critical_path = PathTimesOf(timeline);
  r.assumptions = TextsOf(info.records, Action::kAssumed);
  if (std::string approximation = ApproximationOf(timeline); !approximation.empty()) {
    r.assumptions.push_back(std::move(approximation));
  }
  r.warnings = ReshardWarnings(r.reshard_sites, r.exposed, r.step_time);
  r.warnings.insert(r.warnings.end(), config.warnings.begin(), config.warnings.end());
  std::ranges::move(TextsOf(info.records, Action::kWarned), std::back_inserter(r.warnings));
  r.records = RecordsOf(info.records);
  r.partitions = info.partitions;
  r.device_order = info.device_order;
  r.compiler = config.chip.compiler.compiler;
  r.compute_busy = critical.compute_busy;
  r.mxu_busy = critical.mxu_busy;
  r.vpu_busy = critical.vpu_busy;
  r.error_bar = ErrorBarOf(config, r);

  RETURN_IF_ERROR(CheckInvariants(config, info, timeline, r));
  return r;
}

}  // namespace tpusim::results
