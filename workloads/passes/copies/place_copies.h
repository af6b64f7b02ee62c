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
#ifndef TPUSIM_WORKLOADS_PASSES_COPIES_PLACE_COPIES_H_
#define TPUSIM_WORKLOADS_PASSES_COPIES_PLACE_COPIES_H_

#include "workloads/hlo/analysis/alias.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

// Adds the copies; whether there was any.
bool InsertPlaceCopies(hlo::Module& module, const hlo::CallGraph& calls,
                       hlo::ModuleAliases& aliases);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COPIES_PLACE_COPIES_H_
