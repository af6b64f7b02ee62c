// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_SPACES_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_SPACES_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

inline constexpr Reason kPlaced{"memory-space-assignment.placed", kChanged,
                                "{subject} of {bytes} B in {space}: {stays}; saves {saved_ns} ns"};
inline constexpr Reason kPlacedThenEvicted{
    "memory-space-assignment.placed-then-evicted", kChanged,
    "{subject} of {bytes} B in {space}: {stays}; then copied to HBM; saves {saved_ns} ns"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_SPACES_REASONS_H_
