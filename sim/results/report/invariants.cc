#include "sim/results/report/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "configs/memory.h"
#include "configs/status_macros.h"

namespace tpusim::results {
namespace {

using configs::Direction;

absl::Status Broken(const std::string& what) {
  return absl::InternalError("invariant broken: " + what);
}

// Rates are real numbers and times are whole picoseconds: a bound may come out
// a rounding above a step that meets it exactly.
Picoseconds WithSlack(Picoseconds t) { return t + Picoseconds(2 + t.value() / 1'000'000'000); }

absl::Status NotBelow(Picoseconds step, Picoseconds bound, std::string_view name) {
  if (bound <= WithSlack(step)) return absl::OkStatus();
  return Broken(fmt::format("the step takes {} ps, less than its {} bound of {} ps", step.value(),
                            name, bound.value()));
}

struct Order {
  std::string_view smaller_name;
  Picoseconds smaller;
  std::string_view larger_name;
  Picoseconds larger;
};

absl::Status CheckTimes(const sim::Timeline& timeline) {
  for (size_t i = 0; i < timeline.devices.size(); ++i) {
    const sim::DeviceTotals& d = timeline.devices[i];
    const std::array<Order, 6> orders = {
        Order{"finish", d.finish, "step time", timeline.step_time},
        Order{"MXU busy", d.mxu_busy, "compute busy", d.compute_busy},
        Order{"VPU busy", d.vpu_busy, "compute busy", d.compute_busy},
        Order{"compute busy", d.compute_busy, "MXU busy plus VPU busy", d.mxu_busy + d.vpu_busy},
        Order{"exposed communication", d.exposed, "time of collectives", d.collective},
        Order{"compute busy plus exposed communication", d.compute_busy + d.exposed, "finish",
              d.finish},
    };
    for (const Order& o : orders) {
      if (o.smaller > o.larger || o.smaller < Picoseconds(0)) {
        return Broken(fmt::format("device {}: {} is {} ps, {} {} ps", i, o.smaller_name,
                                  o.smaller.value(), o.larger_name, o.larger.value()));
      }
    }
  }
  const Picoseconds last = timeline.devices[timeline.critical_device].finish;
  if (last != timeline.step_time) {
    return Broken(fmt::format("the step takes {} ps, its critical device {} finishes at {} ps",
                              timeline.step_time.value(), timeline.critical_device, last.value()));
  }
  return absl::OkStatus();
}

absl::Status CheckHbm(const configs::Config& config, const sim::Timeline& timeline) {
  for (size_t i = 0; i < timeline.devices.size(); ++i) {
    for (const configs::MemorySpace space : configs::kRatedSpaces) {
      const configs::Memory& memory = configs::MemoryOf(space);
      const Bytes moved = timeline.devices[i].moved.In(space);
      if (moved.value() == 0) continue;
      // The nominal rate of HBM, of which transfers reach a share.
      const BytesPerSecond rate = space == configs::MemorySpace::kHbm
                                      ? config.chip.hbm.bytes_per_second
                                      : memory.rate(config.chip);
      const Picoseconds least = TransferTime(moved, rate);
      if (least <= WithSlack(timeline.step_time)) continue;
      return Broken(fmt::format("device {}: {} bytes through {} in {} ps is {:.3f} of its rate", i,
                                moved.value(), memory.title, timeline.step_time.value(),
                                Ratio(least, timeline.step_time)));
    }
  }
  return absl::OkStatus();
}

// Checks that the time of a collective is either hidden by an operation or has a reason to be
// exposed.
absl::Status CheckOverlap(const isa::ProgramInfo& info, const sim::Timeline& timeline) {
  std::vector<Picoseconds> hidden(timeline.ops.size());
  for (const sim::Cover& cover : timeline.covers) hidden[cover.collective] += cover.time;
  for (size_t op = 0; op < timeline.ops.size(); ++op) {
    const sim::OpTotals& t = timeline.ops[op];
    if (info.ops[op].collective < 0) continue;
    if (t.waited + t.behind > t.exposed || hidden[op] != t.total - t.exposed) {
      return Broken(
          fmt::format("{}: {} ps in flight, {} exposed, of which it was waited for in {} "
                      "and others in {}; operations hid {}",
                      info.ops[op].name, t.total.value(), t.exposed.value(), t.waited.value(),
                      t.behind.value(), hidden[op].value()));
    }
  }
  return absl::OkStatus();
}

// The main stream does one thing at a time, in the step: every table of the roll-up adds up to it.
absl::Status CheckRollups(const sim::Timeline& timeline, const Report& report) {
  Picoseconds in_operations{0};
  for (const sim::OpTotals& t : timeline.ops) in_operations += t.main;
  if (in_operations > timeline.step_time) {
    return Broken(fmt::format("operations of the main stream take {} ps of a step of {}",
                              in_operations.value(), timeline.step_time.value()));
  }
  for (const RollupBy by : kRollups) {
    Picoseconds sum{0};
    for (const RollupRow& row : report.rollups.Of(by)) sum += row.time;
    if (sum != timeline.step_time) {
      return Broken(fmt::format("the roll-up by {} adds up to {} ps in a step of {}",
                                RollupName(by), sum.value(), timeline.step_time.value()));
    }
  }
  return absl::OkStatus();
}

// No part of a table is more than what it is a part of.
absl::Status CheckTables(const Report& report) {
  const auto within = [&](std::string_view what, const std::string& name, Picoseconds part,
                          Picoseconds whole) -> absl::Status {
    if (Picoseconds(0) <= part && part <= whole) return absl::OkStatus();
    return Broken(fmt::format("{} {}: {} ps of {}", what, name, part.value(), whole.value()));
  };
  for (const ScopeReport& scope : report.scopes) {
    RETURN_IF_ERROR(within("scope", scope.scope, scope.total, report.step_time));
  }
  for (const OpReport& op : report.ops) {
    if (op.engine != "tensor_core") continue;  // others may be in flight side by side
    RETURN_IF_ERROR(within("operation", op.name, op.total, report.step_time));
  }
  for (const CollectiveReport& c : report.collectives) {
    RETURN_IF_ERROR(within("exposed time of", c.name, c.exposed, c.total));
    RETURN_IF_ERROR(within("bound of", c.name, c.bound * c.count, WithSlack(c.total)));
  }
  Picoseconds path(0);
  for (const Picoseconds part : report.critical_path) path += part;
  return within("the critical path", "of the step", path, report.step_time);
}

// Nothing that is there at once takes more than there is.
absl::Status CheckMemory(const Report& report) {
  const auto within = [](std::string_view what, Bytes part, std::string_view of,
                         Bytes whole) -> absl::Status {
    if (Bytes(0) <= part && part <= whole) return absl::OkStatus();
    return Broken(fmt::format("{}: {} bytes of {} of {}", what, part.value(), whole.value(), of));
  };
  for (const configs::Memory& memory : configs::kMemories) {
    if (!memory.planned) continue;
    RETURN_IF_ERROR(within(memory.title, report.peak.In(memory.space), "usable memory",
                           report.usable.In(memory.space)));
  }
  Bytes arrays(0);
  for (const isa::LiveArray& array : report.memory_at_peak.arrays) arrays += array.bytes;
  RETURN_IF_ERROR(within("arrays in HBM", arrays, "its peak", report.peak.hbm()));
  const isa::VmemAtPeak& vmem = report.vmem_at_peak;
  arrays = vmem.windows;
  for (const isa::LiveArray& array : vmem.arrays) arrays += array.bytes;
  RETURN_IF_ERROR(within("arrays and windows in VMEM", arrays, "its peak", vmem.bytes));
  return within("VMEM", vmem.bytes, "its capacity", vmem.capacity);
}

// Every byte through HBM belongs to an operation of the report.
absl::Status CheckHbmOfOps(const isa::ProgramInfo& info, const sim::Timeline& timeline,
                           const Report& report) {
  const Bytes moved = timeline.devices[timeline.critical_device].moved.hbm();
  Bytes of_ops{0};
  for (const OpReport& op : report.ops) of_ops += op.hbm_bytes;
  // The machine carries real numbers.
  const int64_t slack = 16 + moved.value() / 1'000'000;
  if (info.hbm_bytes.value() > moved.value() + slack) {
    return Broken(fmt::format("the kernels move {} bytes through HBM, only {} went there",
                              info.hbm_bytes.value(), moved.value()));
  }
  if (std::abs(moved.value() - of_ops.value()) <= slack) return absl::OkStatus();
  return Broken(fmt::format("{} bytes went through HBM, operations account for {}", moved.value(),
                            of_ops.value()));
}

Direction Opposite(Direction d) { return configs::MakeDirection(AxisOf(d), !IsPlus(d)); }

absl::Status CheckLinks(const configs::Config& config, const sim::Timeline& timeline,
                        const Report& report) {
  const configs::Topology& topology = config.topology;
  const auto of_chip = [&](auto member, int64_t chip, Direction d) {
    Bytes sum{0};
    for (int64_t i = 0; i < topology.devices_per_chip(); ++i) {
      const int64_t device = chip * topology.devices_per_chip() + i;
      sum += (timeline.devices[device].*member)[static_cast<int>(d)];
    }
    return sum;
  };
  for (const LinkReport& link : report.links) {
    if (link.bytes.value() == 0) continue;
    const Picoseconds least = TransferTime(link.bytes, config.chip.ici.link_bytes_per_second);
    if (least <= WithSlack(timeline.step_time)) continue;
    return Broken(fmt::format("link {} of chip {} is used {:.6f} of its rate",
                              DirectionName(link.direction), link.chip, link.utilization));
  }
  for (int64_t chip = 0; chip < topology.chips(); ++chip) {
    for (int i = 0; i < configs::kDirections; ++i) {
      const Direction d = static_cast<Direction>(i);
      const Bytes sent = of_chip(&sim::DeviceTotals::sent, chip, d);
      if (!topology.HasLink(chip, d) && sent.value() > 0) {
        return Broken(fmt::format("chip {} sent {} bytes to {}, where it has no link", chip,
                                  sent.value(), DirectionName(d)));
      }
      const Bytes received = of_chip(&sim::DeviceTotals::received, chip, d);
      const int64_t source =
          topology.HasLink(chip, Opposite(d)) ? topology.Neighbour(chip, Opposite(d)) : -1;
      const Bytes expected = source < 0 ? Bytes(0) : of_chip(&sim::DeviceTotals::sent, source, d);
      if (received != expected) {
        return Broken(
            fmt::format("chip {} received {} bytes over links of direction {}, {} were sent", chip,
                        received.value(), DirectionName(d), expected.value()));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInvariants(const configs::Config& config, const isa::ProgramInfo& info,
                             const sim::Timeline& timeline, const Report& report) {
  RETURN_IF_ERROR(CheckTimes(timeline));
  if (report.step_time < Picoseconds(0)) {
    return Broken(fmt::format("the step takes {} ps", report.step_time.value()));
  }
  RETURN_IF_ERROR(NotBelow(report.step_time, report.bound.compute, "compute"));
  RETURN_IF_ERROR(NotBelow(report.step_time, report.bound.hbm, "HBM"));
  RETURN_IF_ERROR(CheckHbm(config, timeline));
  RETURN_IF_ERROR(CheckOverlap(info, timeline));
  RETURN_IF_ERROR(CheckHbmOfOps(info, timeline, report));
  RETURN_IF_ERROR(CheckLinks(config, timeline, report));
  RETURN_IF_ERROR(NotBelow(report.step_time, report.bound.ici, "ICI"));
  RETURN_IF_ERROR(NotBelow(report.step_time, report.bound.host, "PCIe"));
  RETURN_IF_ERROR(NotBelow(report.step_time, report.bound.dcn, "DCN"));
  RETURN_IF_ERROR(CheckRollups(timeline, report));
  RETURN_IF_ERROR(CheckTables(report));
  RETURN_IF_ERROR(CheckMemory(report));
  if (info.model_flops > info.hardware_flops) {
    return Broken(fmt::format("{} model FLOPs are more than the {} of all arithmetic",
                              info.model_flops.value(), info.hardware_flops.value()));
  }
  return absl::OkStatus();
}

}  // namespace tpusim::results
