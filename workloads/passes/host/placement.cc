
#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/passes/host/host.h"
#include "workloads/passes/host/reasons.h"

namespace tpusim::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// Each of these returns whether anything changed.
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

// Whether a slice of an array on the host only names a part of it: what uses it wants it on
// the host, or slices it again and moves less. Else the slice is what moves.
bool IsView(const Instruction& slice) {
  bool sliced = true;
  std::vector<const Instruction*> work = {&slice};
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    for (const Instruction* user : i->users()) {
      switch (user->opcode()) {
        case Opcode::kReshape:
        case Opcode::kBitcast:
          work.push_back(user);
          break;
        case Opcode::kSlice:
        case Opcode::kDynamicSlice:
          if (user->operand(0) != i) sliced = false;
          break;
        case Opcode::kDynamicUpdateSlice:
          if (hlo::OnHost(user->operand(0)->shape())) return true;
          sliced = false;
          break;
        default:
          if (hlo::PlacementOf(*user) == hlo::Placement::kToHost) return true;
          sliced = false;
          break;
      }
    }
  }
  return sliced && !slice.users().empty();
}

bool Visit(Instruction* i) {
  if (const auto placement = hlo::PlacementOf(*i)) {
    return SetSpace(i, *placement == hlo::Placement::kToHost ? hlo::kHostSpace : hlo::kHbmSpace);
  }
  bool changed = false;
  switch (i->opcode()) {
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
      if (hlo::OnHost(i->operand(0)->shape())) {
        changed = SetSpace(i, IsView(*i) ? hlo::kHostSpace : hlo::kHbmSpace);
      }
      break;
    case Opcode::kReshape:
    case Opcode::kDynamicUpdateSlice:
      // What names or updates an array on the host is there too; elsewhere it is made anew.
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

// Whether a placement has its value where it is to be.
bool MovesNothing(const Instruction& i) {
  return hlo::PlacementOf(i) && hlo::OnHost(i.shape()) == hlo::OnHost(i.operand(0)->shape());
}

}  // namespace

absl::StatusOr<bool> AssignMemorySpaces(hlo::Module& module, const PassContext& context) {
  const hlo::CallGraph& calls = context.facts->CallsOf(module);
  bool changed = PlaceStacksOnHost(calls, context.facts->Loops(module));
  // Callers before callees, operands before users.
  for (Computation* computation : calls.control()) {
    for (Instruction* i : computation->PostOrder()) {
      if (!Visit(i)) continue;
      context.records.Add(reasons::kSpaceFollows, i->name(),
                          {{"shape", i->shape().ToString(true)}});
      changed = true;
    }
  }
  for (Computation* computation : calls.control()) {
    for (Instruction* i : hlo::Walk(computation->PostOrder())) {
      if (!MovesNothing(*i)) continue;
      context.records.Add(reasons::kPlacedAlready, i->name(), {{"value", i->operand(0)->name()}});
      i->ReplaceAllUsesWith(i->operand(0));
      computation->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tpusim::passes
