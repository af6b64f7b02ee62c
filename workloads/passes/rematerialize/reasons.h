// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

inline constexpr Reason kMoved{
    "rematerialize.moved", kChanged,
    "{subject}: moved as {copy} in front of {user}, saves {saved_bytes} bytes, costs "
    "{cost_us:.3f} us"};
inline constexpr Reason kRecomputed{
    "rematerialize.recomputed", kChanged,
    "{subject}: computed again as {copy} in front of {user}, saves {saved_bytes} bytes, costs "
    "{cost_us:.3f} us"};
inline constexpr Reason kFits{
    "rematerialize.fits", kKept,
    "{subject} fits: {peak_bytes} bytes are live at most, and {limit_bytes} may be"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_REMATERIALIZE_REASONS_H_
