#include "configs/chip_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "configs/names.h"
#include "configs/parameter_row.h"
#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

constexpr ValueRange kBytes = {1, 1e15};
constexpr ValueRange kRate = {1, 1e18};
constexpr ValueRange kRateOrNone = {0, 1e18};
constexpr ValueRange kClock = {1e6, 1e11};
constexpr ValueRange kFlops = {1e6, 1e19};
constexpr ValueRange kTime = {0, 1e9};  // up to a second
constexpr ValueRange kShare = {0.01, 1};
constexpr ValueRange kPasses = {0.01, 1000};
constexpr ValueRange kCyclesOrNone = {0, 1e6};
constexpr ValueRange kPerCycle = {0.001, 1e6};

#define ROW TPUSIM_PARAMETER

std::vector<Parameter> MakeTable() {
  using enum MachineWork;
  return {
      // clang-format off
      ROW("chip.tensor_cores", "count", kCount, tensor_cores, "TensorCores per chip"),
      ROW("chip.devices", "count", kCount, devices, "what JAX counts, per chip"),
      ROW("chip.clock_hz", "hertz", kClock, clock, "TensorCore clock, in the performance state that is taken by default"),
      ROW("chip.fastest_clock_hz", "hertz", kClock, fastest_clock, "... in the fastest state, which xla_tpu_dvfs_p_state=7 takes; as by default if not given"),
      ROW("chip.peak_bf16_flops_per_second", "flops_per_second", kFlops, peak_bf16, "published peak per chip; MFU is against it"),
      ROW("chip.mxu.count", "count", kCount, mxu.count, "systolic arrays per TensorCore", kProducts),
      ROW("chip.mxu.rows", "count", kCount, mxu.rows, "contracting extent of one array", kProducts),
      ROW("chip.mxu.columns", "count", kCount, mxu.columns, "output extent of one array", kProducts),
      ROW("chip.mxu.lhs_rows_per_cycle", "per_cycle", kPerCycle, mxu.lhs_rows_per_cycle, "LHS rows that enter one array per cycle", kProducts),
      ROW("chip.mxu.weight_rows_per_cycle", "per_cycle", kPerCycle, mxu.weight_rows_per_cycle, "rows of the next weight tile loaded per cycle", kProducts),
      ROW("chip.mxu.result_latency_cycles", "cycles", kCountOrNone, mxu.result_latency_cycles, "first LHS row in to its complete result row out", kProducts),
      ROW("chip.mxu.efficiency", "ratio", kShare, mxu.efficiency, "share of the arrays' rate that products keep up, as far as power allows; 1 if not given", kProducts),
      ROW("chip.mxu.passes_bf16", "passes", kPasses, mxu.passes_bf16, "array passes of a bf16 product", kBf16Products),
      ROW("chip.mxu.passes_f32", "passes", kPasses, mxu.passes_f32, "... of f32 at DEFAULT precision", kF32Products),
      ROW("chip.mxu.passes_f32_high", "passes", kPasses, mxu.passes_f32_high, "... of f32 at HIGH precision", kF32HighProducts),
      ROW("chip.mxu.passes_f32_highest", "passes", kPasses, mxu.passes_f32_highest, "... of f32 at HIGHEST precision", kF32HighestProducts),
      ROW("chip.mxu.passes_int8", "passes", kPasses, mxu.passes_int8, "... of int8", kInt8Products),
      ROW("chip.mxu.passes_int4", "passes", kPasses, mxu.passes_int4, "... of int4", kInt4Products),
      ROW("chip.mxu.passes_fp8", "passes", kPasses, mxu.passes_fp8, "... of fp8", kFp8Products),
      ROW("chip.mxu.passes_int32", "passes", kPasses, mxu.passes_int32, "... of int32, made of byte products", kInt32Products),
      ROW("chip.vpu.sublanes", "count", kCount, vpu.sublanes, "rows of a vector register"),
      ROW("chip.vpu.lanes", "count", kCount, vpu.lanes, "columns of a vector register"),
      ROW("chip.vpu.registers", "count", kCount, vpu.registers, "vector registers of a core; larger arrays that a kernel keeps are spilled to VMEM", kKeptArrays),
      ROW("chip.vpu.alus_per_lane", "count", kCount, vpu.alus_per_lane, "vector ALU slots per bundle"),
      ROW("chip.vpu.eup_slots", "count", kCount, vpu.eup_slots, "transcendental slots per bundle", kTranscendentals),
      ROW("chip.vpu.load_slots", "count", kCount, vpu.load_slots, "vector registers loaded from VMEM per cycle"),
      ROW("chip.vpu.store_slots", "count", kCount, vpu.store_slots, "vector registers stored to VMEM per cycle"),
      ROW("chip.vpu.xlu_count", "count", kCount, vpu.xlu_count, "cross-lane units", kCrossLaneMoves),
      ROW("chip.vpu.eup_cycles_per_vreg", "cycles", kPerCycle, vpu.eup_cycles_per_vreg, "cycles of one transcendental on a register", kTranscendentals),
      ROW("chip.vpu.xlu_cycles_per_vreg", "cycles", kPerCycle, vpu.xlu_cycles_per_vreg, "cycles of one cross-lane operation on a register, per unit", kCrossLaneMoves),
      ROW("chip.vpu.latency_cycles", "cycles", kCountOrNone, vpu.latency_cycles, "operand to result of a vector ALU"),
      ROW("chip.vmem.bytes", "bytes", kBytes, vmem.bytes, "capacity per core", kArraysThere),
      ROW("chip.vmem.scoped_bytes", "bytes", kBytes, vmem.scoped_bytes, "budget for the windows of one kernel"),
      ROW("chip.vmem.reserved_bytes", "bytes", kBytes, vmem.reserved_bytes, "kept free of arrays for windows, also while no kernel needs it", kArraysThere),
      ROW("chip.cmem.bytes", "bytes", kBytesOrNone, cmem.bytes, "on-chip memory beside VMEM, per chip; 0 if there is none", kArraysThere),
      ROW("chip.cmem.bytes_per_second", "bytes_per_second", kRateOrNone, cmem.bytes_per_second, "peak per chip, reads and writes together; 0 if there is none", kTransfersThere),
      ROW("chip.hbm.bytes", "bytes", kBytes, hbm.bytes, "capacity per device"),
      ROW("chip.hbm.reserved_bytes", "bytes", kBytesOrNone, hbm.reserved_bytes, "kept by the runtime, not usable by a program"),
      ROW("chip.hbm.bytes_per_second", "bytes_per_second", kRate, hbm.bytes_per_second, "peak per device, reads and writes together"),
      ROW("chip.hbm.efficiency", "ratio", kShare, hbm.efficiency, "sustained share of the peak in large transfers"),
      ROW("chip.dma.start_latency_ns", "ns", kTime, dma.start_latency, "issue to first byte"),
      ROW("chip.dma.write_start_latency_ns", "ns", kTime, dma.write_start_latency, "... of a transfer to HBM; like one from HBM if not given"),
      ROW("chip.dma.turnaround_ns", "ns", kTime, dma.turnaround, "from the last byte of one transfer to the first of a read of the same stream"),
      ROW("chip.dma.granule_bytes", "bytes", kBytes, dma.granule, "smallest unit moved", kIndexedSlices),
      ROW("chip.dma.issue_cycles", "cycles", kCountOrNone, dma.issue_cycles, "scalar cycles taken by one issue", kIndexedSlices),
      ROW("chip.tensor_core.kernel_launch_ns", "ns", kTime, tensor_core.kernel_launch, "fixed cost of one kernel, beside the latency of its first DMA"),
      ROW("chip.tensor_core.product_window_ns", "ns", kTime, tensor_core.product_window, "fixed cost of one kernel around a matrix product, per operand and result in HBM"),
      ROW("chip.tensor_core.loop_buffers", "count", kCount, tensor_core.loop_buffers, "buffers per input window of a kernel without a matrix product"),
      ROW("chip.tensor_core.grid_step_overhead_ns", "ns", kTime, tensor_core.grid_step_overhead, "scalar work of one grid step of a compiler-made kernel"),
      ROW("chip.sparse_core.count", "count", kCountOrNone, sparse_core.count, "SparseCores per chip", kSparseCores),
      ROW("chip.sparse_core.tiles", "count", kCountOrNone, sparse_core.tiles, "vector subcores of one SparseCore", kSparseCores),
      ROW("chip.sparse_core.lanes", "count", kCountOrNone, sparse_core.lanes, "lanes of one tile", kSparseCores),
      ROW("chip.sparse_core.offload_all_gather_bytes", "bytes", kBytesOrNone, sparse_core.offload_all_gather, "smallest operand of an all-gather that the SparseCores run; 0: they run none", kAllGathers),
      ROW("chip.sparse_core.offload_all_reduce_bytes", "bytes", kBytesOrNone, sparse_core.offload_all_reduce, "... of an all-reduce", kAllReduces),
      ROW("chip.sparse_core.offload_reduce_scatter_bytes", "bytes", kBytesOrNone, sparse_core.offload_reduce_scatter, "... of a reduce-scatter", kReduceScatters),
      ROW("ici.link_bytes_per_second", "bytes_per_second", kRate, ici.link_bytes_per_second, "one way, per link, nominal", kTransfers),
      ROW("ici.die_to_die_bytes_per_second", "bytes_per_second", kRateOrNone, ici.die_to_die_bytes_per_second, "one way, between the devices of a chip; 0 if it has one", kTransfers, kTransfersWithinChip),
      ROW("ici.wrapped_efficiency", "ratio", kShare, ici.wrapped_efficiency, "reached share of the nominal rate on a ring", kTransfers, kWrappedAxes),
      ROW("ici.unwrapped_efficiency", "ratio", kShare, ici.unwrapped_efficiency, "reached share of the nominal rate on a line", kTransfers, kUnwrappedAxes),
      ROW("ici.pair_efficiency", "ratio", kShare, ici.pair_efficiency, "reached share of the nominal rate between two chips that are all of an axis", kTransfers, kPairs),
      ROW("ici.hop_latency_ns", "ns", kTime, ici.hop_latency, "one link and router", kTransfers),
      ROW("ici.launch_ns", "ns", kTime, ici.launch, "fixed cost of one collective", kTransfers),
      ROW("ici.reduce_window_bytes", "bytes", kBytes, ici.reduce_window, "sub-chunk of a pipelined reduce-add", kTransfers, kReduceAdds),
      ROW("host.pcie_bytes_per_second", "bytes_per_second", kRate, host.pcie_bytes_per_second, "per chip, each way", kPcie),
      ROW("host.pcie_latency_ns", "ns", kTime, host.pcie_latency, "issue to first byte over PCIe", kPcie),
      ROW("host.dcn_bytes_per_second", "bytes_per_second", kRate, host.dcn_bytes_per_second, "per chip, egress", kSlices, kDcn),
      ROW("host.dcn_efficiency", "ratio", kShare, host.dcn_efficiency, "share of the network cards' rate that collectives reach; 1 if not given", kSlices, kDcn),
      ROW("host.dcn_latency_ns", "ns", kTime, host.dcn_latency, "one way through the data-centre network", kSlices, kDcn),
      ROW("host.chips_x", "count", kCount, host.chips_x, "chips per host in x", kSlices, kDcn),
      ROW("host.chips_y", "count", kCount, host.chips_y, "chips per host in y", kSlices, kDcn),
      ROW("host.chips_z", "count", kCount, host.chips_z, "chips per host in z", kSlices, kDcn),
      // clang-format on
  };
}
#undef ROW

