// Checks what every stage may assume of a module.
//
// The room answers what is true of a module as it stands: who calls whom, which arrays share a
// buffer, what is live, what loops do, which integers are known. A header has one of these each;
// `Verify` is its entry point for a module that comes from outside. Passes take facts from
// PassContext::facts, which keeps them until a pass has changed the module. Three evaluators of
// integers and three followers of indices were rejected for one each (known_values.h, loops.h).
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Checks ids, shapes, arities, cycles, called computations and schedules.
absl::Status Verify(const Module& module);
// Checks only what has changed since the module was last found right (Module::right_until()): an
// instruction again if it, an operand or a computation that it calls has changed, a schedule if its
// computation has. It does not notice that a module ceases to be one that the TPU compiler wrote,
// of which less is required (compiled.h).
absl::Status VerifyChanges(Module& module);
// Returns the shape that operands, attributes and callees imply, whatever the instruction has now;
// what they leave open is as it has it (rules/shape_inference.h). Errors: operands or callees that
// are too few or do not fit.
absl::StatusOr<Shape> ImpliedShape(const Instruction& instruction);
// Checks replica groups and source-target pairs for `num_partitions` partitions: each is in exactly
// one group (or there are no groups), and the source and the target of at most one pair.
absl::Status VerifyCollectives(const Module& module, int64_t num_partitions);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_H_
