// Keeps values of the forward pass as residuals for the backward pass, instead of recomputing them.
//
//   saved        readers of the recomputed value read the forward one; if that is in a loop, its
//                body writes it into a stack, and the backward body reads a slot of that
//   off-loaded   the residual goes through host memory
//
// The result is what jax.checkpoint with save_only_these_names, or
// save_and_offload_only_these_names, lowers to: residuals pass through the barrier of the
// recomputation, and a saved float is rounded to the precision of its type where the forward pass
// uses it as well. Sweep removes what nothing reads any more: operations, values behind barriers,
// elements of loops.
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

// Whether a result or a side effect depends on the value, other than through `replaced` values.
bool IsRead(const hlo::Instruction* value,
            const std::unordered_set<const hlo::Instruction*>& replaced);

// Keeps values of FindNamedValues; call Sweep before and afterwards. Instructions are added in the
// order of calls, and passes take operations of any order as they were added.
class ResidualSaver {
 public:
  // Returns the residual of a value: the value of the forward pass, rounded or moved to the host.
  hlo::Instruction* Residual(const NamedValue& named, bool on_host);
  // Makes the readers of the recomputed value read the residual. Error: the forward value was
  // removed.
  absl::Status Keep(const NamedValue& named, bool on_host);

 private:
  // Returns the value without its name, and without rounding where nothing else uses it.
  hlo::Instruction* Rounded(hlo::Instruction* forward);

  hlo::Instruction* Zeros(const LoopPair& loops, const hlo::Shape& shape);

  std::map<std::pair<hlo::Computation*, std::string>, hlo::Instruction*> zeros_;
  // Looked up, never iterated.
  std::map<hlo::Instruction*, int64_t> behind_;  // the number of residuals behind a barrier
  std::map<hlo::Instruction*, hlo::Instruction*> rounded_;
  std::map<std::pair<hlo::Instruction*, bool>, hlo::Instruction*> left_;
  // A residual passes a barrier once per computation that reads it.
  using ReadPlace = std::tuple<hlo::Instruction*, hlo::Instruction*, hlo::Computation*, bool>;
  std::map<ReadPlace, hlo::Instruction*> brought_;
};

// Removes what neither results nor effects need, with elements of barriers and loops.
void Sweep(hlo::Module& module);

}  // namespace tpusim::remat

#endif  // TPUSIM_WORKLOADS_REMAT_SAVED_VALUES_H_
