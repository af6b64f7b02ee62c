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
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

// The frontend attribute of a loop with the orders in which elements of its state lie, whatever the
// arrays around it lie like: "3:1,2,0;5:2,1,0" has the dimensions of elements 3 and 5, fastest first.
//
// The TPU compiler lays out the loops of windowed einsums before what is around them. The operand
// that is there whole is row-major, and so is a result that is added up; the dimension of which
// pieces are cut out, put in or summed up is not the fastest. (So have it all 148 loops of train
// steps of Qwen3-8B that libtpu 0.0.42.1 compiled for v6e 2x4, scanned and unrolled.) What lies
// otherwise before is copied, and what comes out is copied into the order of its users.
inline constexpr std::string_view kElementOrders = "tpusim.element_orders";

// A module that was compiled already (it has fusions, or layouts with tiles) keeps its layouts.
// Reshapes and transposes that move nothing become bitcasts.
absl::StatusOr<bool> AssignLayouts(hlo::Module& module, const PassContext& context);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_H_
