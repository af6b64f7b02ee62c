// How an HLO instruction is executed: what the lowering and the scheduler's cost
// model must agree on.
#ifndef TPUSIM_WORKLOADS_LOWERING_INSTRUCTION_CLASS_H_
#define TPUSIM_WORKLOADS_LOWERING_INSTRUCTION_CLASS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/isa/program.h"
#include "workloads/collectives/collective.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

enum class InstructionClass {
  kNothing,     // renames a value: tuples, parameters, bitcasts, constants
  kScalar,      // index arithmetic on the scalar core
  kKernel,      // a tiled kernel on the TensorCore
  kCollective,  // synchronous
  kStart,       // asynchronous pair around a collective
  kCopyStart,   // ... around a copy between memories
  kDone,        // of either
  kTransfer,    // a value placed in another memory, waited for
  kLoop,
  kBranch,  // conditional
  kCall,
};

// Error (no rule): an op that cannot be executed, named with its source line.
absl::StatusOr<InstructionClass> Classify(const hlo::Instruction& instruction);

// Work of the scalar core for one scalar instruction.
isa::Block ScalarBlock(const hlo::Instruction& instruction);

// Mesh axes over which a collective goes, for the report; may be empty.
std::string AxesOf(const hlo::Instruction& collective);

// The request behind a collective (or its start), on physical devices; its groups
// are left to GroupsOf.
absl::StatusOr<collectives::CollectiveRequest> RequestOf(
    const hlo::Instruction& instruction, const std::vector<int64_t>& device_of_partition);
absl::StatusOr<std::vector<std::vector<int64_t>>> GroupsOf(
    const hlo::Instruction& collective, const std::vector<int64_t>& device_of_partition);

// XProf's hlo_category.
std::string CategoryOf(const hlo::Instruction& instruction);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_INSTRUCTION_CLASS_H_