// Parameters that a chip file may leave out, and their values then.
constexpr std::pair<const char*, const char*> kFallbacks[] = {
    {"chip.cmem.bytes_per_second", "0"},
    {"chip.dma.write_start_latency_ns", "chip.dma.start_latency_ns"},
    {"chip.fastest_clock_hz", "chip.clock_hz"},
    {"chip.mxu.efficiency", "1"},
    {"host.dcn_efficiency", "1"},
    {"chip.dma.turnaround_ns", "0"},
    {"chip.tensor_core.product_window_ns", "0"},
    {"chip.tensor_core.loop_buffers", "2"},
};

}  // namespace

const std::vector<Parameter>& ChipParameters() {
  static const auto* table = [] {
    auto* made = new std::vector<Parameter>(MakeTable());
    for (Parameter& parameter : PolicyParameters()) made->push_back(std::move(parameter));
    for (Parameter& parameter : *made) {
      for (const auto& [path, fallback] : kFallbacks) {
        if (parameter.path == path) parameter.fallback = fallback;
      }
    }
    return made;
  }();
  return *table;
}

std::vector<std::string> ParameterPaths() {
  std::vector<std::string> paths;
  for (const Parameter& parameter : ChipParameters()) paths.push_back(parameter.path);
  return paths;
}

