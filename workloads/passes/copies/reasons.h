// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_COPIES_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_COPIES_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

inline constexpr Reason kCopied{"copies.copied", kChanged,
                                "{subject} is copied: {user} writes over it, and it is read later "
                                "or is not the program's to write"};
inline constexpr Reason kOrderedLast{
    "copies.ordered-last", kChanged,
    "{subject} comes after all that reads {value}, over which it writes"};
inline constexpr Reason kPlacesCopied{"copies.places", kChanged,
                                      "{subject}: results that trade places are copied"};
inline constexpr Reason kArgumentReturned{
    "copies.argument-returned", kChanged,
    "{subject} is copied: it is an argument that is not donated, and a result"};
inline constexpr Reason kReturnedTwice{"copies.returned-twice", kChanged,
                                       "{subject} is copied: it is a result twice"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_COPIES_REASONS_H_
