// The result shape of an instruction from its operands and attributes.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_SHAPE_INFERENCE_H_
#define TPUSIM_WORKLOADS_HLO_RULES_SHAPE_INFERENCE_H_

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The result that the operands imply. What they leave open (the element type of
// a dot, the dimensions of a broadcast, everything of a custom call) is taken
// from the instruction's own shape after checking that it is possible.
// Errors: operands, attributes and called computations that do not fit together.
// Arities are the verifier's business and must hold already.
absl::StatusOr<Shape> InferShape(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_SHAPE_INFERENCE_H_
