// Values of the forward pass that are kept for the backward pass, instead of computed again.
//
//   saved        what reads the recomputed value reads the forward one. Where that is in a loop,
//   its
//                body writes it into a stack, and the backward body reads a slot of that
//   off-loaded   the same, by way of the host's memory
//
// As jax.checkpoint with save_only_these_names, or save_and_offload_only_these_names, would have
// lowered it: what is kept comes in through the barrier of what is computed again, and a saved
// float is rounded to the precision of its type where the forward pass uses it as well. What
// nothing reads any more is cut: operations, values behind barriers, elements of loops.
#ifndef TPUSIM_WORKLOADS_REMAT_SAVED_VALUES_H_
#define TPUSIM_WORKLOADS_REMAT_SAVED_VALUES_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/remat/recomputed.h"

namespace tpusim::remat {

// Whether a result or an effect follows from it, other than by way of values that are replaced.
bool IsRead(const hlo::Instruction* value,
            const std::unordered_set<const hlo::Instruction*>& replaced);

// Keeps values of FindNamedValues. The module was swept before, and is to be swept afterwards. The
// order of calls is that of what is added: of operations that may go in any order, passes take
// those first that were there first.
class ResidualSaver {
 public:
  // What the forward pass leaves of a value.
  hlo::Instruction* Residual(const NamedValue& named, bool on_host);
  // Who reads the recomputed value reads the one that is left. Error: nothing is left of it.
  absl::Status Keep(const NamedValue& named, bool on_host);

 private:
  // As it is saved: without its name, and as it was where rounding is of no use.
  hlo::Instruction* Rounded(hlo::Instruction* forward);

  hlo::Instruction* Zeros(const LoopPair& loops, const hlo::Shape& shape);

  std::map<std::pair<hlo::Computation*, std::string>, hlo::Instruction*> zeros_;
  // Looked up, never iterated.
  std::map<hlo::Instruction*, int64_t> behind_;  // a barrier: how many were put there
  std::map<hlo::Instruction*, hlo::Instruction*> rounded_;
  std::map<std::pair<hlo::Instruction*, bool>, hlo::Instruction*> left_;
  // Where the value is read, a value is brought once.
  using ReadPlace = std::tuple<hlo::Instruction*, hlo::Instruction*, hlo::Computation*, bool>;
  std::map<ReadPlace, hlo::Instruction*> brought_;
};

// Removes what neither results nor effects need, with elements of barriers and loops.
void Sweep(hlo::Module& module);

}  // namespace tpusim::remat

#endif  // TPUSIM_WORKLOADS_REMAT_SAVED_VALUES_H_
