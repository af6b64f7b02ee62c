// Why passes decide as they do: the sentences of `--explain PASS`, a row per reason.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_PIPELINE_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_PIPELINE_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

using enum Action;

// Of any option.
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
inline constexpr Reason kRaggedSent{
    "state-ragged-sizes.sent", kAssumed,
    "{operation} sends {rows} rows to the members of its group, as stated"};

inline constexpr Reason kFlattened{"flatten-fusions.flattened", kChanged,
                                   "{subject}: {count} fusions inside of others are part of them"};
inline constexpr Reason kPrefetched{
    "begin-prefetched.there", kAssumed,
    "{subject} is in VMEM when the step begins, and is copied there again for the next step "
    "(cross-program prefetch)"};
inline constexpr Reason kEstimateTaken{"take-estimates.taken", kChanged,
                                       "{subject} takes {cycles} cycles"};
inline constexpr Reason kCarriedJoined{"join-carried-collectives.joined", kChanged,
                                       "{subject} runs beside the kernels that carry it"};
inline constexpr Reason kUnwrapped{"unwrap-reduce-scatters.unwrapped", kChanged,
                                   "{subject} is a reduce-scatter"};
inline constexpr Reason kOffLoad{"unwrap-off-loads.collective", kChanged,
                                 "SparseCores run {subject}"};
inline constexpr Reason kOffLoadKept{
    "unwrap-off-loads.on-tensor-core", kAssumed,
    "{subject} runs on the TensorCore: the SparseCores that the compiler gave it to run only "
    "collectives here"};
inline constexpr Reason kCallTranslated{"translate-calls.translated", kChanged,
                                        "{subject}: call of {target}"};

inline constexpr Reason kSortExpanded{
    "expand-stable-sorts.expanded", kChanged,
    "{subject} sorts positions along, which decide between equal elements"};

inline constexpr Reason kEinsumWindowed{"windowed-einsum.windowed", kChanged,
                                        "{subject} with {collective}: {why}"};
inline constexpr Reason kEinsumKept{"windowed-einsum.kept", kKept,
                                    "{subject} with {collective}: {why}"};

inline constexpr Reason kInlined{"fusion.inlined", kChanged,
                                 "{subject} is computed in {readers}: {less_us:.3f} us less"};
inline constexpr Reason kInlinedAndStored{
    "fusion.inlined-and-stored", kChanged,
    "{subject} is computed in {readers}, and stored for others: {less_us:.3f} us less"};
inline constexpr Reason kNotInlined{"fusion.not-inlined", kKept,
                                    "{subject} is not computed in {reader}: {why}"};
inline constexpr Reason kStored{
    "fusion.stored", kKept,
    "{subject} is stored: computed in {readers} it would take {more_us:.3f} us more"};
inline constexpr Reason kJoined{
    "fusion.joined", kChanged,
    "{subject} and {other} are results of one kernel, {how}: {less_us:.3f} us less"};
inline constexpr Reason kAlone{"fusion.alone", kChanged,
                               "{subject} is one operation with its constants"};
inline constexpr Reason kReused{
    "fusion.reused", kChanged,
    "{subject} is stored instead of what {readers} computed it from: {less_us:.3f} us less"};

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

inline constexpr Reason kPlaced{"memory-space-assignment.placed", kChanged,
                                "{subject} of {bytes} B in {space}: {stays}; saves {saved_ns} ns"};
inline constexpr Reason kPlacedThenEvicted{
    "memory-space-assignment.placed-then-evicted", kChanged,
    "{subject} of {bytes} B in {space}: {stays}; then copied to HBM; saves {saved_ns} ns"};

inline constexpr Reason kSpaceFollows{"memory-spaces.follows", kChanged,
                                      "{subject} lies where the value is that it names: {shape}"};
inline constexpr Reason kPlacedAlready{"memory-spaces.placed-already", kChanged,
                                       "{subject} goes: {value} is where it is to be"};

inline constexpr Reason kGatheredAgain{
    "repeat-all-gathers.repeated", kChanged,
    "{subject} is gathered again as {again} for {user}, long after the use before that"};
inline constexpr Reason kGatheredReshaped{
    "repeat-all-gathers.reshaped", kChanged,
    "{subject} is gathered again as {again} for {user}, which multiplies by it in another shape"};
