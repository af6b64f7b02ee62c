// Passes that write into a module what its text does not tell.
//
// They run in front of all others, whatever --passes names, and change no computation: they say
// what the user or the exporter states (pipeline/statements.h), and what theory says of the loops
// of JAX's linear algebra. Statements that fit nothing are warnings; what is taken to be so,
// stated or not, is an assumption.
//
// The room answers how statements come into the module; `StateArguments` is its entry point for
// layouts and donors, its neighbours state the rest. No table beside the module has them, so that
// its text compiles to the same program.
#ifndef TPUSIM_WORKLOADS_PASSES_ANNOTATE_ANNOTATE_H_
#define TPUSIM_WORKLOADS_PASSES_ANNOTATE_ANNOTATE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// Memories of arguments into their layouts; donors into the module. Error: not one memory for
// each argument.
absl::StatusOr<bool> StateArguments(hlo::Module& module, const PassContext& context);

// Costs of opaque kernels onto custom calls: the bodies of Pallas kernels where the workload states
// none; the options of the user count most.
absl::StatusOr<bool> StateKernelCosts(hlo::Module& module, const PassContext& context);

// Writes how often loops of linear algebra iterate, where that is data (hlo/rules/assumed_trips.h).
absl::StatusOr<bool> StateTripCounts(hlo::Module& module, const PassContext& context);

// Writes the branch that a conditional takes (hlo/rules/branches.h). Error: one that it does not
// have.
absl::StatusOr<bool> StateBranches(hlo::Module& module, const PassContext& context);

// Group sizes of ragged operations, which are data.
//
// A ragged dot multiplies runs of rows by a matrix each; a ragged all-to-all sends every member
// of its group a run of rows. How long the runs are is only known when the program runs. By
// default all are equal, and those of an all-to-all no more rows together than its result holds.
//
// Sizes of a ragged dot are those of the whole program. Where its groups or its rows are divided
// among devices, the one with most rows to multiply counts for all, as the others wait for it.
// Sizes of a ragged all-to-all are what each device sends to the members of its group.
//
// Where --routing says how often experts are asked for, sizes follow from that (routing.h), for
// the hot device; a ragged dot then stands behind the exchange that brings its rows. Backward
// exchanges take as long as those whose rows they send back.
//
// Errors: another number of sizes than groups; more rows than there are; layers that are not those
// of the program.
absl::StatusOr<bool> StateRaggedSizes(hlo::Module& module, const PassContext& context);

// Warns that an option, such as "--branch cond=1", fits none of `names`; `what` is what these
// are, one and several: "no conditional", "conditionals".
void WarnOfNoEffect(const Records& records, const std::string& option,
                    const std::vector<std::string>& names, std::string_view none,
                    std::string_view several);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_ANNOTATE_ANNOTATE_H_
