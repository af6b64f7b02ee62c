#include "workloads/passes/memory/placement.h"

#include <fmt/format.h>

#include "configs/status_macros.h"
#include "workloads/hlo/analysis/control.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

void SetSpace(Instruction* i, int64_t space) {
  Shape shape = i->shape();
  if (shape.IsTuple() || shape.layout.memory_space == space) return;
  shape.layout.memory_space = space;
  i->set_shape(std::move(shape));
}

// `to` with the memory spaces of `from`, leaf by leaf where they correspond.
void CopySpaces(const Shape& from, Shape& to) {
  if (from.IsTuple() != to.IsTuple()) return;
  if (!from.IsTuple()) {
    to.layout.memory_space = from.layout.memory_space;
    return;
  }
  for (size_t n = 0; n < std::min(from.tuple.size(), to.tuple.size()); ++n) {
    CopySpaces(from.tuple[n], to.tuple[n]);
  }
}

void TakeSpaces(Instruction* i, const Shape& from) {
  Shape shape = i->shape();
  CopySpaces(from, shape);
  i->set_shape(std::move(shape));
}

void GiveToParameter(Computation* callee, size_t number, const Shape& from) {
  const std::vector<Instruction*> parameters = callee->parameters();
  if (number < parameters.size()) TakeSpaces(parameters[number], from);
}

void Visit(Instruction* i) {
  if (const auto placement = hlo::PlacementOf(*i)) {
    SetSpace(i, *placement == hlo::Placement::kToHost ? hlo::kHostSpace : hlo::kHbmSpace);
    return;
  }
  switch (i->opcode()) {
    case Opcode::kReshape:
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
      // A part of what lives on the host is there too; elsewhere it is made anew.
      if (hlo::OnHost(i->operand(0)->shape()) || hlo::OnHost(i->shape())) {
        TakeSpaces(i, i->operand(0)->shape());
      }
      break;
    case Opcode::kBitcast:
    case Opcode::kOptBarrier:
    case Opcode::kCopyDone:
      TakeSpaces(i, i->opcode() == Opcode::kCopyDone && i->operand(0)->shape().IsTuple()
                        ? i->operand(0)->shape().tuple[0]
                        : i->operand(0)->shape());
      break;
    case Opcode::kTuple: {
      Shape shape = i->shape();
      for (size_t n = 0; n < shape.tuple.size(); ++n) {
        CopySpaces(i->operand(n)->shape(), shape.tuple[n]);
      }
      i->set_shape(std::move(shape));
      break;
    }
    case Opcode::kGetTupleElement:
      TakeSpaces(i, i->operand(0)->shape().tuple[i->attrs().tuple_index()]);
      break;
    case Opcode::kWhile:
      // A carry stays where it started.
      TakeSpaces(i, i->operand(0)->shape());
      for (Computation* c : i->called()) GiveToParameter(c, 0, i->operand(0)->shape());
      break;
    case Opcode::kConditional:
      for (size_t b = 0; b < i->called().size(); ++b) {
        GiveToParameter(i->called()[b], 0, i->operand(b + 1)->shape());
      }
      break;
    case Opcode::kCall:
      for (size_t n = 0; n < i->operands().size(); ++n) {
        GiveToParameter(i->called()[0], n, i->operand(n)->shape());
      }
      break;
    default:
      break;
  }
}

}  // namespace

absl::Status AssignMemorySpaces(hlo::Module& module,
                                const std::vector<std::string>& argument_memory_kinds) {
  const std::vector<Instruction*> arguments = module.entry()->parameters();
  if (!argument_memory_kinds.empty() && argument_memory_kinds.size() != arguments.size()) {
    return UserError(fmt::format("the workload names memory kinds for {} arguments and has {}",
                                 argument_memory_kinds.size(), arguments.size()));
  }
  for (size_t n = 0; n < argument_memory_kinds.size(); ++n) {
    if (hlo::IsHostMemoryKind(argument_memory_kinds[n])) SetSpace(arguments[n], hlo::kHostSpace);
  }
  // Callers before callees, operands before users.
  for (Computation* computation : ControlComputations(module)) {
    for (Instruction* i : computation->PostOrder()) Visit(i);
  }
  return absl::OkStatus();
}

}  // namespace tpusim::passes
