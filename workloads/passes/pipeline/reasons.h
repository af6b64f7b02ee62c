// Why passes decide as they do: the sentences of `--explain PASS`, a row per reason.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_PIPELINE_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_PIPELINE_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

// windowed-einsum
inline constexpr Reason kEinsumWindowed{"windowed-einsum.windowed", Action::kChanged,
                                        "{subject} with {collective}: {why}"};
inline constexpr Reason kEinsumKept{"windowed-einsum.kept", Action::kKept,
                                    "{subject} with {collective}: {why}"};

// fusion
inline constexpr Reason kInlined{"fusion.inlined", Action::kChanged,
                                 "{subject} is computed in {readers}: {less_us:.3f} us less"};
inline constexpr Reason kInlinedAndStored{
    "fusion.inlined-and-stored", Action::kChanged,
    "{subject} is computed in {readers}, and stored for others: {less_us:.3f} us less"};
inline constexpr Reason kNotInlined{"fusion.not-inlined", Action::kKept,
                                    "{subject} is not computed in {reader}: {why}"};
inline constexpr Reason kStored{
    "fusion.stored", Action::kKept,
    "{subject} is stored: computed in {readers} it would take {more_us:.3f} us more"};
inline constexpr Reason kJoined{
    "fusion.joined", Action::kChanged,
    "{subject} and {other} are results of one kernel, {how}: {less_us:.3f} us less"};
inline constexpr Reason kReused{
    "fusion.reused", Action::kChanged,
    "{subject} is stored instead of what {readers} computed it from: {less_us:.3f} us less"};

// rematerialize
inline constexpr Reason kMoved{
    "rematerialize.moved", Action::kChanged,
    "{subject}: moved as {copy} in front of {user}, saves {saved_bytes} bytes, costs "
    "{cost_us:.3f} us"};
inline constexpr Reason kRecomputed{
    "rematerialize.recomputed", Action::kChanged,
    "{subject}: computed again as {copy} in front of {user}, saves {saved_bytes} bytes, costs "
    "{cost_us:.3f} us"};

// memory-space-assignment
inline constexpr Reason kPlaced{"memory-space-assignment.placed", Action::kChanged,
                                "{subject} of {bytes} B in {space}: {stays}; saves {saved_ns} ns"};
inline constexpr Reason kPlacedThenEvicted{
    "memory-space-assignment.placed-then-evicted", Action::kChanged,
    "{subject} of {bytes} B in {space}: {stays}; then copied to HBM; saves {saved_ns} ns"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_PIPELINE_REASONS_H_
