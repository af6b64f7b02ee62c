// The rows of the compiler in the table of parameters: units, ranges and members of the values that
// configs/compilers/NAME.json gives.
#include "configs/parameter_row.h"

namespace tpusim::configs {
namespace {

constexpr ValueRange kFlag = {0, 1};
constexpr ValueRange kBytesOrMinusOne = {-1, 1e18};
constexpr ValueRange kPercent = {1, 100};
constexpr ValueRange kSomeBytes = {1, 1e15};
constexpr ValueRange kFactor = {0, 1e6};
constexpr ValueRange kShareOfAll = {0, 1};
constexpr ValueRange kProducts = {1, 4096};
constexpr ValueRange kOperations = {0, 1e4};

}  // namespace

#define VALUE(name, unit, range, description) \
  TPUSIM_PARAMETER("compiler." #name, unit, range, compiler.name, description)
#define FLAG(name, description) VALUE(name, "flag", kFlag, description)

std::vector<Parameter> PolicyParameters() {
  std::vector<Parameter> table = {
      // clang-format off
      VALUE(offload_least_bytes, "bytes", kSomeBytes, "least operand of a collective that a flag sends to SparseCores"),
      VALUE(single_phase_most_bytes, "bytes", kBytesOrNone, "largest all-reduce in which every member adds up whole operands"),
      VALUE(one_way_ring_most_members, "count", kCountOrNone, "members of the longest ring on which the halves of a large all-reduce go round each way apart"),
      VALUE(one_way_axis_most_members, "count", kCountOrNone, "... of the longest axis of a plane or box"),
      VALUE(reduce_scatter_least_row_bytes, "bytes", kBytesOrNone, "what is left of the fastest dimension when it is scattered; with less, an all-reduce and a slice are made"),
      VALUE(all_reduce_combined_bytes, "bytes", kBytesOrNone, "all-reduces are combined up to this size"),
      VALUE(all_reduce_combined_arrays, "count", kCount, "... and so many arrays"),
      VALUE(reduce_scatter_combined_share, "ratio", kShareOfAll, "share of a kernel's VMEM in which the buffers of a combined reduce-scatter fit"),
      VALUE(reduce_scatter_combined_buffers, "count", kCountOrNone, "buffers there of every piece that is left to a device"),
      VALUE(all_gather_reuse_distance, "instructions", kCountOrNone, "a use of an all-gather that is further away than this from the one before gathers again"),
      VALUE(permutes_in_flight, "count", kCount, "collective-permutes that may be in flight"),
      VALUE(async_permutes_most_chips, "count", kCountOrNone, "chips of the largest slice with asynchronous collective-permutes"),
      VALUE(gathers_in_flight, "count", kCountOrNone, "asynchronous all-gathers that may be in flight; 0: they are synchronous"),
      VALUE(copies_in_flight, "count", kCount, "copies between memories of the chip that may be in flight"),
      VALUE(host_copies_in_flight, "count", kCount, "copies to the host, and from it, that may be in flight"),
      VALUE(scheduled_percent, "percent", kPercent, "share of the usable HBM above which the scheduler orders for less memory"),
      VALUE(rematerialized_percent, "percent", kPercent, "share of the usable HBM above which values are computed again"),
      VALUE(windowed_flops_per_byte, "flops_per_byte", kCountOrNone, "FLOPs per byte of the whole array, times two over the group's size, of a windowed einsum; 0: there are none"),
      FLAG(windowed_gathers, "an all-gather and its product may become a windowed einsum"),
      FLAG(windowed_scatters, "a product and its reduce-scatter may become a windowed einsum"),
      VALUE(windowed_least_bytes, "bytes", kBytesOrMinusOne, "least array of a windowed einsum, whatever its FLOPs per byte; -1: those decide"),
      VALUE(windowed_einsum_most_members, "count", kCountOrNone, "devices that share a windowed einsum, at most"),
      VALUE(windowed_einsum_member_multiple, "count", kCount, "... and of what their number is a multiple"),
      VALUE(windowed_einsum_square_factor, "ratio", kFactor, "how many times the FLOPs per byte groups need that are all of a plane of 2x2; 0: they have none"),
      VALUE(fusion_most_operands, "count", kCount, "operands of one kernel"),
      VALUE(whole_row_most_elements, "elements", kCountOrNone, "rows that a kernel reduces and spreads the result over"),
      VALUE(whole_row_of_product_most_elements, "elements", kCountOrNone, "... behind the product that makes them"),
      VALUE(whole_row_least_rank, "dimensions", kCount, "... and of arrays of how many dimensions at least"),
      VALUE(window_registers, "registers", kCount, "largest window of a kernel without a product, per core"),
      VALUE(relayout_window_registers, "registers", kCount, "... of one that puts data through the cross-lane units"),
      VALUE(lone_window_registers, "registers", kCount, "... of one operation whose larger windows do not fit sixteen times"),
      VALUE(lone_windows, "count", kCountOrNone, "how many of its larger windows must fit for it to have them"),
      VALUE(uncut_bytes, "bytes", kBytesOrNone, "largest operand or result of such a kernel that is never cut"),
      VALUE(resident_vmem_share, "ratio", kShareOfAll, "share of a kernel's VMEM up to which what a product's blocks share stays there whole"),
      VALUE(f64_products, "count", kProducts, "products of bytes that make one of 64 bits"),
      VALUE(convolution_row_registers, "registers", kCountOrNone, "convolutions of features up to the sublanes of so many registers feed the taps of a row of the window together"),
      VALUE(convolution_packed_share, "ratio", kShareOfAll, "... of features up to this share of an array's rows all taps, in whole sublanes"),
      VALUE(convolution_permutations, "per_register", kOperations, "cross-lane permutations per register of results of the first of these"),
      VALUE(operations_per_tap, "per_register", kOperations, "vector operations per register of results and tap of a convolution of single features"),
      VALUE(scalars_per_index, "per_index", kOperations, "scalar instructions around the issue of one slice of a gather or scatter"),
      FLAG(transcendentals_refined, "results of the transcendental unit are refined by vector operations"),
      VALUE(cosine_beside_sine_operations, "per_register", kOperations, "vector operations of a cosine in a kernel that has the sine of its angle"),
      VALUE(integer_division_operations, "per_register", kOperations, "vector operations of a division of 32-bit integers"),
      VALUE(constant_division_operations, "per_register", kOperations, "... by a constant"),
      VALUE(scalar_division_operations, "count", kOperations, "scalar instructions of a division of one integer by another"),
      VALUE(f16_widening_operations, "per_register", kOperations, "vector operations that make a register of 32-bit elements of f16"),
      VALUE(f16_narrowing_operations, "per_register", kOperations, "... and one of 32-bit elements into f16, beside packing"),
      VALUE(row_exchange_bundles, "per_register", kOperations, "bundles per register of a relayout that picks rows out of several registers"),
      VALUE(narrow_row_exchange_bundles, "per_register", kOperations, "... of elements narrower than 32 bits, as they lie"),
      FLAG(products_in_vmem, "results of matrix products may live in VMEM"),
      VALUE(loop_weight, "passes", kFactor, "how often a loop's body counts as run when arrays are ranked for VMEM"),
      VALUE(prefetch_preferred_overlap, "ratio", kFactor, "time that HBM is free before a prefetched array is needed, over the time of its copy: what is tried first"),
      VALUE(prefetch_least_overlap, "ratio", kFactor, "... and what is taken"),
      VALUE(prefetch_most_overlap, "ratio", kFactor, "... and how early it starts at most"),
      VALUE(prefetch_least_use, "ratio", kShareOfAll, "part of a prefetched array that is read at least"),
      VALUE(heap_alignment_bytes, "bytes", kSomeBytes, "buffers in HBM begin at multiples of it"),
      // clang-format on
  };
  for (Parameter& parameter : table) {
    if (parameter.unit == kFlagUnit) parameter.words = {"false", "true"};
  }
  return table;
}

#undef FLAG
#undef VALUE

}  // namespace tpusim::configs
