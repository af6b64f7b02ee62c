#include "configs/chip_schema.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "configs/names.h"
#include "configs/status_macros.h"

namespace tpusim::configs {
namespace {

// Members hold units as types; JSON holds plain numbers in the unit of the row.
double ToNumber(int64_t v) { return static_cast<double>(v); }
double ToNumber(double v) { return v; }
double ToNumber(Picoseconds v) { return ToNanoseconds(v); }
template <typename Tag, typename Rep>
double ToNumber(Quantity<Tag, Rep> v) {
  return static_cast<double>(v.value());
}

void FromNumber(double number, int64_t* v) { *v = std::llround(number); }
void FromNumber(double number, double* v) { *v = number; }
void FromNumber(double number, Picoseconds* v) { *v = Picoseconds(std::llround(number * 1e3)); }
template <typename Tag, typename Rep>
void FromNumber(double number, Quantity<Tag, Rep>* v) {
  if constexpr (std::is_integral_v<Rep>) {
    *v = Quantity<Tag, Rep>(std::llround(number));
  } else {
    *v = Quantity<Tag, Rep>(number);
  }
}

template <typename T>
constexpr bool kIsInteger = std::is_same_v<T, int64_t> || std::is_same_v<T, Bytes>;

struct Range {
  double minimum;
  double maximum;
};
constexpr Range kCount = {1, 1 << 20};
constexpr Range kCountOrNone = {0, 1 << 20};
constexpr Range kBytes = {1, 1e15};
constexpr Range kBytesOrNone = {0, 1e15};
constexpr Range kRate = {1, 1e18};
constexpr Range kRateOrNone = {0, 1e18};
constexpr Range kClock = {1e6, 1e11};
constexpr Range kFlops = {1e6, 1e19};
constexpr Range kTime = {0, 1e9};  // up to a second
constexpr Range kShare = {0.01, 1};
constexpr Range kPasses = {0.01, 1000};
constexpr Range kCyclesOrNone = {0, 1e6};
constexpr Range kPerCycle = {0.001, 1e6};

// What reads the parameter stands at the end, unless every program does.
#define ROW(path, unit, range, member, description, ...)                               \
  Parameter {                                                                          \
    path, unit, description, range.minimum, range.maximum,                             \
        kIsInteger<std::remove_cvref_t<decltype(std::declval<ChipParams&>().member)>>, \
        [](const ChipParams& c) { return ToNumber(c.member); },                        \
        [](ChipParams& c, double number) { FromNumber(number, &c.member); }, {         \
      __VA_ARGS__                                                                      \
    }                                                                                  \
  }

std::vector<Parameter> MakeTable() {
  using enum Work;
  return {
      // clang-format off
      ROW("chip.tensor_cores", "count", kCount, tensor_cores, "TensorCores per chip"),
      ROW("chip.devices", "count", kCount, devices, "what JAX counts, per chip"),
      ROW("chip.clock_hz", "hertz", kClock, clock, "TensorCore clock"),
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
      ROW("chip.vpu.alus_per_lane", "count", kCount, vpu.alus_per_lane, "vector ALU slots per bundle"),
      ROW("chip.vpu.eup_slots", "count", kCount, vpu.eup_slots, "transcendental slots per bundle", kTranscendentals),
      ROW("chip.vpu.load_slots", "count", kCount, vpu.load_slots, "vector registers loaded from VMEM per cycle"),
      ROW("chip.vpu.store_slots", "count", kCount, vpu.store_slots, "vector registers stored to VMEM per cycle"),
      ROW("chip.vpu.xlu_count", "count", kCount, vpu.xlu_count, "cross-lane units", kCrossLaneMoves),
      ROW("chip.vpu.eup_cycles_per_vreg", "cycles", kPerCycle, vpu.eup_cycles_per_vreg, "cycles of one transcendental on a register", kTranscendentals),
      ROW("chip.vpu.xlu_cycles_per_vreg", "cycles", kPerCycle, vpu.xlu_cycles_per_vreg, "cycles of one cross-lane operation on a register, per unit", kCrossLaneMoves),
      ROW("chip.vpu.latency_cycles", "cycles", kCountOrNone, vpu.latency_cycles, "operand to result of a vector ALU"),
      ROW("chip.vmem.bytes", "bytes", kBytes, vmem.bytes, "capacity per core", kVmemArrays),
      ROW("chip.vmem.scoped_bytes", "bytes", kBytes, vmem.scoped_bytes, "budget for the windows of one kernel"),
      ROW("chip.cmem.bytes", "bytes", kBytesOrNone, cmem.bytes, "on-chip memory beside VMEM, per chip; 0 if there is none", kCmemArrays),
      ROW("chip.cmem.bytes_per_second", "bytes_per_second", kRateOrNone, cmem.bytes_per_second, "peak per chip, reads and writes together; 0 if there is none", kCmemTransfers),
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

// "whole_bytes_from_1_to_1e+15"; equal names are equal definitions.
std::string DefinitionName(const Parameter& parameter) {
  return fmt::format("{}{}_from_{}_to_{}", parameter.integer ? "whole_" : "", parameter.unit,
                     FormatNumber(parameter.minimum), FormatNumber(parameter.maximum));
}

}  // namespace

namespace {

// What a chip file may leave out, and what holds then.
constexpr std::pair<const char*, const char*> kFallbacks[] = {
    {"chip.cmem.bytes_per_second", "0"},
    {"chip.dma.write_start_latency_ns", "chip.dma.start_latency_ns"},
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

std::string FormatNumber(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e12) return fmt::format("{:.0f}", value);
  for (int precision = 1; precision < 17; ++precision) {
    const std::string text = fmt::format("{:.{}g}", value, precision);
    // Not std::stod, which throws for numbers as small as 1e-310.
    if (std::strtod(text.c_str(), nullptr) == value) return text;
  }
  return fmt::format("{:.17g}", value);
}

std::string ChipJsonSchema() {
  using Json = nlohmann::ordered_json;
  Json root = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "tpusim chip"},
      {"description",
       "A chip of configs/chips, or one of your own that names a base and gives what differs."},
      {"type", "object"},
      {"additionalProperties", false},
      {"properties",
       {{"$schema", {{"type", "string"}}},
        {"name", {{"type", "string"}}},
        {"description", {{"type", "string"}}},
        {"base", {{"type", "string"}, {"description", "chip to start from"}}}}}};
  // One definition per unit and range; parameters refer to them.
  Json definitions = Json::object();
  for (const Parameter& parameter : ChipParameters()) {
    const std::string definition = DefinitionName(parameter);
    const Json number = {{"type", parameter.integer ? "integer" : "number"},
                         {"minimum", parameter.minimum},
                         {"maximum", parameter.maximum}};
    const Json entry = {{"type", "object"},
                        {"additionalProperties", false},
                        {"required", {"value", "unit", "source"}},
                        {"properties",
                         {{"value", number},
                          {"unit", {{"const", parameter.unit}}},
                          {"source", {{"type", "string"}, {"minLength", 1}}},
                          {"note", {{"type", "string"}}}}}};
    definitions[definition] = {{"anyOf", Json::array({entry, number})}};
    // Walk to the object that holds the last component.
    Json* at = &root;
    std::string_view rest = parameter.path;
    for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      Json& child = (*at)["properties"][std::string(rest.substr(0, dot))];
      if (child.is_null()) child = {{"type", "object"}, {"additionalProperties", false}};
      at = &child;
      rest.remove_prefix(dot + 1);
    }
    (*at)["properties"][std::string(rest)] = {{"description", parameter.description},
                                              {"$ref", "#/$defs/" + definition}};
  }
  const Json lengths = {{"type", "array"},
                        {"items", {{"type", "integer"}, {"minimum", 1}}},
                        {"minItems", 2},
                        {"maxItems", 3}};
  const Json text = {{"type", "string"}};
  root["properties"]["topology"] = {
      {"description", "which slices exist and which of their axes close into rings"},
      {"type", "object"},
      {"additionalProperties", false},
      {"properties",
       {{"axes", {{"type", "integer"}, {"minimum", 2}, {"maximum", 3}}},
        {"max", lengths},
        {"wrap", {{"enum", {"never", "full_pod", "axis_length_16", "whole_cubes_of_4"}}}},
        {"twisted", {{"type", "boolean"}}},
        {"slices",
         {{"type", "array"},
          {"items", {{"type", "string"}, {"pattern", "^[0-9]+x[0-9]+(x[0-9]+)?$"}}}}},
        {"source", text},
        {"note", text}}}};
  root["properties"]["device_order"] = {
      {"description", "how make_mesh of JAX places a logical mesh on this chip"},
      {"type", "object"},
      {"additionalProperties", false},
      {"properties",
       {{"enumeration_tile", lengths},
        {"splits_physical_axes", {{"type", "boolean"}}},
        {"general", {{"enum", {"torus", "listed"}}}},
        {"trays",
         {{"type", "array"},
          {"items",
           {{"type", "object"},
            {"additionalProperties", false},
            {"required", {"order"}},
            {"properties",
             {{"shape", lengths},
              {"within", lengths},
              {"last_axis_only", {{"type", "boolean"}}},
              {"repeats", {{"type", "integer"}, {"minimum", 1}}},
              {"numbering", {{"enum", {"chips", "listed"}}}},
              {"one_axis_only", {{"type", "boolean"}}},
              {"order",
               {{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}}}}}}}}},
        {"source", text},
        {"note", text}}}};
  const auto flag = nlohmann::ordered_json{{"type", "boolean"}};
  const auto limit = nlohmann::ordered_json{{"type", "integer"}, {"minimum", 0}};
  const auto count = nlohmann::ordered_json{{"type", "integer"}, {"minimum", 1}};
  root["properties"]["compiler"] = {
      {"description",
       "what the TPU compiler does on this chip, where that is not a matter of cost"},
      {"type", "object"},
      {"additionalProperties", false},
      {"properties",
       {{"like", text},
        {"known_slices",
         {{"type", "array"},
          {"items", {{"type", "string"}, {"pattern", "^[0-9]+x[0-9]+(x[0-9]+)?$"}}}}},
        {"planes_are_rings", flag},
        {"gathers_as_sums", {{"enum", {"never", "planes_of_8", "cubes"}}}},
        {"routed_above_chips", limit},
        {"offloads_collectives", flag},
        {"permutes_in_flight", limit},
        {"gathers_in_flight", limit},
        {"copies_in_flight", limit},
        {"host_copies_in_flight", limit},
        {"windowed_flops_per_byte", limit},
        {"products_in_vmem", flag},
        {"window_registers", count},
        {"relayout_window_registers", count},
        {"lone_window_registers", count},
        {"uncut_bytes", limit},
        {"source", text},
        {"note", text}}}};
  root["$defs"] = definitions;
  return root.dump(2) + "\n";
}

}  // namespace tpusim::configs
