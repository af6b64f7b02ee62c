// Why the main stream has to wait for a collective, from the order that the compiler chose.
//
// A synchronous collective is waited for because it is synchronous (WhySynchronous). The
// two ends of an asynchronous one are looked at apart:
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
#ifndef TPUSIM_WORKLOADS_PASSES_SCHEDULE_WAIT_FACTS_H_
#define TPUSIM_WORKLOADS_PASSES_SCHEDULE_WAIT_FACTS_H_

#include <string>
#include <unordered_map>

#include "models/isa/program_info.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

struct WaitFact {
  isa::WaitReason reason = isa::WaitReason::kDependency;
  std::string text;  // half a sentence
};

// Of all collectives of a scheduled module: the synchronous ones and the starts. In time
// linear in the instructions and in what lies between a collective and its neighbours on
// the main stream.
std::unordered_map<const hlo::Instruction*, WaitFact> WaitFacts(const hlo::Module& module,
                                                                const target::Target& target);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_SCHEDULE_WAIT_FACTS_H_
