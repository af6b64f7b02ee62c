// Which order every class of values gets.
//
// Classes are decided one after the other, the most expensive first, each for what is least
// with what is decided already; then again, now that all neighbours are known. What is tried
// are the orders with the least cost of the class alone and those that neighbours would have
// it in. Time is in proportion to the program.
//
// Costs are of the quantities of kernels (cost::ArrayCosts). Fusion has not happened yet, so a
// value counts as written and read unless elementwise users and sums alone take it. What
// follows a product runs in its kernel if it takes the result as the arrays make it: a copy
// between the two costs a kernel more.
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_CHOOSE_LAYOUTS_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_CHOOSE_LAYOUTS_H_

#include <vector>

#include "workloads/cost/cost_model.h"
#include "workloads/passes/layout/layout_problem.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

// By value: its dimensions, fastest first.
std::vector<Dims> ChooseLayouts(const LayoutProblem& problem, const target::Target& target,
                                cost::CostModel& cost);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_CHOOSE_LAYOUTS_H_
