// The parameters of one chip, as read from configs/chips/NAME.json.
//
// The JSON file gives every figure with its unit and source; this header is the typed view of it
// that the compiler and the machine share. Field paths equal the JSON paths and the names that
// --set takes ("chip.hbm.bytes_per_second", "ici.hop_latency_ns"): one table in chip_schema.cc
// binds them, so that a parameter cannot exist in one place only.
//
// "Per core" means per TensorCore, "per chip" per package on the torus.
#ifndef TPUSIM_CONFIGS_CHIP_H_
#define TPUSIM_CONFIGS_CHIP_H_

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/policy.h"
#include "configs/units.h"

namespace tpusim::configs {

class Instructions;

struct MxuParams {
  int64_t count = 0;                  // systolic arrays per TensorCore
  int64_t rows = 0;                   // contracting (K) extent of one array
  int64_t columns = 0;                // output (N) extent of one array
  double lhs_rows_per_cycle = 1;      // LHS rows that enter one array per cycle
  double weight_rows_per_cycle = 1;   // rows of the next weight tile loaded per cycle
  int64_t result_latency_cycles = 0;  // first LHS row in to first result row out
  double efficiency = 1;              // share of that rate that a product keeps up
  // Array passes that one product of this format takes, relative to bf16.
  double passes_bf16 = 1;
  double passes_f32 = 1;  // DEFAULT precision: operands rounded to bf16
  double passes_f32_high = 3;
  double passes_f32_highest = 6;
  double passes_int8 = 1;
  double passes_int4 = 1;
  double passes_fp8 = 1;
  double passes_int32 = 10;  // byte products with i + j <= 3
};

struct VpuParams {
  int64_t sublanes = 8;
  int64_t lanes = 128;
  int64_t registers = 64;     // of sublanes x lanes x 32 bit
  int64_t alus_per_lane = 0;  // VALU slots per bundle
  int64_t eup_slots = 1;      // transcendental slots per bundle
  int64_t load_slots = 0;     // vector registers loaded from VMEM per cycle
  int64_t store_slots = 0;
  int64_t xlu_count = 2;
  double eup_cycles_per_vreg = 1;
  double xlu_cycles_per_vreg = 1;
  int64_t latency_cycles = 2;
};

struct VmemParams {
  Bytes bytes;           // per core
  Bytes scoped_bytes;    // budget for the windows of one kernel
  Bytes reserved_bytes;  // kept free of arrays for windows, also while no kernel needs it
};

// On-chip memory beside VMEM, shared by the cores of a chip (v4 and v4i).
struct CmemParams {
  Bytes bytes;                      // per chip; 0: there is none
  BytesPerSecond bytes_per_second;  // per chip, reads and writes share it
};

// Small cores beside the TensorCores, for embeddings and off-loaded collectives.
struct SparseCoreParams {
  int64_t count = 0;  // per chip; 0: there are none
  int64_t tiles = 0;  // vector subcores of one SparseCore
  int64_t lanes = 0;  // of one tile
  // Collectives with an operand at least this large run there; 0: none do.
  Bytes offload_all_gather;
  Bytes offload_all_reduce;
  Bytes offload_reduce_scatter;
};

struct HbmParams {
  Bytes bytes;                      // per device
  Bytes reserved_bytes;             // runtime reserve, not usable by a program
  BytesPerSecond bytes_per_second;  // per device, reads and writes share it
  double efficiency = 1;            // sustained share of the peak for large transfers
};

struct DmaParams {
  Picoseconds start_latency;        // issue of a read to its first byte
  Picoseconds write_start_latency;  // ... of a write
  Picoseconds turnaround;           // last byte of a transfer to the first of a read behind it
  Bytes granule;
  int64_t issue_cycles = 1;  // scalar slots taken by one issue
};

struct TensorCoreParams {
  Picoseconds kernel_launch;       // fixed cost of starting one kernel
  Picoseconds product_window;      // ... and per HBM window of a matrix product
  int64_t loop_buffers = 2;        // input buffers of kernels without a product
  Picoseconds grid_step_overhead;  // scalar work of one pipelined grid step
};

struct IciParams {
  BytesPerSecond link_bytes_per_second;        // one way, nominal
  BytesPerSecond die_to_die_bytes_per_second;  // one way, between the devices of a chip
  double wrapped_efficiency = 1;               // effective rate / nominal on a wrapped axis
  double unwrapped_efficiency = 1;             // ... on an axis without wrap-around
  double pair_efficiency = 1;                  // ... on such an axis of two chips
  Picoseconds hop_latency;
  Picoseconds launch;   // fixed cost of one collective
  Bytes reduce_window;  // sub-chunk of a pipelined reduce-add
};

struct HostParams {
  BytesPerSecond pcie_bytes_per_second;  // per chip, each way
  Picoseconds pcie_latency;
  BytesPerSecond dcn_bytes_per_second;  // per chip, egress
  double dcn_efficiency = 1;            // share of it that collectives reach
  Picoseconds dcn_latency;
  int64_t chips_x = 0, chips_y = 0, chips_z = 1;  // chips per host

