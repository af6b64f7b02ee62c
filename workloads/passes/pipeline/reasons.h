// Why passes decide as they do: the sentences of `--explain PASS`, a row per reason.
//
// A row is {id, what became of the subject, sentence} (configs/record.h). Ids begin with the name
// of the pass.
#ifndef TPUSIM_WORKLOADS_PASSES_PIPELINE_REASONS_H_
#define TPUSIM_WORKLOADS_PASSES_PIPELINE_REASONS_H_

#include "configs/record.h"

namespace tpusim::passes::reasons {

// Of any option.
inline constexpr Reason kNoEffect{"option.no-effect", Action::kWarned,
                                  "{subject} has no effect: {why}"};

// state-arguments
inline constexpr Reason kArgumentOnHost{"state-arguments.on-host", Action::kChanged,
                                        "{subject} comes from the host's memory ({memory})"};
inline constexpr Reason kArgumentsDonated{
    "state-arguments.donated", Action::kChanged,
    "{subject}: all {count} arguments are donated (--donate)"};

// state-kernel-costs
inline constexpr Reason kKernelCostStated{"state-kernel-costs.stated", Action::kChanged,
                                          "{subject} costs what --kernel-cost {name} states"};

// state-trip-counts
inline constexpr Reason kTripsWritten{"state-trip-counts.written", Action::kChanged,
                                      "{subject} {sentence}"};

// state-branches
inline constexpr Reason kBranchStated{"state-branches.stated", Action::kChanged,
                                      "{subject} takes branch {branch}, as stated"};

// state-ragged-sizes
inline constexpr Reason kRaggedEqual{
    "state-ragged-sizes.equal", Action::kAssumed,
    "the groups of {operations} are equally large: their sizes are data (--ragged {subject}=...)"};
inline constexpr Reason kRaggedStatedEqual{
    "state-ragged-sizes.stated-equal", Action::kAssumed,
    "the groups of {operation} are equally large, as stated"};
inline constexpr Reason kRaggedCapped{
    "state-ragged-sizes.capped", Action::kAssumed,
    "{operation} sends {sent_rows} of its {rows} rows, as many as its result holds (--ragged "
    "{subject}=...)"};
inline constexpr Reason kRaggedRows{
    "state-ragged-sizes.rows", Action::kAssumed,
    "the groups of {operation} have {rows} rows on the busiest device, as stated"};
inline constexpr Reason kRaggedSent{
    "state-ragged-sizes.sent", Action::kAssumed,
    "{operation} sends {rows} rows to the members of its group, as stated"};

// join-carried-collectives, unwrap-reduce-scatters
inline constexpr Reason kCarriedJoined{"join-carried-collectives.joined", Action::kChanged,
                                       "{subject} runs beside the kernels that carry it"};
inline constexpr Reason kUnwrapped{"unwrap-reduce-scatters.unwrapped", Action::kChanged,
                                   "{subject} is a reduce-scatter"};
// unwrap-off-loads, translate-calls
inline constexpr Reason kOffLoad{"unwrap-off-loads.collective", Action::kChanged,
                                 "SparseCores run {subject}"};
inline constexpr Reason kOffLoadKept{
    "unwrap-off-loads.on-tensor-core", Action::kAssumed,
    "{subject} runs on the TensorCore: the SparseCores that the compiler gave it to run only "
    "collectives here"};
inline constexpr Reason kCallTranslated{"translate-calls.translated", Action::kChanged,
                                        "{subject}: call of {target}"};

// windowed-einsum
inline constexpr Reason kEinsumWindowed{"windowed-einsum.windowed", Action::kChanged,
                                        "{subject} with {collective}: {why}"};
inline constexpr Reason kEinsumKept{"windowed-einsum.kept", Action::kKept,
                                    "{subject} with {collective}: {why}"};

// fusion
inline constexpr Reason kInlined{"fusion.inlined", Action::kChanged,
                                 "{subject} is computed in {readers}: {less_us:.3f} us less"};
inline constexpr Reason kInlinedAndStored{
    "fusion.inlined-and-stored", Action::kChanged,
    "{subject} is computed in {readers}, and stored for others: {less_us:.3f} us less"};
inline constexpr Reason kNotInlined{"fusion.not-inlined", Action::kKept,
                                    "{subject} is not computed in {reader}: {why}"};
inline constexpr Reason kStored{
    "fusion.stored", Action::kKept,
    "{subject} is stored: computed in {readers} it would take {more_us:.3f} us more"};
inline constexpr Reason kJoined{
    "fusion.joined", Action::kChanged,
    "{subject} and {other} are results of one kernel, {how}: {less_us:.3f} us less"};
inline constexpr Reason kAlone{"fusion.alone", Action::kChanged,
                               "{subject} is one operation with its constants"};
inline constexpr Reason kReused{
    "fusion.reused", Action::kChanged,
    "{subject} is stored instead of what {readers} computed it from: {less_us:.3f} us less"};

// rematerialize
inline constexpr Reason kMoved{
    "rematerialize.moved", Action::kChanged,
    "{subject}: moved as {copy} in front of {user}, saves {saved_bytes} bytes, costs "
    "{cost_us:.3f} us"};
inline constexpr Reason kRecomputed{
    "rematerialize.recomputed", Action::kChanged,
    "{subject}: computed again as {copy} in front of {user}, saves {saved_bytes} bytes, costs "
    "{cost_us:.3f} us"};

// memory-space-assignment
inline constexpr Reason kPlaced{"memory-space-assignment.placed", Action::kChanged,
                                "{subject} of {bytes} B in {space}: {stays}; saves {saved_ns} ns"};
inline constexpr Reason kPlacedThenEvicted{
    "memory-space-assignment.placed-then-evicted", Action::kChanged,
    "{subject} of {bytes} B in {space}: {stays}; then copied to HBM; saves {saved_ns} ns"};

// memory-spaces
inline constexpr Reason kSpaceFollows{"memory-spaces.follows", Action::kChanged,
                                      "{subject} lies where the value is that it names: {shape}"};
inline constexpr Reason kPlacedAlready{"memory-spaces.placed-already", Action::kChanged,
                                       "{subject} goes: {value} is where it is to be"};

// repeat-all-gathers
inline constexpr Reason kGatheredAgain{
    "repeat-all-gathers.repeated", Action::kChanged,
    "{subject} is gathered again as {again} for {user}, long after the use before that"};
inline constexpr Reason kGatheredOnce{"repeat-all-gathers.near", Action::kKept,
                                      "{subject} is gathered once: its uses are near one another"};

// round-before-exchange
inline constexpr Reason kRounded{
    "round-before-exchange.rounded", Action::kChanged,
    "{subject} moves bfloat16: nothing but products reads it, which round it"};
inline constexpr Reason kNotRounded{
    "round-before-exchange.kept", Action::kKept,
    "{subject} moves float32: not only products that round it read it"};

// simplify
inline constexpr Reason kSimplified{"simplify.replaced", Action::kChanged,
                                    "{subject} is {with} ({opcode})"};
inline constexpr Reason kComputationSimplified{
    "simplify.computation", Action::kChanged,
    "{subject}: {after} operations instead of {before}, without those that are equal to others or "
    "that nothing reads"};
inline constexpr Reason kCarriesSimplified{"simplify.carries", Action::kChanged,
                                           "{subject}: loops no longer carry what nothing reads, "
                                           "what never changes or what they carry twice"};

// hoist-invariants
inline constexpr Reason kHoisted{
    "hoist-invariants.hoisted", Action::kChanged,
    "{subject} is computed before {loop}: all iterations compute the same"};
inline constexpr Reason kStacksNarrowed{
    "hoist-invariants.stacks-narrowed", Action::kChanged,
    "{subject} reads stacks that are converted as a whole before it"};
inline constexpr Reason kDeadInLoop{"hoist-invariants.dead", Action::kChanged,
                                    "{subject} loses operations that nothing reads"};

// pipeline-host-copies
inline constexpr Reason kDeadInHostLoop{"pipeline-host-copies.dead", Action::kChanged,
                                        "{subject} loses operations that nothing reads"};
inline constexpr Reason kReadEarly{"pipeline-host-copies.read-early", Action::kChanged,
                                   "{subject} reads from the host's memory what its next iteration "
                                   "needs, so that this computes meanwhile"};
inline constexpr Reason kWrittenLate{"pipeline-host-copies.written-late", Action::kChanged,
                                     "{subject} writes to the host's memory what its last "
                                     "iteration made, so that this computes meanwhile"};

// reassociate-all-reduces
inline constexpr Reason kReassociated{
    "reassociate-all-reduces.one", Action::kChanged,
    "{subject} adds over devices what {first} and {second} added before their results were added"};

// layout
inline constexpr Reason kLayoutsGiven{
    "layout.given", Action::kKept,
    "{subject} has layouts or fusions that a compiler gave it, which stay"};
inline constexpr Reason kLayoutChosen{"layout.chosen", Action::kChanged, "{subject} is {shape}"};
inline constexpr Reason kLayoutCopy{
    "layout.copy", Action::kChanged,
    "{subject} brings a value into the order that its users want: {shape}"};
inline constexpr Reason kBitcast{"layout.bitcast", Action::kChanged,
                                 "{subject} is a bitcast: it moves nothing"};
inline constexpr Reason kMoves{"layout.moves", Action::kKept,
                               "{subject} moves elements: its operand lies in another order"};

// narrow-reduce-scatters
inline constexpr Reason kScatterWidened{"narrow-reduce-scatters.widened", Action::kChanged,
                                        "{subject} is an all-reduce and a slice of it: {shape} is "
                                        "of integers, or has few bytes in a row"};

// narrow-all-gathers
inline constexpr Reason kGatherSummed{"narrow-all-gathers.summed", Action::kChanged,
                                      "{subject} is an all-reduce: a device has {elements} "
                                      "elements, less than a row of {lanes} lanes"};

// combine-reduce-scatters
inline constexpr Reason kScattersCombined{
    "combine-reduce-scatters.combined", Action::kChanged,
    "{subject} and {others} are one reduce-scatter of {bytes} bytes"};
inline constexpr Reason kNotOnThisChip{"combine-reduce-scatters.not-on-this-chip", Action::kKept,
                                       "{subject}: the compiler of {chip} combines none"};

// combine-all-reduces
inline constexpr Reason kAllReducesCombined{
    "combine-all-reduces.combined", Action::kChanged,
    "{subject} and {others} are one all-reduce of {bytes} bytes"};

// sink-initializers
inline constexpr Reason kSunk{"sink-initializers.sunk", Action::kChanged,
                              "{subject} is not written before {loop}: its first iteration has the "
                              "constant, or writes all of element {element}"};
inline constexpr Reason kDeadInitializers{"sink-initializers.dead", Action::kChanged,
                                          "{subject} loses operations that nothing reads"};

// copies
inline constexpr Reason kCopied{"copies.copied", Action::kChanged,
                                "{subject} is copied: {user} writes over it, and it is read later "
                                "or is not the program's to write"};
inline constexpr Reason kOrderedLast{
    "copies.ordered-last", Action::kChanged,
    "{subject} comes after all that reads {value}, over which it writes"};
inline constexpr Reason kPlacesCopied{"copies.places", Action::kChanged,
                                      "{subject}: results that trade places are copied"};
inline constexpr Reason kArgumentReturned{
    "copies.argument-returned", Action::kChanged,
    "{subject} is copied: it is an argument that is not donated, and a result"};

// async-collectives
inline constexpr Reason kCut{"async-collectives.cut", Action::kChanged,
                             "{subject} is cut into a start and a done"};
inline constexpr Reason kStaysWhole{"async-collectives.whole", Action::kKept,
                                    "{subject} stays whole: {why}"};

// async-host-copies
inline constexpr Reason kHostCopyAsync{
    "async-host-copies.cut", Action::kChanged,
    "{subject} is cut into a start and a done: it moves between the host's memory and HBM"};

// demote-async
inline constexpr Reason kDemoted{
    "demote-async.demoted", Action::kChanged,
    "{subject} is synchronous again: no product is between it and {done}"};
inline constexpr Reason kCovered{
    "demote-async.covered", Action::kKept,
    "{subject} stays asynchronous: a product is between it and {done}"};

// schedule
inline constexpr Reason kOrdered{"schedule.ordered", Action::kChanged,
                                 "{subject}: {count} operations are in order"};
inline constexpr Reason kOrderKept{"schedule.kept", Action::kKept,
                                   "{subject}: {count} operations are in the order that they had"};
inline constexpr Reason kBeside{"schedule.beside", Action::kChanged,
                                "{subject} runs beside {count} operations, until {done}"};
inline constexpr Reason kBesideForMemory{
    "schedule.beside-for-memory", Action::kChanged,
    "{subject} runs beside {count} operations, until {done}, in an order that takes less memory"};

// rematerialize
inline constexpr Reason kFits{
    "rematerialize.fits", Action::kKept,
    "{subject} fits: {peak_bytes} bytes are live at most, and {limit_bytes} may be"};

}  // namespace tpusim::passes::reasons

#endif  // TPUSIM_WORKLOADS_PASSES_PIPELINE_REASONS_H_
