// Reasons of the passes in this room: the sentences of `--explain PASS`.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_ANNOTATE_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_ANNOTATE_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

// A reason of any option.
inline constexpr Reason kNoEffect{"option.no-effect", kWarned, "{subject} has no effect: {why}"};
inline constexpr Reason kArgumentOnHost{"state-arguments.on-host", kChanged,
                                        "{subject} comes from the host's memory ({memory})"};
inline constexpr Reason kArgumentsDonated{
    "state-arguments.donated", kChanged, "{subject}: all {count} arguments are donated (--donate)"};
inline constexpr Reason kKernelCostStated{"state-kernel-costs.stated", kChanged,
                                          "{subject} costs what --kernel-cost {name} states"};
inline constexpr Reason kBodyPriced{"state-kernel-costs.body", kChanged,
                                    "{subject} costs what its body says"};
inline constexpr Reason kTripsWritten{"state-trip-counts.written", kChanged,
                                      "{subject} {sentence}"};
inline constexpr Reason kBranchStated{"state-branches.stated", kChanged,
                                      "{subject} takes branch {branch}, as stated"};
inline constexpr Reason kRaggedEqual{
    "state-ragged-sizes.equal", kAssumed,
    "the groups of {operations} are equally large: their sizes are data (--ragged {subject}=...)"};
inline constexpr Reason kRaggedStatedEqual{
    "state-ragged-sizes.stated-equal", kAssumed,
    "the groups of {operation} are equally large, as stated"};
inline constexpr Reason kRaggedCapped{
    "state-ragged-sizes.capped", kAssumed,
    "{operation} sends {sent_rows} of its {rows} rows, as many as its result holds (--ragged "
    "{subject}=...)"};
inline constexpr Reason kRaggedRows{
    "state-ragged-sizes.rows", kAssumed,
    "the groups of {operation} have {rows} rows on the busiest device, as stated"};
inline constexpr Reason kRaggedBrought{
    "state-ragged-sizes.brought", kAssumed,
    "{subject}{more} has {rows} of its {room} rows, as many as {exchange} brings to each device where "
    "all get equally many (--routing)"};
inline constexpr Reason kRouted{
    "state-ragged-sizes.routed", kAssumed,
    "--routing {subject}: device {hot_device} of a group gets {imbalance:.2f} times the mean rows "
    "of {operation}, which all devices wait for; {dropped_percent:.1f} % of all rows find no room"};
inline constexpr Reason kRoutedRows{
    "state-ragged-sizes.routed-rows", kChanged,
    "{subject}: {rows} rows of the hot device by --routing"};
inline constexpr Reason kRaggedSent{
    "state-ragged-sizes.sent", kAssumed,
    "{operation} sends {rows} rows to the members of its group, as stated"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_ANNOTATE_REASONS_H_
