// Values that are arguments of the program, moved or converted but not computed with: weights on
// their way into a product, in contrast to activations.
#ifndef TPUSIM_WORKLOADS_SPMD_ARGUMENT_DATA_H_
#define TPUSIM_WORKLOADS_SPMD_ARGUMENT_DATA_H_

#include <unordered_map>
#include <utility>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::spmd {

class ArgumentData {
 public:
  // The loop or branch that calls a computation, and as which of its callees.
  using Callers =
      std::unordered_map<const hlo::Computation*, std::pair<const hlo::Instruction*, size_t>>;
  explicit ArgumentData(const hlo::Module& module, const Callers& callers)
      : module_(module), callers_(callers) {}

  bool Is(const hlo::Instruction* value) const;

 private:
  // The value that an element of a tuple is, outside of loops that only read it, or that is written
  // to it slice by slice; null: unknown.
  const hlo::Instruction* ElementOf(const hlo::Instruction* tuple, int64_t index) const;

  const hlo::Module& module_;
  const Callers& callers_;
};

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_ARGUMENT_DATA_H_
