// One device's part of an op, once its operands are sharded as the op needs them.
//
// Most ops are themselves on smaller shapes. Ops whose attributes speak of
// global sizes or places have a function of their own; one op family per file,
// table.cc has opcode -> function.
#ifndef TPUSIM_WORKLOADS_SPMD_OPS_LOCAL_OP_H_
#define TPUSIM_WORKLOADS_SPMD_OPS_LOCAL_OP_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/spmd/builder.h"
#include "workloads/spmd/factor_choice.h"

namespace tpusim::spmd {

struct LocalOp {
  Builder& builder;                       // its source is the op
  const hlo::Instruction& global;
  const FactorChoice& choice;
  const std::vector<hlo::Instruction*>& operands;
  const hlo::Shape& shape;                // of this device's part
};

absl::StatusOr<hlo::Instruction*> MakeLocal(const LocalOp& op);

// The op with its attributes, on local shapes; what it calls is copied.
hlo::Instruction* SameOp(const LocalOp& op);

// How partial results of an op are combined. nullopt: they cannot be, the
// reduced dimensions must be whole.
struct Combiner {
  hlo::Opcode opcode = hlo::Opcode::kAdd;
  hlo::PrimitiveType type = hlo::PrimitiveType::kInvalid;
};
std::optional<Combiner> CombinerOf(const hlo::Instruction& global);

namespace ops {
absl::StatusOr<hlo::Instruction*> Iota(const LocalOp& op);
absl::StatusOr<hlo::Instruction*> Slice(const LocalOp& op);
absl::StatusOr<hlo::Instruction*> DynamicSlice(const LocalOp& op);
std::optional<Combiner> ReduceCombiner(const hlo::Instruction& reduce);
}  // namespace ops

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_OPS_LOCAL_OP_H_
