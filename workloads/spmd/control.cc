// Loops, branches and manual regions.
#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/normalised/normalise.h"
#include "workloads/spmd/partitioner.h"

namespace tpusim::spmd {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using sharding::Sharding;

// The carry has one sharding: that of the result. Initial value and body bring
// theirs to it.
absl::StatusOr<Instruction*> Partitioner::PartitionWhile(const Instruction& global) {
  const std::vector<Sharding>& carry = Leaves(global);
  ASSIGN_OR_RETURN(Instruction * init, ReshardTuple(Local(global.operand(0)), global.shape(),
                                                    Leaves(*global.operand(0)), carry));
  Instruction* local = builder_->AddLikeSource(LocalShape(global.shape(), carry), {init});
  local->set_called({computations_.at(global.called()[0]), computations_.at(global.called()[1])});
  return local;
}

absl::StatusOr<Instruction*> Partitioner::PartitionConditional(const Instruction& global) {
  std::vector<Instruction*> operands;
  ASSIGN_OR_RETURN(
      Instruction * predicate,
      Reshard(Local(global.operand(0)), global.operand(0)->shape(), Only(*global.operand(0)),
              sharding::Replicated(global.operand(0)->shape().rank())));
  operands.push_back(predicate);
  std::vector<Computation*> branches;
  for (size_t b = 0; b < global.called().size(); ++b) {
    const Instruction* operand = global.operand(b + 1);
    const Instruction* parameter = global.called()[b]->parameters()[0];
    ASSIGN_OR_RETURN(Instruction * local, ReshardTuple(Local(operand), operand->shape(),
                                                       Leaves(*operand), Leaves(*parameter)));
    operands.push_back(local);
    branches.push_back(computations_.at(global.called()[b]));
  }
  Instruction* local =
      builder_->AddLikeSource(LocalShape(global.shape(), Leaves(global)), operands);
  local->set_called(std::move(branches));
  return local;
}

// The body says what a device does; it is put in place as it is.
absl::StatusOr<Instruction*> Partitioner::PartitionManualRegion(const Instruction& global) {
  const sharding::ManualRegion& region = in_.manual_regions.at(&global);
  std::vector<Instruction*> operands;
  for (size_t i = 0; i < global.operands().size(); ++i) {
    const Instruction* operand = global.operand(i);
    ASSIGN_OR_RETURN(Instruction * local,
                     Reshard(Local(operand), operand->shape(), Only(*operand), region.operands[i]));
    operands.push_back(local);
  }
  // A body that leaves axes to the compiler is partitioned already.
  Computation* body = region.partitioned
                          ? computations_.at(global.called()[0])
                          : builder_->module()->CloneComputation(*global.called()[0]);
  const hlo::Shape shape = body->root()->shape();
  Instruction* call = builder_->Add(Opcode::kCall, shape, std::move(operands), global.name());
  call->set_called({body});
  const int64_t first = builder_->module()->next_id();
  Instruction* root = builder_->module()->InlineCall(call);
  for (Instruction* inlined : builder_->computation()->AddedSince(first)) {
    sharding::PrefixOpNames(inlined, global.attrs().metadata());
  }
  if (region.result_index.empty()) {
    if (!global.shape().IsTuple()) return root;
    return builder_->Add(Opcode::kTuple, hlo::MakeTupleShape({root->shape()}), {root});
  }
  std::vector<Instruction*> elements;
  std::vector<hlo::Shape> shapes;
  for (int64_t index : region.result_index) {
    elements.push_back(builder_->Element(root, index));
    shapes.push_back(elements.back()->shape());
  }
  if (!global.shape().IsTuple()) return elements[0];
  return builder_->Add(Opcode::kTuple, hlo::MakeTupleShape(std::move(shapes)), elements);
}

}  // namespace tpusim::spmd
