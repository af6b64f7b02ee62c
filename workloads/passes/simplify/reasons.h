// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_SIMPLIFY_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_SIMPLIFY_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

inline constexpr Reason kSortExpanded{
    "expand-stable-sorts.expanded", kChanged,
    "{subject} sorts positions along, which decide between equal elements"};
inline constexpr Reason kSimplified{"simplify.replaced", kChanged,
                                    "{subject} is {with} ({opcode})"};
inline constexpr Reason kComputationSimplified{
    "simplify.computation", kChanged,
    "{subject}: {after} operations instead of {before}, without those that are equal to others or "
    "that nothing reads"};
inline constexpr Reason kCarriesSimplified{"simplify.carries", kChanged,
                                           "{subject}: loops no longer carry what nothing reads, "
                                           "what never changes or what they carry twice"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_SIMPLIFY_REASONS_H_
