// What every stage may take for granted of a module.
#ifndef TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_H_
#define TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Ids, shapes, arities, cycles, called computations, schedules.
absl::Status Verify(const Module& module);
// The same of a module that was right when this found it so last, from what has changed since
// (Module::right_until()): an instruction is looked at again if it, an operand of it or a computation
// that it calls has changed, an order if its computation has. It cannot see that a module stops
// being one that the TPU compiler wrote, of which less is asked (compiled.h).
absl::Status VerifyChanges(Module& module);
// Returns the shape that operands, attributes and callees imply, whatever the instruction has now;
// what they leave open is as it has it (rules/shape_inference.h). Errors: operands or callees that
// are too few or do not fit.
absl::StatusOr<Shape> ImpliedShape(const Instruction& instruction);
// Replica groups and source-target pairs, for a program of so many partitions:
// every partition in exactly one group (or no groups at all), and source and
// target of at most one pair.
absl::Status VerifyCollectives(const Module& module, int64_t num_partitions);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_ANALYSIS_VERIFY_H_
