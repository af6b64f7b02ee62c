// The order in which a device executes, chosen to hide asynchronous collectives.
//
// Several orders of a computation are made and replayed with the contention that the
// machine will show (cost::Replay); the shortest wins. The candidates are those
// of a list scheduler (schedule/list_order.h) that takes transfers to last
//   - as long as alone;
//   - as long as in the replay of the best order so far, beside what is in flight with
//     them there;
//   - so many times longer or shorter that all of them together take a fixed multiple
//     of all compute. These orders change little when a rate of the machine does: what
//     is good for a slower machine stays a candidate for a faster one;
// each of them as it is and with starts as early as limits allow, copies to the host always early
// (FreeEarly). Of orders that take equally long the one with early starts is taken: an order that
// hides a transfer with something to spare goes on hiding it when the machine is not as expected.
// The best one then has what is made of constants right before its first reader (LateConstants),
// unless that makes it longer.
//
// If what is then live takes more HBM than the TPU compiler allows itself, computations are
// ordered again: of the candidates that take no more memory than there is for them
// (choose_order.h) the shortest wins, or the one that takes least. Starts in such an order
// are marked (annotations::kOrderedForMemory), so that the report can say why something is exposed.
//
// Loop bodies are scheduled before the loops that run them. A loop is then one
// operation, which uses what its body uses on average.
//
// The room answers in which order a device executes; `Schedule` is its entry point. A single list
// schedule is not enough: transfers in flight together are slower than alone, so orders are
// replayed, and a replay gives the times for the next one.
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_SCHEDULE_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_SCHEDULE_H_

#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "models/isa/program_info.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// Its context must have costs.
absl::StatusOr<bool> Schedule(hlo::Module& module, const PassContext& context);

// Makes asynchronous collectives that nothing covers synchronous again.
//
// The steps of an all-gather that the SparseCores do not run are carried by the loops of
// matrix products. Where the schedule put no product between its start and its done
// nothing carries them, and the TPU compiler executes it as a whole where the done is.
// So does this pass, which leaves on it the mark that the TPU compiler leaves: the name
// that the start had. Permutes, copies and what is off-loaded move by themselves: they
// stay asynchronous even if nothing runs meanwhile.
//
// Of computations that are scheduled; their schedules stay up to date.
absl::StatusOr<bool> DemoteAsync(hlo::Module& module, const PassContext& context);

// Optimization barriers have done their work once the order is fixed.
//
// A barrier (layers that are computed again have one) keeps what is before it apart from what is
// behind it until operations are fused and ordered: a slice of a stack that goes through one is
// a kernel of its own. It takes no time and no memory and is in no module that the TPU compiler
// wrote: what goes through one may lie in VMEM like everything else.
//
// Of computations that are scheduled; their schedules stay up to date.
absl::StatusOr<bool> ExpandBarriers(hlo::Module& module, const PassContext& context);

// Why the main stream has to wait for a collective, from the order that the compiler chose.
//
// A synchronous collective is waited for because it is synchronous (WhySynchronous). The
// two ends of an asynchronous one are examined separately:
//
//   its start   could it come before the last operation of the main stream before it?
//   its done    could it come behind the first operation of the main stream after it?
//
// An end is tight if not: that operation makes what the transfer sends, or needs what it
// brings (or, for a chain of transfers, another transfer does). If both are tight a
// *dependency* keeps the collective from being hidden by more. An end that is not tight is
// there because more transfers of its kind may not be in flight (*resource*), or because the
// schedule wanted something else that is independent of the collective to be elsewhere.
//
// These are facts of the program: whether the main stream did have to wait, and how long,
// the simulation tells.
struct WaitFact {
  isa::WaitReason reason = isa::WaitReason::kDependency;
  std::string text;  // half a sentence
};

// Returns the facts of all collectives of a scheduled module: the synchronous ones and the starts.
// Takes time linear in the instructions and in what lies between a collective and its neighbours on
// the main stream.
std::unordered_map<const hlo::Instruction*, WaitFact> WaitFacts(const hlo::Module& module,
                                                                const target::Target& target);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_SCHEDULE_H_
