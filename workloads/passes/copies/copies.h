// Inserts the copies that in-place execution needs.
//
// A while loop overwrites the buffers of its initial values, an update (dynamic-update-slice,
// scatter) that of its operand, and a result may not share the buffer of an argument that the
// caller keeps. Where that would destroy a value that is still needed, a copy is inserted, as XLA's
// copy insertion does:
//   * other instructions read the array too, and the update cannot be ordered behind all of them
//     (if it can, control edges order it, and there is no copy);
//   * the array is a constant, an argument that the caller did not donate, an operand of a branch
//     that is needed behind it, or a part of the result;
//   * a result is an argument itself and is not aliased to it;
//   * a result, or the next value of a loop, cannot be made in its buffer (InsertPlaceCopies).
//
// The room answers where execution in place needs a copy; `InsertCopies` is its entry point.
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

// Copies results to their buffers that cannot be made there. Returns whether there were any.
//
// The next value of a loop's element goes to the buffer of the last one, and a result of the
// program to that of the argument that it is aliased to. A kernel that reads the old contents
// element by element, or an update in place, writes there directly. Where the old contents are
// still read while the new ones are made, or afterwards, the new ones are made elsewhere and copied
// at the end, as XLA does:
//   * a matmul of the old contents, or any operation that moves elements;
//   * the stacks that a scan makes (ys) from those that it reads (xs), when the caller donates
//     these: the loop needs both to its end;
//   * a value that comes from another element or argument, or goes to two buffers.
bool InsertPlaceCopies(hlo::Module& module, const hlo::CallGraph& calls,
                       hlo::ModuleAliases& aliases);

// Returns result `n` of a computation: an element of its root tuple, else the root.
hlo::Instruction* ResultOf(const hlo::Computation& computation, size_t n);
void SetResult(hlo::Computation& computation, size_t n, hlo::Instruction* value);

// An operand that an instruction overwrites: its own, or that of the tuple that a loop starts from.
// Dynamic-update-slices and scatters overwrite an operand, loops the initial values that their
// bodies replace.
struct Overwrite {
  hlo::Instruction* user = nullptr;
  size_t operand = 0;
  const hlo::Instruction* value() const { return user->operand(operand); }
};
std::vector<Overwrite> OverwritesOf(hlo::Instruction& instruction);

// Returns a position for every instruction, in which updates in place run as late as they can.
//
// An update that runs after all others that read the old contents can have their buffer; one that
// has to run before some of them needs a copy. The order is one of many, but because all decisions
// follow it, they never contradict each other. It takes time in proportion to instructions and
// reads, except for the sorting of ready instructions.
std::unordered_map<const hlo::Instruction*, int64_t> OrderWithLateUpdates(
    const hlo::Computation& computation, const hlo::AliasAnalysis& storage);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COPIES_COPIES_H_
