#include "workloads/passes/compiled/start_of.h"

#include <utility>

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {

hlo::Instruction* StartOf(const hlo::Instruction& collective,
                          const std::vector<hlo::Instruction*>& operands, const hlo::Shape& result,
                          hlo::Computation* computation) {
  hlo::Computation* inner = computation->parent()->AddComputation("async_" + collective.name());
  std::vector<hlo::Shape> shapes;
  std::vector<hlo::Instruction*> parameters;
  for (const hlo::Instruction* operand : operands) {
    parameters.push_back(inner->AddParameter(static_cast<int64_t>(parameters.size()),
                                             operand->shape(), operand->name()));
    shapes.push_back(operand->shape());
  }
  hlo::Instruction* wrapped =
      inner->Add(collective.opcode(), result, parameters, collective.name(), &collective);
  wrapped->set_called(collective.called());
  inner->set_root(wrapped);
  hlo::Instruction* start =
      computation->Add(hlo::Opcode::kAsyncStart,
                       hlo::MakeTupleShape({hlo::MakeTupleShape(std::move(shapes)), result,
                                            hlo::MakeShape(hlo::PrimitiveType::kU32, {})}),
                       operands, collective.name() + "-start");
  start->set_called({inner});
  *start->mutable_attrs().mutable_metadata() = collective.attrs().metadata();
  return start;
}

}  // namespace tpusim::passes
