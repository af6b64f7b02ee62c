// Finds named values that the backward pass recomputes, and the values of the forward pass that
// they are equal to.
//
// A program under jax.checkpoint computes a named value twice: in the forward pass, and again
// behind an optimization barrier or in the loop of the backward pass. The value of the forward pass
// is the one that is proven equal (congruence.h), in the same computation or in the forward loop of
// the pair; of several equal ones, one with the same name is taken.
#ifndef TPUSIM_WORKLOADS_REMAT_RECOMPUTED_H_
#define TPUSIM_WORKLOADS_REMAT_RECOMPUTED_H_

#include <optional>
#include <string>
#include <vector>

#include "workloads/hlo/ir/ir.h"
#include "workloads/remat/loop_pair.h"

namespace tpusim::remat {

struct NamedValue {
  std::string name;
  hlo::Instruction* value = nullptr;  // the instruction that names it
  // The equal value of the forward pass: the instruction that names it there, or else the one that
  // computes it. Null for a value that is computed once.
  hlo::Instruction* forward = nullptr;
  std::optional<LoopPair> loops;        // if it is in another loop
  hlo::Instruction* barrier = nullptr;  // behind which it is computed again; null: there is none
  // Why a value that JAX marks as recomputed is not proven to be; empty if it is.
  std::string refused;

  bool recomputed() const { return forward != nullptr || !refused.empty(); }
};

// Returns all named values, callees before callers, in the order of each computation. Calls must be
// inlined, and loops have bodies of their own.
std::vector<NamedValue> FindNamedValues(hlo::Module& module);

}  // namespace tpusim::remat

#endif  // TPUSIM_WORKLOADS_REMAT_RECOMPUTED_H_
