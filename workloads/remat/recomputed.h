// Named values that the backward pass computes again, and what they are in the forward pass.
//
// A program under jax.checkpoint computes a named value twice: on its way forward, and again,
// behind an optimization barrier or in the loop of the backward pass. The forward one is found by
// what it is (congruence.h), in the same computation or in the loop that the backward loop belongs
// to; that it has the same name only decides which of several equal ones it is.
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
  // What it is in the forward pass: the instruction that names it there, or else what computes it.
  // Null for a value that is computed once.
  hlo::Instruction* forward = nullptr;
  std::optional<LoopPair> loops;        // where that is another loop
  hlo::Instruction* barrier = nullptr;  // behind which it is computed again; null: there is none
  // Why what JAX says to be computed again is not seen to be; empty: it is.
  std::string refused;

  bool recomputed() const { return forward != nullptr || !refused.empty(); }
};

// All of them, callees before callers, in the order of each computation. Calls are inlined, and
// loops have bodies of their own.
std::vector<NamedValue> FindNamedValues(hlo::Module& module);

}  // namespace tpusim::remat

#endif  // TPUSIM_WORKLOADS_REMAT_RECOMPUTED_H_
