// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_HOST_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_HOST_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

inline constexpr Reason kSpaceFollows{"memory-spaces.follows", kChanged,
                                      "{subject} lies where the value is that it names: {shape}"};
inline constexpr Reason kPlacedAlready{"memory-spaces.placed-already", kChanged,
                                       "{subject} goes: {value} is where it is to be"};
inline constexpr Reason kDeadInHostLoop{"pipeline-host-copies.dead", kChanged,
                                        "{subject} loses operations that nothing reads"};
inline constexpr Reason kReadEarly{"pipeline-host-copies.read-early", kChanged,
                                   "{subject} reads from the host's memory what its next iteration "
                                   "needs, so that this computes meanwhile"};
inline constexpr Reason kWrittenLate{"pipeline-host-copies.written-late", kChanged,
                                     "{subject} writes to the host's memory what its last "
                                     "iteration made, so that this computes meanwhile"};
inline constexpr Reason kHostCopyAsync{
    "async-host-copies.cut", kChanged,
    "{subject} is cut into a start and a done: it moves between the host's memory and HBM"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_HOST_REASONS_H_
