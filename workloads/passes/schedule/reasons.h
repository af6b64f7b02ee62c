// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

inline constexpr Reason kBarrierGone{"expand-barriers.gone", kChanged,
                                     "{subject} is taken out: the order is fixed"};
inline constexpr Reason kDemoted{
    "demote-async.demoted", kChanged,
    "{subject} is synchronous again: no product is between it and {done}"};
inline constexpr Reason kCovered{
    "demote-async.covered", kKept,
    "{subject} stays asynchronous: a product is between it and {done}"};
inline constexpr Reason kOrdered{"schedule.ordered", kChanged,
                                 "{subject}: {count} operations are in order"};
inline constexpr Reason kOrderKept{"schedule.kept", kKept,
                                   "{subject}: {count} operations are in the order that they had"};
inline constexpr Reason kBeside{"schedule.beside", kChanged,
                                "{subject} runs beside {count} operations, until {done}"};
inline constexpr Reason kBesideForMemory{
    "schedule.beside-for-memory", kChanged,
    "{subject} runs beside {count} operations, until {done}, in an order that takes less memory"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_REASONS_H_
