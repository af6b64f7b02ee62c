// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

inline constexpr Reason kInlined{"fusion.inlined", kChanged,
                                 "{subject} is computed in {readers}: {less_us:.3f} us less"};
inline constexpr Reason kInlinedAndStored{
    "fusion.inlined-and-stored", kChanged,
    "{subject} is computed in {readers}, and stored for others: {less_us:.3f} us less"};
inline constexpr Reason kNotInlined{"fusion.not-inlined", kKept,
                                    "{subject} is not computed in {reader}: {why}"};
inline constexpr Reason kStored{
    "fusion.stored", kKept,
    "{subject} is stored: computed in {readers} it would take {more_us:.3f} us more"};
inline constexpr Reason kJoined{
    "fusion.joined", kChanged,
    "{subject} and {other} are results of one kernel, {how}: {less_us:.3f} us less"};
inline constexpr Reason kAlone{"fusion.alone", kChanged,
                               "{subject} is one operation with its constants"};
inline constexpr Reason kReused{
    "fusion.reused", kChanged,
    "{subject} is stored instead of what {readers} computed it from: {less_us:.3f} us less"};
inline constexpr Reason kSplatInside{"fusion.splat-inside", kChanged,
                                     "{subject} makes the array that it begins with itself"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_REASONS_H_