inline constexpr Reason kGatheredOnce{"repeat-all-gathers.near", kKept,
                                      "{subject} is gathered once: its uses are near one another"};

inline constexpr Reason kRounded{
    "round-before-exchange.rounded", kChanged,
    "{subject} moves bfloat16: nothing but products reads it, which round it"};
inline constexpr Reason kNotRounded{
    "round-before-exchange.kept", kKept,
    "{subject} moves float32: not only products that round it read it"};

inline constexpr Reason kSimplified{"simplify.replaced", kChanged,
                                    "{subject} is {with} ({opcode})"};
inline constexpr Reason kComputationSimplified{
    "simplify.computation", kChanged,
    "{subject}: {after} operations instead of {before}, without those that are equal to others or "
    "that nothing reads"};
inline constexpr Reason kCarriesSimplified{"simplify.carries", kChanged,
                                           "{subject}: loops no longer carry what nothing reads, "
                                           "what never changes or what they carry twice"};

inline constexpr Reason kHoisted{
    "hoist-invariants.hoisted", kChanged,
    "{subject} is computed before {loop}: all iterations compute the same"};
inline constexpr Reason kStacksNarrowed{
    "hoist-invariants.stacks-narrowed", kChanged,
    "{subject} reads stacks that are converted as a whole before it"};
inline constexpr Reason kDeadInLoop{"hoist-invariants.dead", kChanged,
                                    "{subject} loses operations that nothing reads"};

inline constexpr Reason kDeadInHostLoop{"pipeline-host-copies.dead", kChanged,
                                        "{subject} loses operations that nothing reads"};
inline constexpr Reason kReadEarly{"pipeline-host-copies.read-early", kChanged,
                                   "{subject} reads from the host's memory what its next iteration "
                                   "needs, so that this computes meanwhile"};
inline constexpr Reason kWrittenLate{"pipeline-host-copies.written-late", kChanged,
                                     "{subject} writes to the host's memory what its last "
                                     "iteration made, so that this computes meanwhile"};

inline constexpr Reason kReassociated{
    "reassociate-all-reduces.one", kChanged,
    "{subject} adds over devices what {first} and {second} added before their results were added"};

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

inline constexpr Reason kScatterWidened{"narrow-reduce-scatters.widened", kChanged,
                                        "{subject} is an all-reduce and a slice of it: {shape} is "
                                        "of integers, or has few bytes in a row"};

inline constexpr Reason kGatherSummed{"narrow-all-gathers.summed", kChanged,
                                      "{subject} is an all-reduce: a device has {elements} "
                                      "elements, less than a row of {lanes} lanes"};

inline constexpr Reason kScattersCombined{
    "combine-reduce-scatters.combined", kChanged,
    "{subject} and {others} are one reduce-scatter of {bytes} bytes"};
inline constexpr Reason kNotOnThisChip{"combine-reduce-scatters.not-on-this-chip", kKept,
                                       "{subject}: the compiler of {chip} combines none"};

inline constexpr Reason kAllReducesCombined{
    "combine-all-reduces.combined", kChanged,
    "{subject} and {others} are one all-reduce of {bytes} bytes"};

inline constexpr Reason kSunk{"sink-initializers.sunk", kChanged,
                              "{subject} is not written before {loop}: its first iteration has the "
                              "constant, or writes all of element {element}"};
inline constexpr Reason kDeadInitializers{"sink-initializers.dead", kChanged,
                                          "{subject} loses operations that nothing reads"};

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

inline constexpr Reason kCut{"async-collectives.cut", kChanged,
                             "{subject} is cut into a start and a done"};
inline constexpr Reason kStaysWhole{"async-collectives.whole", kKept,
                                    "{subject} stays whole: {why}"};

inline constexpr Reason kHostCopyAsync{
    "async-host-copies.cut", kChanged,
    "{subject} is cut into a start and a done: it moves between the host's memory and HBM"};

inline constexpr Reason kBarrierGone{"expand-barriers.gone", kChanged,
                                     "{subject} is taken out: the order is fixed"};

inline constexpr Reason kSplatInside{"fusion.splat-inside", kChanged,
                                     "{subject} makes the array that it begins with itself"};

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

#endif  // TPUSIM_WORKLOADS_PASSES_PIPELINE_REASONS_H_