const Parameter* FindParameter(std::string_view path) {
  for (const Parameter& parameter : ChipParameters()) {
    if (parameter.path == path) return &parameter;
  }
  return nullptr;
}

std::string NoParameterText(std::string_view path) {
  for (const std::string_view gone : {"ici.links", "chip.sparse_core.tile_bytes"}) {
    if (path == gone) {
      return fmt::format("{} has no effect and is gone: no part of the model depends on it", path);
    }
  }
  return fmt::format("no parameter {}; {}", path,
                     NearestPathText(std::string(path), ParameterPaths()));
}

absl::Status SetParameter(const Parameter& parameter, double value, ChipParams* chip) {
  // Written so that a NaN fails too.
  if (!(value >= parameter.minimum && value <= parameter.maximum)) {
    return UserError(fmt::format("{} = {} is out of range: from {} to {}, in {}", parameter.path,
                                 FormatNumber(value), FormatNumber(parameter.minimum),
                                 FormatNumber(parameter.maximum), parameter.unit));
  }
  if (parameter.integer && value != std::floor(value)) {
    return UserError(fmt::format("{} = {} must be a whole number ({})", parameter.path,
                                 FormatNumber(value), parameter.unit));
  }
  parameter.set(*chip, value);
  return absl::OkStatus();
}

std::string FormatValue(const Parameter& parameter, double value) {
  return parameter.words.empty() ? FormatNumber(value)
                                 : parameter.words[static_cast<size_t>(value)];
}

std::optional<double> ValueOfWord(const Parameter& parameter, std::string_view text) {
  const auto word = std::ranges::find(parameter.words, text);
  if (word == parameter.words.end()) return std::nullopt;
  return static_cast<double>(word - parameter.words.begin());
}

std::string FormatNumber(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e12) return fmt::format("{:.0f}", value);
  for (int precision = 1; precision < 17; ++precision) {
    const std::string text = fmt::format("{:.{}g}", value, precision);
    // Not std::stod, which throws for numbers as small as 1e-310.
    if (std::strtod(text.c_str(), nullptr) == value) return text;
  }
  return fmt::format("{:.17g}", value);
}

}  // namespace tpusim::configs
