// Copies that in-place execution needs.
//
// A while loop overwrites the buffers of its initial values, an update (dynamic-update-slice,
// scatter) that of its operand, and a result may not share the buffer of an argument that
// the caller keeps. Where that would destroy a value that is still wanted, a copy goes in, as
// XLA's copy insertion puts one:
//   * what is overwritten is read by others too, and cannot be ordered behind all of them
//     (if it can, control edges say so, and there is no copy);
//   * what is overwritten is a constant, an argument that the caller did not donate, an
//     operand of a branch that is needed behind it, or a part of the result;
//   * a result is an argument itself and is not aliased to it;
//   * a result, or a loop's next value, cannot be made where it has to be (InsertPlaceCopies).
#ifndef TPUSIM_WORKLOADS_PASSES_COPIES_COPIES_H_
#define TPUSIM_WORKLOADS_PASSES_COPIES_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

absl::StatusOr<bool> InsertCopies(hlo::Module& module, const PassContext& context);

// Results that have a place to go to and cannot be made there.
//
// The next value of a loop's element goes where the last one lies, and a result of the program
// where the argument lies that it is aliased to. A kernel that follows the old contents element by
// element, or an update in place, writes there at once. Where the old contents are still read
// while the new ones are made, or afterwards, the new ones are made elsewhere and copied to their
// place at the end, as XLA does:
//   * a product of the old contents, or anything that takes its elements from other places;
//   * the stacks that a scan makes (ys) of those that it reads (xs), when the caller donates
//     these: the loop needs both to its end;
//   * what comes from another element or argument, or goes to two places.
//
// Adds the copies; whether there was any.
bool InsertPlaceCopies(hlo::Module& module, const hlo::CallGraph& calls,
                       hlo::ModuleAliases& aliases);

// Result `n` of a computation: an element of the tuple that it makes, else the root.
hlo::Instruction* ResultOf(const hlo::Computation& computation, size_t n);
void SetResult(hlo::Computation& computation, size_t n, hlo::Instruction* value);

// In which order updates in place and the other readers of what they change can run.
//
// Dynamic-update-slices and scatters overwrite an operand, loops the initial values that
// their bodies replace. One that runs after all others that read the old contents can have
// their buffer; one that has to run before some of them needs a copy. The order here lets
// them wait for as long as anything else can run. It is only one of those that are possible, but
// because all decisions follow one order, they never contradict each other.
//
// An operand that an instruction overwrites: that of its own, or of the tuple that a loop
// starts from.
struct Overwrite {
  hlo::Instruction* user = nullptr;
  size_t operand = 0;
  const hlo::Instruction* value() const { return user->operand(operand); }
};
std::vector<Overwrite> OverwritesOf(hlo::Instruction& instruction);

// The place of every instruction. Time in proportion to instructions and reads, but for
// the sorting of what is ready.
std::unordered_map<const hlo::Instruction*, int64_t> OrderWithLateUpdates(
    const hlo::Computation& computation, const hlo::AliasAnalysis& storage);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COPIES_COPIES_H_
