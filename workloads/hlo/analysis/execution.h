// Classifies instructions by how the device executes them. Costs, passes and lowering all ask this.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_EXECUTION_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_EXECUTION_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

enum class Execution {
  kNothing,     // renames a value: tuples, parameters, bitcasts, constants
  kScalar,      // arithmetic with single elements on the scalar core
  kKernel,      // a tiled kernel on the TensorCore
  kCollective,  // synchronous
  kStart,       // asynchronous pair around a collective
  kCopyStart,   // ... around a copy between memories
  kDone,        // the end of either pair
  kTransfer,    // a value or a part of one moved to another memory, waited for
  kLoop,
  kBranch,  // conditional
  kCall,
};

// Error (no rule): an op that cannot be executed, named with its source line.
absl::StatusOr<Execution> ExecutionOf(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_EXECUTION_H_
