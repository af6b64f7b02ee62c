// Passes over collectives: which there are, what they move, what runs beside them. Each is in a
// file of its own.
//
// The room answers which collectives a program has and what runs beside them;
// `MakeCollectivesAsync` is its entry point for the latter, and each pass one of its own. A matmul
// with several collectives is windowed by that of its largest array or not at all, as in compiled
// programs.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COLLECTIVES_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COLLECTIVES_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"
#include "workloads/target/async_form.h"

namespace tpusim::passes {

// Makes collectives asynchronous where the chip runs them beside compute: each is
// cut into a start and a done, which the scheduler then pulls apart.
//
//   collective-permute   on slices of up to compiler.async_permutes_most_chips chips
//   off-loaded           all-gathers, all-reduces and reduce-scatters of at least
//                        chip.sparse_core.offload_*_bytes per device: the SparseCores
//                        run them (`async-start` on the thread "sparsecore")
//   all-gather           else, where the chip's compiler has any (compiler.gathers_in_flight): its
//                        steps are carried by the loops of matrix products
//
// Others stay synchronous, as the TPU compiler leaves them by default (async
// all-reduce, reduce-scatter and all-to-all are disabled).
absl::StatusOr<bool> MakeCollectivesAsync(hlo::Module& module, const PassContext& context,
                                          const target::AsyncOptions& options = {});

// Windowed einsums: products that compute with one shard while the next one travels.
//
// An all-gather before a matrix product, or a reduce-scatter behind it, exposes all of its time.
// As a windowed einsum (collective matmul) the product is computed in steps, shard by shard, and
// collective-permutes move shards around the ring of the group meanwhile:
//
//   gather     the shards of the gathered operand pass by: a step multiplies the one that is here.
//              Was it gathered along a contracted dimension, a step adds to the whole result;
//              along a free one, a step makes a part of it.
//   scatter    sums that begin elsewhere pass by: a step adds this device's part to the one that
//              is here. At the end every device has its own.
//
// Both ways around the ring at once: two shards or sums are here at a time, and half as many steps
// do as the group has members. A gather takes one permute ahead of the steps, a scatter one behind
// them. Two steps are one iteration of a loop, so that a shard is received while its predecessor is
// still read; a group of four has no loop.
//
// Which products: those that the partitioner gave a collective, over groups that also split the
// product's work; of several, the one of the largest array (windowed_einsum.h). What is gathered
// serves no other product that would have it in the same shape (operand_shape.h) and sharding: a
// weight that forward and backward pass gather alike is gathered. And it must pay.
absl::StatusOr<bool> MakeWindowedEinsums(hlo::Module& module, const PassContext& context);

// An all-gather of weights that are needed again much later is done again then.
//
// The forward pass gathers the weights of a layer, and so does the backward pass: to keep them
// would hold all layers in memory whole. The partitioner gathers a value once for all its uses.
// Here the uses of such an all-gather are followed in the order in which they come; where the next
// one is much nearer to the end of the program than the last one was, a new all-gather serves it
// and those after it.
//
// How near an instruction is to the end is its height: 0 for what nothing uses, else at least one
// more than that of each user (XLA adds one for every user that does not raise it). The TPU
// compiler lets 100 lie between uses of one all-gather (compiler.all_gather_reuse_distance):
// in a decoder of two layers the backward pass finds the weights of the last MLP and of the output
// layer still there and gathers all others again.
//
// A product that the compiler has multiply by the weight in another shape is served apart
// (operand_shape.h).
//
// Only of what products multiply; indices of lookups are gathered once. All-gathers that the
// program itself states are left alone.
absl::StatusOr<bool> RepeatAllGathers(hlo::Module& module, const PassContext& context);

// Rounds what products of matrices read before it goes from device to device, not after.
//
// A product of float32 arrays with the default precision multiplies bfloat16 on TPUs. An
// all-gather, all-to-all or permute of which all that is read goes into such products may as well
// move bfloat16: half of the bytes, and the same numbers. What only moves or selects elements may
// lie between; anything else that reads the array keeps it as it is, and so does a higher
// precision. The TPU compiler does so whether the program states the collective or the partitioner
// made it.
//
// In what this pass leaves the rounding is explicit, so on a device whose products are exact in
// float32, such as a CPU, the numbers become those of a TPU.
absl::StatusOr<bool> RoundBeforeExchange(hlo::Module& module, const PassContext& context);

// Makes a reduce-scatter of an all-reduce of which every device reads its own part.
//
// A gradient that is stated whole, because its weight is gathered by a constraint, is summed whole
// and then split as the weight is: each device takes the part with its number in the group,
// transposed or converted or not. XLA calls the pass reduce-scatter-creator.
absl::StatusOr<bool> ScatterAllReduces(hlo::Module& module, const PassContext& context);

// Moves all-reduces of sums that a loop accumulates behind the loop.
//
// A train step that accumulates the gradients of microbatches, or the gradient of a weight that
// every step of a scan reads, adds an all-reduced array to an element of the carry in each
// iteration. Adding up first on each device and then once over devices is the same sum. XLA calls
// the pass while-loop-all-reduce-code-motion. Between the all-reduce and the sum the elements may
// be moved or converted, or written to a place among zeros (the gradient of one layer of a stack);
// an initial value that is not zero is added behind the loop. The TPU compiler leaves
// reduce-scatters inside, and sums that are scaled.
absl::StatusOr<bool> SinkAllReduces(hlo::Module& module, const PassContext& context);

// R(a) + R(b) is R(a + b): one all-reduce instead of two.
//
// The gradient of a value that is used twice is a sum of two gradients, each summed over devices.
// Sums, products, minima, maxima and bit operations alike, wherever nothing else reads what the
// all-reduces make. Rounding may differ, as with every other order of a sum.
absl::StatusOr<bool> ReassociateAllReduces(hlo::Module& module, const PassContext& context);

// Reduce-scatters that leave too little per row, or sum integers, become all-reduces of which a
// part is taken.
//
// The TPU compiler writes sums that are split afterwards as an all-reduce and a slice and joins
// both where it can. Where the fastest dimension in memory is scattered and fewer bytes than
// the policy's least row (512) are left to a device, it does not: compiled for
// v5e, f32[128] over 8 devices, f32[16,128] over 2 along the second dimension and the biases'
// gradients of an MLP are all-reduces, which are then combined with others. Which dimension is
// fastest is known when layouts are assigned.
//
// Of those, only what the partitioner made; a reduce-scatter that the program states stays one.
// Integers are never scattered, whatever made it (s32 and s8, compiled for v5e).
absl::StatusOr<bool> WidenNarrowReduceScatters(hlo::Module& module, const PassContext& context);

// All-gathers of vectors of which a device has less than a row of lanes become all-reduces.
//
// Each device puts its part into zeros at its place, and the sum has all parts: that is as many
// bytes again, but whole rows, where parts would have to be moved to their place within one. The
// TPU compiler does so with arrays of one dimension of which a device has fewer than 128 elements
// (compiled for v5e to v7x: f32 and bf16 of 64 and 127 per device, not of 128; with more dimensions
// it has a layout in which the gathered one is not the fastest). The all-reduces are then combined
// with others.
absl::StatusOr<bool> SumNarrowAllGathers(hlo::Module& module, const PassContext& context);

// Makes one reduce-scatter of many: the gradients of sharded weights.
//
// The TPU compiler joins all-reduces and slices after it has combined the all-reduces, and combines
// only as much as its kernel, which sums and slices at once, can hold in VMEM: all operands, and of
// every piece that is left to a device four buffers, two on the way in and two on the way out, in
// less than 15/16 of the scoped memory. Compiled for v5e, that is 7 MiB (not 7.5) over 4 devices
// and 9.5 (not 10) over 8; for v6e, with twice as much, 14.5 (not 15) and 19.5 (not 20). In the
// order of the program each joins the first that has room; along which dimension is all one, so
// bitcasts bring that to the front here.
//
// None are combined where two cores are one device (v5p), nor where SparseCores run them; and only
// those that the partitioner made: one that the program states is no all-reduce and slice.
absl::StatusOr<bool> CombineReduceScatters(hlo::Module& module, const PassContext& context);

// Makes one all-reduce of many: the gradients of a step are summed together.
//
// All-reduces that do not wait for one another, of one element type, reduction and set of
// groups, become one of several arrays. They are done as late as what waits for them allows, and
// each joins the first that it does not bring above 120 MiB or 256 arrays, else begins a new one.
// Both limits are flags of the TPU compiler (compiler.all_reduce_combined_bytes, .._arrays):
// compiled for v5e, 40 all-reduces of f32[8192,1024] become 13 of three arrays and one of one, 300
// of f32[1024] one of 256 and one of 44; of 100, 30, 10, 60, 25 and 10 MiB, two of 100 + 10 + 10
// and 30 + 60 + 25. A sum that is only rounded afterwards counts with the bytes of what is left:
// three of 50 MiB in f32 that become bf16 are one. Reduce-scatters and all-gathers stay as they
// are.
absl::StatusOr<bool> CombineAllReduces(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COLLECTIVES_H_
