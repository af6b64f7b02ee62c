#include "workloads/hlo/transforms/split_async.h"

#include <string>
#include <vector>

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {

void ReplaceWithPair(Instruction* whole, Instruction* start, Instruction* done) {
  whole->MoveControlTo(start, done);
  *done->mutable_attrs().mutable_metadata() = whole->attrs().metadata();
  whole->ReplaceAllUsesWith(done);
  done->parent()->Remove(whole);
}

Instruction* WrapInAsync(Instruction* whole) {
  Computation* computation = whole->parent();
  Computation* inner = computation->parent()->AddComputation("async_" + whole->name());
  std::vector<Instruction*> parameters;
  std::vector<Shape> shapes;
  for (const Instruction* operand : whole->operands()) {
    const auto number = static_cast<int64_t>(parameters.size());
    parameters.push_back(
        inner->AddParameter(number, operand->shape(), "param_" + std::to_string(number)));
    shapes.push_back(operand->shape());
  }
  Instruction* wrapped =
      inner->Add(whole->opcode(), whole->shape(), parameters, whole->name(), whole);
  wrapped->set_called(whole->called());
  inner->set_root(wrapped);
  Instruction* start = computation->Add(
      Opcode::kAsyncStart,
      MakeTupleShape({MakeTupleShape(shapes), whole->shape(), MakeShape(PrimitiveType::kU32, {})}),
      whole->operands(), whole->name() + "-start");
  start->set_called({inner});
  *start->mutable_attrs().mutable_metadata() = whole->attrs().metadata();
  ReplaceWithPair(
      whole, start,
      computation->Add(Opcode::kAsyncDone, whole->shape(), {start}, whole->name() + "-done"));
  return start;
}

}  // namespace tpusim::hlo
