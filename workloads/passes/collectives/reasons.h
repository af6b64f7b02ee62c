// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

inline constexpr Reason kEinsumWindowed{"windowed-einsum.windowed", kChanged,
                                        "{subject} with {collective}: {why}"};
inline constexpr Reason kEinsumKept{"windowed-einsum.kept", kKept,
                                    "{subject} with {collective}: {why}"};
inline constexpr Reason kGatheredAgain{
    "repeat-all-gathers.repeated", kChanged,
    "{subject} is gathered again as {again} for {user}, long after the use before that"};
inline constexpr Reason kGatheredReshaped{
    "repeat-all-gathers.reshaped", kChanged,
    "{subject} is gathered again as {again} for {user}, which multiplies by it in another shape"};
inline constexpr Reason kGatheredOnce{"repeat-all-gathers.near", kKept,
                                      "{subject} is gathered once: its uses are near one another"};
inline constexpr Reason kRounded{
    "round-before-exchange.rounded", kChanged,
    "{subject} moves bfloat16: nothing but products reads it, which round it"};
inline constexpr Reason kNotRounded{
    "round-before-exchange.kept", kKept,
    "{subject} moves float32: not only products that round it read it"};
inline constexpr Reason kReassociated{
    "reassociate-all-reduces.one", kChanged,
    "{subject} adds over devices what {first} and {second} added before their results were added"};
inline constexpr Reason kSumScattered{
    "scatter-all-reduces.scattered", kChanged,
    "{subject} is a reduce-scatter: all that is read of it is each device's own part, {part}"};
inline constexpr Reason kSumSunk{
    "sink-all-reduces.sunk", kChanged,
    "{subject} adds over devices behind {loop} what it added in each iteration"};
inline constexpr Reason kScatterWidened{"narrow-reduce-scatters.widened", kChanged,
                                        "{subject} is an all-reduce and a slice of it: {shape} is "
                                        "of integers, or has few bytes in a row"};
inline constexpr Reason kGatherSummed{"narrow-all-gathers.summed", kChanged,
                                      "{subject} is an all-reduce: a device has {elements} "
                                      "elements, less than a row of {lanes} lanes"};
inline constexpr Reason kScattersCombined{
    "combine-reduce-scatters.combined", kChanged,
    "{subject} and {others} are one reduce-scatter of {bytes} bytes"};
inline constexpr Reason kNotOnThisChip{"combine-reduce-scatters.not-on-this-chip", kKept,
                                       "{subject}: the compiler of {chip} combines none"};
inline constexpr Reason kAllReducesCombined{
    "combine-all-reduces.combined", kChanged,
    "{subject} and {others} are one all-reduce of {bytes} bytes"};
inline constexpr Reason kCut{"async-collectives.cut", kChanged,
                             "{subject} is cut into a start and a done"};
inline constexpr Reason kStaysWhole{"async-collectives.whole", kKept,
                                    "{subject} stays whole: {why}"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_REASONS_H_
