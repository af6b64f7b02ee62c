// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_LOOPS_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_LOOPS_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

inline constexpr Reason kHoisted{
    "hoist-invariants.hoisted", kChanged,
    "{subject} is computed before {loop}: all iterations compute the same"};
inline constexpr Reason kStacksNarrowed{
    "hoist-invariants.stacks-narrowed", kChanged,
    "{subject} reads stacks that are converted as a whole before it"};
inline constexpr Reason kDeadInLoop{"hoist-invariants.dead", kChanged,
                                    "{subject} loses operations that nothing reads"};
inline constexpr Reason kSunk{"sink-initializers.sunk", kChanged,
                              "{subject} is not written before {loop}: its first iteration has the "
                              "constant, or writes all of element {element}"};
inline constexpr Reason kDeadInitializers{"sink-initializers.dead", kChanged,
                                          "{subject} loses operations that nothing reads"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_LOOPS_REASONS_H_
