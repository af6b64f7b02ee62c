// The problem of assigning layouts: values with their candidates, and costs that depend on them.
//
// Every array of rank two and more is a value of OrderClasses. `Places` says which value
// stands for what: the layout in which an instruction makes an array, the one in which its
// users see it, and the one in which a single user wants it. Mostly the three are one; where
// they may differ (arguments, results, opaque kernels, products over a batch) a copy goes
// in if they do. Costs are Terms over one class and Links between two, in cycles.
#ifndef TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_PROBLEM_H_
#define TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_PROBLEM_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "workloads/cost/cost_model.h"
#include "workloads/hlo/ir/instruction_map.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/layout/order_classes.h"
#include "workloads/target/target.h"

namespace tpusim::passes {

enum class TermKind {
  kMemory,      // the array is written and read, with its padding
  kRegisters,   // it only passes through registers
  kCrossLanes,  // its registers are shifted if one of `dims` is the fastest
  kReduce,      // `dims` go away: across lanes, across rows, or whole registers
  kIndexed,     // `count` pieces of extents `dims` are read or written one by one
  kBatch,       // may not have one of `dims` among its two fastest
};

// A cost that depends on the order of one class, in the dimensions of one of its values. Only types
// and dimensions of shapes count; they are those of the module's instructions.
struct Term {
  TermKind kind = TermKind::kMemory;
  int32_t value = -1;
  const hlo::Shape* shape = nullptr;
  Dims dims;
  double count = 1;
};

enum class LinkKind {
  kCopy,     // the same array; equal orders cost nothing, and rows may go elsewhere on the way
             // in or out of some kernel
  kMove,     // the same array, and no kernel makes or reads it: a loop, or the caller, has it
  kResult,   // the result of a product, which begins another kernel if the orders differ
  kLanes,    // dimension d of `from` is map[d] of `to` or gone (-1); lanes should stay lanes
  kReshape,  // costs nothing if no element moves
};

// A cost that depends on the orders of two classes.
struct LayoutLink {
  LinkKind kind = LinkKind::kCopy;
  int32_t from = -1, to = -1;
  const hlo::Shape* from_shape = nullptr;
  const hlo::Shape* to_shape = nullptr;
  Dims map;
  double count = 1;
};

// Whether the link ties an array to itself in another order.
inline bool OfOneArray(const LayoutLink& link) {
  return link.kind == LinkKind::kCopy || link.kind == LinkKind::kMove ||
         link.kind == LinkKind::kResult;
}

struct LayoutProblem {
  OrderClasses classes;
  std::vector<Term> terms;
  std::vector<LayoutLink> links;
  // Values whose order is given.
  std::map<int32_t, Dims> fixed;

  // Values by leaf of the instruction's shape; -1 where there is nothing to choose.
  hlo::InstructionMap<std::vector<int32_t>> made, seen;
  // Values by user and operand number, where they differ from `seen`.
  std::map<std::pair<int64_t, int64_t>, int32_t> wanted;
};

// Does the layout of an array leave a choice?
bool HasOrder(const hlo::Shape& shape);

// The module as JAX and the partitioner leave it: not fused, not laid out.
LayoutProblem BuildLayoutProblem(const hlo::Module& module, const target::Target& target);

// A value that every kernel makes for itself, in whatever layout: iotas, broadcasts of
// scalars, constants.
bool IsMadeAnywhere(const hlo::Instruction& instruction);
// Slices, pads and the like: pieces of arrays in the dimensions of the whole.
bool TakesPieces(hlo::Opcode opcode);
// Such an operand of `user` lies as the result does: both were never made to lie alike.
bool TakesOwnOrder(const hlo::Instruction& user, const hlo::Instruction& operand);

// Chooses an order of dimensions for every class of values.
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
//
// Returns the dimensions of each value, fastest first.
std::vector<Dims> ChooseLayouts(const LayoutProblem& problem, const target::Target& target,
                                cost::CostModel& cost);

// Writes chosen layouts into the module.
//
// Every array gets the order of its value. Where an array is made, seen and wanted in
// different orders, copies go in, one per array and order. What every kernel makes for itself
// is made once per order. Returns whether anything changed.
bool ApplyLayouts(hlo::Module& module, const LayoutProblem& problem,
                  const std::vector<Dims>& orders);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_LAYOUT_LAYOUT_PROBLEM_H_
