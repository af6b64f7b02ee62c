#include "sim/results/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "configs/compiler_files.h"
#include "configs/memory.h"
#include "configs/printable.h"
#include "sim/results/report/collective_groups.h"
#include "sim/results/report/rollup_text.h"
#include "sim/results/report/text.h"

namespace tpusim::results {
namespace {

using Lines = std::vector<std::string>;

void Append(Lines& to, const Lines& from) { to.insert(to.end(), from.begin(), from.end()); }

constexpr size_t kFieldColumn = 15;

std::string Field(std::string_view name, const std::string& text) {
  return fmt::format("{:<14} {}", name, configs::Printable(text));
}

std::string Plural(int64_t n, std::string_view word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

double Share(Picoseconds t, const Report& r) {
  return r.step_time.value() == 0 ? 0 : Ratio(t, r.step_time);
}

// Copies to and from the memory of the host: their bytes, and how long the main stream executed
// or waited for them.
struct HostCopies {
  Bytes bytes{0};
  Picoseconds exposed{0};
};

HostCopies HostCopiesOf(const Report& r) {
  HostCopies host;
  for (const OpReport& o : r.ops) {
    // Every byte passes HBM once.
    if (o.category.ends_with(" host")) host.bytes += o.hbm_bytes;
    if (o.engine == "host") host.exposed += o.total;
  }
  return host;
}

// Returns the TPU compiler's own estimate of its kernels; empty for programs that it did not write.
std::string EstimateText(const Report& r) {
  Picoseconds estimated(0), simulated(0);
  int64_t with = 0, without = 0;
  for (const OpReport& o : r.ops) {
    if (o.compiler_estimate > Picoseconds(0)) {
      estimated += o.compiler_estimate;
      simulated += o.total;
      with += o.count;
    } else if (o.engine == "tensor_core" && o.flops > Flops(0)) {
      without += o.count;
    }
  }
  if (with == 0) return "";
  std::string text = fmt::format("{} for {}, which take {} here", TimeText(estimated),
                                 Plural(with, "kernel"), TimeText(simulated));
  if (without > 0) text += fmt::format("; none for {}", Plural(without, "kernel"));
  return text;
}

// Returns how far the step may be from that of a simulation of every device; empty if it is exact.
std::string ExactnessText(const Report& r) {
  if (!r.folding.is_approximate) return "";
  return fmt::format("within {:.2g}%: {} classes stand for {} devices; --exact-under asks for more",
                     100 * Share(r.folding.error_bound, r), r.folding.device_classes, r.devices);
}

Lines Head(const Report& r, size_t width) {
  Lines lines;
  lines.push_back(Field(
      "workload", fmt::format("{} on {}: {}, {}, {}", r.workload, r.config, Plural(r.chips, "chip"),
                              Plural(r.devices, "device"), Plural(r.partitions, "partition"))));
  lines.push_back(Field("device order", r.device_order.empty() ? "-" : r.device_order));
  if (r.compiler != configs::CompilerName()) {
    lines.push_back(Field("compiler", fmt::format("policy of {}", r.compiler)));
  }
  // Narrower formats than bf16 may have more than its peak.
  const char* of = std::max(r.mfu, r.hfu) > 1 ? " of the bf16 peak" : "";
  lines.push_back(Field(
      "step time", fmt::format("{}   MFU {}   HFU {}{}   {} per device", TimeText(r.step_time),
                               PercentText(r.mfu), PercentText(r.hfu), of, FlopsText(r.flops))));
  if (const std::string exactness = ExactnessText(r); !exactness.empty()) {
    lines.push_back(Field("exactness", exactness));
  }
  if (const RoutingReport& routed = r.routing; !routed.routing.empty()) {
    lines.push_back(Field(
        "routing",
        fmt::format("{}: device {} of its group gets {:.2f} times the mean rows; balanced {}, so "
                    "it costs {}",
                    routed.routing, routed.hot_device, routed.imbalance,
                    TimeText(routed.balanced_step),
                    PercentText(Ratio(r.step_time, routed.balanced_step) - 1))));
  }
  if (!r.error_bar.text.empty()) lines.push_back(Field("validated", r.error_bar.text));
  std::string bounds = fmt::format("compute {}, hbm {}, ici {}", TimeText(r.bound.compute),
                                   TimeText(r.bound.hbm), TimeText(r.bound.ici));
  if (r.bound.host.value() > 0) bounds += ", host " + TimeText(r.bound.host);
  if (r.bound.dcn.value() > 0) bounds += ", dcn " + TimeText(r.bound.dcn);
  lines.push_back(Field("lower bounds", bounds));
  lines.push_back(Field("bound by", BindingText(r.critical_path)));
  lines.push_back(
      Field("compute", fmt::format("{} busy ({}): MXU {}, VPU {}", TimeText(r.compute_busy),
                                   PercentText(Share(r.compute_busy, r)), TimeText(r.mxu_busy),
                                   TimeText(r.vpu_busy))));
  if (const std::string estimate = EstimateText(r); !estimate.empty()) {
    lines.push_back(Field("estimates", estimate));
  }
  lines.push_back(Field("communication",
                        fmt::format("{} exposed ({}), {} hidden under compute", TimeText(r.exposed),
                                    PercentText(Share(r.exposed, r)), TimeText(r.hidden))));
  if (const HostCopies host = HostCopiesOf(r); host.bytes > Bytes(0)) {
    lines.push_back(Field("host memory",
                          fmt::format("{} exposed ({}), {} copied", TimeText(host.exposed),
                                      PercentText(Share(host.exposed, r)), BytesText(host.bytes))));
  }
  const double used = r.usable.hbm().value() == 0 ? 0 : Ratio(r.peak.hbm(), r.usable.hbm());
  std::string memory = fmt::format("peak {} of {} usable HBM ({})", BytesText(r.peak.hbm()),
                                   BytesText(r.usable.hbm()), PercentText(used));
  for (const configs::Memory& of : configs::kMemories) {
    const Bytes usable = r.usable.In(of.space);
    if (of.space == configs::MemorySpace::kHbm || usable == Bytes(0)) continue;
    memory +=
        fmt::format(", {} of {} {}", BytesText(r.peak.In(of.space)), BytesText(usable), of.title);
  }
  if (r.memory_at_peak.time > Picoseconds(0) && r.step_time > Picoseconds(0)) {
    memory += fmt::format(" at {} of the step", PercentText(Share(r.memory_at_peak.time, r)));
  }
  // As many owners as fit, the largest first.
  memory = Field("memory", memory);
  const char* before = ": ";
  for (const auto& [owner, bytes] : r.memory_at_peak.by_owner) {
    const std::string more =
        fmt::format("{}{} {}", before, owner, PercentText(Ratio(bytes, r.peak.hbm())));
    if (memory.size() + more.size() > width) break;
    memory += more;
    before = ", ";
  }
  lines.push_back(memory);
  return lines;
}

// On terminals that are narrower than the screen that this is made for, fields take more lines
// instead of losing figures.
Lines Fitted(const Lines& fields, size_t width) {
  if (width >= kSummaryColumns) return fields;
  Lines lines;
  for (const std::string& field : fields) Append(lines, WrappedLines(field, kFieldColumn, width));
  return lines;
}

std::string Shown(std::string_view what, size_t shown, size_t all) {
  return shown == all ? std::string(what) : fmt::format("{} ({} of {})", what, shown, all);
}

// Simulated is the mean of the executions, to stand beside the other two.
Lines CollectiveTable(const std::vector<CollectiveGroup>& groups, size_t rows, size_t width) {
  rows = std::min(rows, groups.size());
  if (rows == 0) return {};
  std::vector<std::vector<std::string>> table = {{Shown("collective", rows, groups.size()), "count",
                                                  "bytes", "simulated", "expected", "bound",
                                                  "exposed", "<algorithm"}};
  for (size_t i = 0; i < rows; ++i) {
    const CollectiveReport& c = groups[i].sum;
    const int64_t members = groups[i].members;
    const std::string name = members > 1 ? fmt::format("{} ({})", c.name, members) : c.name;
    table.push_back({name, fmt::format("{}", c.count), BytesText(c.bytes),
                     TimeText(c.total / c.count), TimeText(c.expected),
                     c.bound > Picoseconds(0) ? TimeText(c.bound) : "-",
                     PercentText(c.total.value() == 0 ? 0 : Ratio(c.exposed, c.total)),
                     c.algorithm});
  }
  return TableLines(table, width);
}

// Why those are exposed that are most.
Lines Exposed(const std::vector<CollectiveGroup>& groups, size_t rows) {
  std::vector<const CollectiveReport*> exposed;
  for (const CollectiveGroup& group : groups) {
    if (!group.sum.exposed_by.empty()) exposed.push_back(&group.sum);
  }
  std::ranges::stable_sort(exposed, std::greater<>(),
                           [](const CollectiveReport* c) { return c->exposed_by[0].time; });
  Lines lines;
  for (size_t n = 0; n < std::min(rows, exposed.size()); ++n) {
    const OverlapReport& by = exposed[n]->exposed_by[0];
    lines.push_back(Field("exposed", fmt::format("{}: {}, {}: {}", exposed[n]->name,
                                                 TimeText(by.time), by.what, by.text)));
  }
  return lines;
}

// Warnings before assumptions; the last line counts what did not fit.
Lines Notes(const Report& r, size_t room) {
  Lines all;
  for (const std::string& w : r.warnings) all.push_back(Field("warning", w));
  for (const std::string& a : r.assumptions) all.push_back(Field("assumed", a));
  if (all.size() <= room) return all;
  const size_t left_out = all.size() - (room - 1);
  all.resize(room - 1);
  all.push_back(
      Field("", fmt::format("... and {} more assumptions or warnings in --report", left_out)));
  return all;
}

}  // namespace

std::string Summarize(const Report& r, const SummaryOptions& options) {
  // Nine or ten lines of head and two blank ones leave 12; tables, with two lines for their heads
  // and one for all other rows, take what they need up to their share, notes what is left.
  constexpr size_t kRows = 4, kCollectives = 3, kExposed = 2, kNotes = 4;
  Lines lines = Fitted(Head(r, options.width), options.width);
  size_t top = options.top, collectives = options.top;
  if (top == 0) top = r.collectives.empty() ? kRows + kCollectives + kExposed : kRows;
  const Lines rollup = TableLines(RollupCells(r, options.by, top), options.width);
  if (collectives == 0)
    collectives = kCollectives + (top + 1 - std::min(top + 1, rollup.size() - 1));
  Append(lines, {""});
  Append(lines, rollup);
  const std::vector<CollectiveGroup> groups = GroupCollectives(r.collectives);
  const Lines table = CollectiveTable(groups, collectives, options.width);
  if (!table.empty()) lines.emplace_back();
  Append(lines, table);
  // Of a full screen the last line says at least how many notes there are.
  const auto left = [&lines] {
    return std::max<size_t>(kSummaryLines, lines.size() + 1) - lines.size();
  };
  const bool one_screen = options.top == 0 && options.width >= kSummaryColumns;
  // The first warning is worth more than the second reason.
  const size_t notes = r.warnings.empty() ? 1 : 2;
  const size_t exposed =
      one_screen ? std::min(kExposed, left() - std::min(left(), notes)) : kExposed;
  Append(lines, Fitted(Exposed(groups, exposed), options.width));
  Append(lines, Notes(r, one_screen ? left() : kNotes));

  std::string text;
  for (const std::string& line : lines) text += Clip(line, options.width) + "\n";
  return text;
}

}  // namespace tpusim::results
