// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_COMPILED_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_COMPILED_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

inline constexpr Reason kFlattened{"flatten-fusions.flattened", kChanged,
                                   "{subject}: {count} fusions inside of others are part of them"};
inline constexpr Reason kPrefetched{
    "begin-prefetched.there", kAssumed,
    "{subject} is in VMEM when the step begins, and is copied there again for the next step "
    "(cross-program prefetch)"};
inline constexpr Reason kEstimateTaken{"take-estimates.taken", kChanged,
                                       "{subject} takes {cycles} cycles"};
inline constexpr Reason kCarriedJoined{"join-carried-collectives.joined", kChanged,
                                       "{subject} runs beside the kernels that carry it"};
inline constexpr Reason kUnwrapped{"unwrap-reduce-scatters.unwrapped", kChanged,
                                   "{subject} is a reduce-scatter"};
inline constexpr Reason kOffLoad{"unwrap-off-loads.collective", kChanged,
                                 "SparseCores run {subject}"};
inline constexpr Reason kOffLoadKept{
    "unwrap-off-loads.on-tensor-core", kAssumed,
    "{subject} runs on the TensorCore: the SparseCores that the compiler gave it to run only "
    "collectives here"};
inline constexpr Reason kInEverySlice{"join-slices.repeated", kChanged,
                                      "{subject} runs in every slice"};
inline constexpr Reason kBetweenSlices{"join-slices.joined", kChanged,
                                       "{subject} goes between slices"};
inline constexpr Reason kSkipsNotRead{
    "translate-calls.skips-not-read", kAssumed,
    "{subject} multiplies all blocks: its kernel skips those of groups without rows "
    "(ITERATION_SKIPPER_MODE_GROUP_STARTS), but its operands are not those of a known product"};
inline constexpr Reason kCallTranslated{"translate-calls.translated", kChanged,
                                        "{subject}: call of {target}"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_COMPILED_REASONS_H_