  // Returns the rate of the network cards of a host with so many chips, each way.
  BytesPerSecond DcnRate(int64_t chips) const {
    return dcn_bytes_per_second * (dcn_efficiency * static_cast<double>(chips));
  }
};

// Says which axes of a slice close into rings. The rule belongs to the generation: chips without
// optical switches only have the cables of the full pod.
enum class WrapRule {
  kNever,
  kFullPod,       // all axes wrap iff the slice is the full pod
  kAxisLength16,  // an axis wraps iff its length is 16
  kWholeCubes4,   // all axes wrap iff every length is a multiple of 4
};

// The slices that exist. They are listed, not computed: what can be had is a
// decision of the provider, and a slice that does not exist must not simulate.
struct SliceRules {
  int64_t axes = 0;                        // 2 or 3
  std::array<int64_t, 3> max = {1, 1, 1};  // longest axes; on 2D chips the full pod
  WrapRule wrap = WrapRule::kNever;
  // The chip also has n x n x 2n and n x 2n x 2n cube slices as twisted tori ("4x4x8_twisted"),
  // whose short axes wrap with a shift along the long ones.
  bool twisted = false;
  std::vector<std::string> slices;  // "4x2", x first

  // Returns the links of a chip in the largest slice: two per axis, one where that is two chips
  // long.
  int64_t Links() const {
    int64_t links = 0;
    for (const int64_t length : max) links += std::min<int64_t>(length - 1, 2);
    return links;
  }
};

// A release of JAX, "0.11.1"; what follows its three numbers does not count.
struct JaxVersion {
  std::array<int64_t, 3> numbers = {0, 0, 0};
  auto operator<=>(const JaxVersion&) const = default;
};

// Returns the version that a text names; a text without numbers is version 0.
JaxVersion ParseJaxVersion(std::string_view text);

// A fixed order of the devices of one small box, which JAX prefers over the
// general axis assignment because the order walks along links.
struct TrayOrder {
  int64_t devices = 0;
  std::array<int64_t, 3> shape = {0, 0, 0};   // zeros: any box of so many devices
  std::array<int64_t, 3> within = {0, 0, 0};  // zeros: any; else the box must fit in this
  bool one_axis_only = false;                 // only if one mesh axis spans the box
  // The order holds only if the last mesh axis is one tray; then for any number of trays, each in
  // this order.
  bool last_axis_only = false;
  int64_t repeats = 1;  // applies to 1 .. repeats trays, each in this order
  // Positions count chips of the box, x minor, or entries of JAX's own list of
  // devices: host by host, the devices of a chip side by side.
  bool listed = false;
  JaxVersion since;  // make_mesh of earlier versions has no such order
  std::vector<int64_t> order;
};

struct DeviceOrderRules {
  // JAX numbers devices host by host; a mesh of fewer devices takes the first.
  std::array<int64_t, 3> enumeration_tile = {1, 1, 1};
  bool splits_physical_axes = false;  // make_mesh may split an axis of the torus
  // Slices without a tray keep JAX's list of devices, instead of whole axes of the torus per mesh
  // axis.
  bool listed = false;
  // From this version on a mesh axis gets the devices of a chip before the axes of the torus; empty
  // if no version does so.
  std::optional<JaxVersion> chip_first_since;
  std::vector<TrayOrder> trays;
};

struct ChipParams {
  std::string name;  // "v5e"
  std::string description;
  int64_t tensor_cores = 0;  // per chip
  int64_t devices = 0;       // what JAX counts, per chip
  Hertz clock;               // in the performance state that is taken by default
  Hertz fastest_clock;       // in the fastest state
  FlopsPerSecond peak_bf16;  // per chip, published
  MxuParams mxu;
  VpuParams vpu;
  VmemParams vmem;
  CmemParams cmem;
  HbmParams hbm;
  DmaParams dma;
  TensorCoreParams tensor_core;
  SparseCoreParams sparse_core;
  IciParams ici;
  HostParams host;
  SliceRules slices;
  DeviceOrderRules device_order;
  Policy compiler;  // what the TPU compiler decides for this chip
  std::shared_ptr<const Instructions> instructions;  // what operations cost on it

  // Peak of the arrays by their own geometry, per device:
  // 2 * rows * columns * count * rows per cycle * clock, over cores of a device.
  FlopsPerSecond MxuPeak() const;
  // Returns that peak in the fastest performance state, which published peaks are of.
  FlopsPerSecond FastestPeak() const;
  // 2 on a megacore: one device whose two cores share every kernel.
  int64_t CoresPerDevice() const { return tensor_cores / devices; }
  // Arrays that one product can use.
  int64_t MxusPerDevice() const { return mxu.count * CoresPerDevice(); }
};

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_CHIP_H_
