#include "workloads/passes/memory/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

// These say whether anything changed.
bool SetSpace(Instruction* i, int64_t space) {
  Shape shape = i->shape();
  if (shape.IsTuple() || shape.layout.memory_space == space) return false;
  shape.layout.memory_space = space;
  i->set_shape(std::move(shape));
  return true;
}

// `to` with the memory spaces of `from`, leaf by leaf where they correspond.
bool CopySpaces(const Shape& from, Shape& to) {
  if (from.IsTuple() != to.IsTuple()) return false;
  if (!from.IsTuple()) {
    return std::exchange(to.layout.memory_space, from.layout.memory_space) !=
           from.layout.memory_space;
  }
  bool changed = false;
  for (size_t n = 0; n < std::min(from.tuple.size(), to.tuple.size()); ++n) {
    changed = CopySpaces(from.tuple[n], to.tuple[n]) || changed;
  }
  return changed;
}

bool TakeSpaces(Instruction* i, const Shape& from) {
  Shape shape = i->shape();
  if (!CopySpaces(from, shape)) return false;
  i->set_shape(std::move(shape));
  return true;
}

bool GiveToParameter(Computation* callee, size_t number, const Shape& from) {
  const std::vector<Instruction*> parameters = callee->parameters();
  return number < parameters.size() && TakeSpaces(parameters[number], from);
}

bool Visit(Instruction* i) {
  if (const auto placement = hlo::PlacementOf(*i)) {
    return SetSpace(i, *placement == hlo::Placement::kToHost ? hlo::kHostSpace : hlo::kHbmSpace);
  }
  bool changed = false;
  switch (i->opcode()) {
    case Opcode::kReshape:
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
      // A part of what lives on the host is there too; elsewhere it is made anew.
      if (hlo::OnHost(i->operand(0)->shape()) || hlo::OnHost(i->shape())) {
        changed = TakeSpaces(i, i->operand(0)->shape());
      }
      break;
    case Opcode::kBitcast:
    case Opcode::kOptBarrier:
    case Opcode::kCopyDone:
      changed = TakeSpaces(i, i->opcode() == Opcode::kCopyDone && i->operand(0)->shape().IsTuple()
                                  ? i->operand(0)->shape().tuple[0]
                                  : i->operand(0)->shape());
      break;
    case Opcode::kTuple: {
      Shape shape = i->shape();
      for (size_t n = 0; n < shape.tuple.size(); ++n) {
        changed = CopySpaces(i->operand(n)->shape(), shape.tuple[n]) || changed;
      }
      if (changed) i->set_shape(std::move(shape));
      break;
    }
    case Opcode::kGetTupleElement:
      changed = TakeSpaces(i, i->operand(0)->shape().tuple[i->attrs().tuple_index()]);
      break;
    case Opcode::kWhile:
      // A carry stays where it started.
      changed = TakeSpaces(i, i->operand(0)->shape());
      for (Computation* c : i->called()) {
        changed = GiveToParameter(c, 0, i->operand(0)->shape()) || changed;
      }
      break;
    case Opcode::kConditional:
      for (size_t b = 0; b < i->called().size(); ++b) {
        changed = GiveToParameter(i->called()[b], 0, i->operand(b + 1)->shape()) || changed;
      }
      break;
    case Opcode::kCall:
      for (size_t n = 0; n < i->operands().size(); ++n) {
        changed = GiveToParameter(i->called()[0], n, i->operand(n)->shape()) || changed;
      }
      break;
    default:
      break;
  }
  return changed;
}

}  // namespace

absl::Status SetArgumentMemories(hlo::Module& module,
                                 const std::vector<std::string>& argument_memory_kinds) {
  const std::vector<Instruction*> arguments = module.entry()->parameters();
  if (!argument_memory_kinds.empty() && argument_memory_kinds.size() != arguments.size()) {
    return UserError(fmt::format("the workload names memory kinds for {} arguments and has {}",
                                 argument_memory_kinds.size(), arguments.size()));
  }
  for (size_t n = 0; n < argument_memory_kinds.size(); ++n) {
    if (hlo::IsHostMemoryKind(argument_memory_kinds[n])) SetSpace(arguments[n], hlo::kHostSpace);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> AssignMemorySpaces(hlo::Module& module, const PassContext&) {
  bool changed = false;
  // Callers before callees, operands before users.
  for (Computation* computation : ControlComputations(module)) {
    for (Instruction* i : computation->PostOrder()) changed = Visit(i) || changed;
  }
  return changed;
}

}  // namespace tpusim::passes
