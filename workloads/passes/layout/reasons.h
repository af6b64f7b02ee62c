// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

inline constexpr Reason kLayoutsGiven{
    "layout.given", kKept, "{subject} has layouts or fusions that a compiler gave it, which stay"};
inline constexpr Reason kLayoutChosen{"layout.chosen", kChanged, "{subject} is {shape}"};
inline constexpr Reason kLayoutCopy{
    "layout.copy", kChanged,
    "{subject} brings a value into the order that its users want: {shape}"};
inline constexpr Reason kBitcast{"layout.bitcast", kChanged,
                                 "{subject} is a bitcast: it moves nothing"};
inline constexpr Reason kMoves{"layout.moves", kKept,
                               "{subject} moves elements: its operand lies in another order"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_REASONS_H_
