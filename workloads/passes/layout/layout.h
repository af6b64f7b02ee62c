// Layout: the order of dimensions in memory of every array.
//
// Arrays lie in tiles of sublanes x lanes over their two fastest dimensions. Which ones these
// are decides how much is padding, what has to cross lanes, and which transposes and reshapes
// move nothing. Arguments and results have the layout that the program states, or the default
// of their shape (target::Target::DefaultOrder); all others are chosen:
//
//   order_classes   values that lie alike
//   problem_of_*    what the operations of the module ask for, family by family
//   choose_layouts  the choice
//   apply_layouts   layouts and copies into the module
//   same_bytes      which transposes and reshapes are bitcasts now
//
// The room answers how arrays lie in memory; `AssignLayouts` is its entry point. Layouts that keep
// a reduction out of a matmul's kernel to save a few cycles of registers were tried and rejected:
// the copy behind the matmul costs a kernel.
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// A module that was compiled already (it has fusions, or layouts with tiles) keeps its layouts.
// Reshapes and transposes that move nothing become bitcasts.
absl::StatusOr<bool> AssignLayouts(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_H_
