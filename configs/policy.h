// The TPU compiler's choices where costs do not decide.
//
// Limits, thresholds and choices that were read off programs it compiled, or off its flags. Each is
// a row of configs/compilers/NAME.json, with the program that told, the nearest values that were
// seen to behave otherwise, and the compiler's flag if it has one; policy_schema.cc binds the rows
// to these members. `tpusim configs CHIP --compiler` prints them all, --set compiler.NAME=VALUE
// and --xla-flags override them. A pass asks target::Target::policy() and has no such number of
// its own: limits of effort are the passes' own matter.
#ifndef TPUSIM_CONFIGS_POLICY_H_
#define TPUSIM_CONFIGS_POLICY_H_

#include <cstdint>
#include <string>

#include "configs/units.h"

namespace tpusim::configs {

struct Policy {
  // The chip whose compiled programs say which collective algorithms are chosen
  // (workloads/collectives/choice_table.h); "": the fastest are.
  std::string like;

  // --- Collectives ---
  // The least operand of a collective that a flag sends to the SparseCores.
  Bytes offload_least_bytes;
  Bytes single_phase_most_bytes;  // all-reduces in which every member adds up whole operands
  // Members of a ring, and chips along an axis, up to which large all-reduces go each way apart.
  int64_t one_way_ring_most_members = 0, one_way_axis_most_members = 0;
  // A reduce-scatter of the fastest dimension that leaves less of it is an all-reduce and a slice.
  Bytes reduce_scatter_least_row_bytes;
  // Bytes that one all-reduce of several arrays may hold.
  Bytes all_reduce_combined_bytes;
  int64_t all_reduce_combined_arrays = 0;
  // One reduce-scatter of several arrays may take this share of a kernel's VMEM: operands once, and
  // so many buffers of every piece that is left.
  double reduce_scatter_combined_share = 0;
  int64_t reduce_scatter_combined_buffers = 0;
  // Instructions between two uses of one all-gather; above that it is done again.
  int64_t all_gather_reuse_distance = 0;

  // --- Scheduling ---
  // How many transfers of a kind the scheduler lets be in flight. With no gathers in flight all
  // all-gathers are synchronous that no SparseCore runs.
  int64_t permutes_in_flight = 0, gathers_in_flight = 0, copies_in_flight = 0;
  int64_t host_copies_in_flight = 0;  // to and from the host
  // On slices with more chips collective-permutes are synchronous.
  int64_t async_permutes_most_chips = 0;
  // The share of the usable HBM that may be live: above it the scheduler orders for less, and then
  // values are recomputed.
  int64_t scheduled_percent = 0, rematerialized_percent = 0;

  // --- Windowed einsums (passes/collectives/windowed_einsum.h) ---
  // A product and its collective become one where the product has this many FLOPs per byte of the
  // whole array, times two over the group's size; 0: never.
  int64_t windowed_flops_per_byte = 0;
  bool windowed_gathers = false, windowed_scatters = false;  // the two forms
  // Arrays of at least this size become one whatever that ratio; -1: the ratio decides.
  Bytes windowed_least_bytes;
  int64_t windowed_einsum_most_members = 0, windowed_einsum_member_multiple = 0;
  double windowed_einsum_square_factor = 0;  // ... that ratio, for a plane of 2x2; 0: never

  // --- Fusion ---
  int64_t fusion_most_operands = 0;
  // Rows that a block holds whole (kernels/whole_rows.h): how long, how long behind the product
  // that makes them, and of arrays of how many dimensions at least.
  int64_t whole_row_most_elements = 0, whole_row_of_product_most_elements = 0;
  int64_t whole_row_least_rank = 0;

  // --- Kernels ---
  // Registers per core that a window of a kernel without a product does not exceed, however
  // much of VMEM is free: of any; of one that puts data through the cross-lane units; of a
  // single operation whose larger windows do not fit `lone_windows` times.
  int64_t window_registers = 0, relayout_window_registers = 0, lone_window_registers = 0;
  int64_t lone_windows = 0;
  // An operand or result of such a kernel up to this size is not cut.
  Bytes uncut_bytes;
  // The share of VMEM in which arrays of a product stay whole that are broadcast on the way in or
  // reduced on the way out.
  double resident_vmem_share = 0;
  int64_t f64_products = 0;  // of bytes, that make one of 64 bits
  // The rows that the taps of a convolution of few features share in the arrays (product.cc): those
  // of a row of the window up to the sublanes of so many registers, all of them up to this share of
  // an array's rows. In the first case results go through the cross-lane units so often.
  int64_t convolution_row_registers = 0;
  double convolution_packed_share = 0;
  double convolution_permutations = 0;
  double operations_per_tap = 0;  // of a convolution of single features
  double scalars_per_index = 0;   // scalar instructions around the issue of one slice
  // The cost of operations without an instruction of their own (kernels/elementwise_cost.cc):
  // whether
  // results of the transcendental unit are refined on the VALUs; a cosine beside the sine of its
  // angle; a division of 32-bit integers by an array, by a constant, and of one number by another.
  bool transcendentals_refined = false;
  double cosine_beside_sine_operations = 0;
  double integer_division_operations = 0, constant_division_operations = 0;
  double scalar_division_operations = 0;
  // Operations to widen f16 to 32-bit elements, and back before they are packed.
  double f16_widening_operations = 0, f16_narrowing_operations = 0;
  // Bundles per register whose rows come from several, of words and of narrow elements as they lie.
  double row_exchange_bundles = 0, narrow_row_exchange_bundles = 0;

  // --- Memory spaces ---
  // Whether arrays that a matrix product makes may live in VMEM; others may.
  bool products_in_vmem = false;
  double loop_weight = 0;  // how often a loop body counts as run
  // The multiple of a copy's length for which HBM is to be free before its value is needed: the
  // first that is tried, and the least. A prefetch starts no earlier than the third times its
  // length.
  double prefetch_preferred_overlap = 0, prefetch_least_overlap = 0, prefetch_most_overlap = 0;
  double prefetch_least_use = 0;  // the part of it that is read at least
  Bytes heap_alignment_bytes;     // buffers in HBM begin at multiples of it
};

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_POLICY_H_
