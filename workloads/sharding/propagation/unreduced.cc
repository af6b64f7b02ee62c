#include "workloads/sharding/propagation/unreduced.h"

#include <algorithm>
#include <unordered_set>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/transforms/merge_reduces.h"
#include "workloads/sharding/rules/rolls.h"

namespace tpusim::sharding {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::PrimitiveType;

Axes Sorted(Axes axes) {
  std::ranges::sort(axes);
  return Joined(axes);
}

// The axes over which an array is unreduced; none of a tuple.
Axes UnreducedOf(const ShardedModule& sharded, const Instruction* value) {
  const std::vector<Sharding>& leaves = sharded.shardings.at(value).leaves;
  return leaves.size() == 1 && !value->shape().IsTuple() ? Sorted(leaves[0].unreduced) : Axes();
}

// Every number of the one type is one of the other.
bool Widens(PrimitiveType from, PrimitiveType to) {
  if (!hlo::IsFloating(from)) return false;
  if (to == PrimitiveType::kF64) return true;
  return to == PrimitiveType::kF32 && hlo::BitWidth(from) <= 16;
}

// Parts are rounded (or cut off) before they are added up: as the program says, if it does.
bool Rounds(const Instruction& op) {
  if (op.opcode() != Opcode::kConvert) return false;
  const PrimitiveType from = op.operand(0)->shape().element_type, to = op.shape().element_type;
  return from != to && !Widens(from, to);
}

bool AskedFor(const ShardedModule& sharded, const Instruction& op, const Axes& axes) {
  return std::any_of(op.users().begin(), op.users().end(), [&](const Instruction* user) {
    return sharded.constraints.contains(user) && UnreducedOf(sharded, user) == axes;
  });
}

// Whether a reducer makes a value of its parts.
bool Combines(const hlo::Computation& reducer, Reduction reduction) {
  const Instruction* root = reducer.root();
  return reducer.parameters().size() == 2 && root->opcode() == OpcodeOf(reduction) &&
         root->operand(0) != root->operand(1) && root->operand(0)->opcode() == Opcode::kParameter &&
         root->operand(1)->opcode() == Opcode::kParameter;
}

// The axes over which all operands that are unreduced at all are; none if they differ or
// if the op is not linear in them.
Axes CommonAxes(const ShardedModule& sharded, const Instruction& op, std::vector<char>* partial,
                Reduction* reduction) {
  Axes axes;
  partial->assign(op.operands().size(), 0);
  if (op.shape().IsTuple()) return {};
  for (size_t i = 0; i < op.operands().size(); ++i) {
    const Axes own = UnreducedOf(sharded, op.operand(i));
    if (own.empty()) continue;
    const Reduction by = sharded.shardings.at(op.operand(i)).leaves[0].reduction;
    if (!axes.empty() && (own != axes || by != *reduction)) return {};
    axes = own;
    *reduction = by;
    (*partial)[i] = 1;
  }
  return axes.empty() || !PassesParts(op, *partial, *reduction) ? Axes() : axes;
}

}  // namespace

Opcode OpcodeOf(Reduction reduction) {
  return reduction == Reduction::kMax   ? Opcode::kMaximum
         : reduction == Reduction::kMin ? Opcode::kMinimum
                                        : Opcode::kAdd;
}

Reduction ReductionOf(Opcode opcode) {
  return opcode == Opcode::kMaximum   ? Reduction::kMax
         : opcode == Opcode::kMinimum ? Reduction::kMin
                                      : Reduction::kSum;
}

bool PassesParts(const Instruction& op, const std::vector<char>& partial,
                 Reduction reduction) {
  const auto count = std::ranges::count(partial, 1);
  if (count == 0 || op.shape().IsTuple() || op.shape().element_type == PrimitiveType::kPred) {
    return false;
  }
  const bool only_first = count == 1 && partial[0];
  const bool sums = reduction == Reduction::kSum;
  switch (op.opcode()) {
    case Opcode::kAdd:
    case Opcode::kSubtract:
      return sums && count == static_cast<int64_t>(partial.size());
    case Opcode::kConcatenate:
      return count == static_cast<int64_t>(partial.size());
    case Opcode::kNegate:
      return sums;
    case Opcode::kBroadcast:
    case Opcode::kCopy:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kSlice:
    case Opcode::kTranspose:
      return true;
    case Opcode::kConvert:
      return sums && hlo::IsFloating(op.shape().element_type) ==
                         hlo::IsFloating(op.operand(0)->shape().element_type);
    case Opcode::kCustomCall:
      return op.attrs().custom_call_target() == kRollTarget;
    case Opcode::kMultiply:
    case Opcode::kDot:
      return sums && count == 1;
    case Opcode::kDivide:
      return sums && only_first && hlo::IsFloating(op.shape().element_type);
    case Opcode::kDynamicSlice:
    case Opcode::kGather:
      return only_first;
    case Opcode::kDynamicUpdateSlice:
      return count == 2 && partial[0] && partial[1];
    case Opcode::kSelect:
      return count == 2 && !partial[0];
    case Opcode::kPad:
      return only_first && (!sums || hlo::IsZero(*op.operand(1)));
    case Opcode::kReduce:
      // What a sum begins with would count once for each part.
      return only_first && partial.size() == 2 && (!sums || hlo::IsZero(*op.operand(1))) &&
             Combines(*op.called()[0], reduction);
    default:
      return false;
  }
}

std::vector<char> PartialOperands(const ShardedModule& sharded, const Instruction& op) {
  std::vector<char> partial;
  Reduction reduction = Reduction::kSum;
  const Axes axes = CommonAxes(sharded, op, &partial, &reduction);
  if (axes.empty() || axes != UnreducedOf(sharded, &op)) return {};
  return sharded.shardings.at(&op).leaves[0].reduction == reduction ? partial : std::vector<char>();
}

void CarryUnreduced(PropagationGraph& graph) {
  for (bool again = true; again;) {  // a loop within a loop
    again = false;
    for (const Op& op : graph.ops) {
      if (op.kind != OpKind::kLoopCarry) continue;
      Sharding& carry = graph.nodes[op.tensors.back().node].sharding;
      const Sharding& first = graph.nodes[op.tensors[0].node].sharding;
      const Axes axes = Sorted(first.unreduced);
      bool agreed = !axes.empty() && carry.unreduced.empty();
      for (int32_t i = 0; i < op.num_operands; ++i) {
        const Sharding& operand = graph.nodes[op.tensors[i].node].sharding;
        agreed &= Sorted(operand.unreduced) == axes && operand.reduction == first.reduction;
      }
      for (const DimSharding& dim : carry.dims) agreed &= !Overlap(dim.axes, axes);
      if (!agreed) continue;
      carry.unreduced = axes;
      carry.reduction = first.reduction;
      again = true;
    }
  }
}

void PassUnreduced(ShardedModule& sharded) {
  for (const hlo::Computation* computation : sharded.module->PostOrder()) {
    if (!sharded.shardings.contains(computation->root())) continue;
    const std::vector<Instruction*> order = computation->PostOrder();
    // Forward: what could be left unreduced.
    std::vector<const Instruction*> passing;
    std::unordered_set<const Instruction*> passes;  // looked up, never iterated
    for (const Instruction* op : order) {
      if (sharded.constraints.contains(op) || op->IsRoot() || op->shape().IsTuple()) continue;
      std::vector<char> partial;
      Reduction reduction = Reduction::kSum;
      const Axes axes = CommonAxes(sharded, *op, &partial, &reduction);
      Sharding& sharding = sharded.shardings[op].leaves[0];
      if (axes.empty() || !sharding.unreduced.empty()) continue;
      if (Rounds(*op) && !AskedFor(sharded, *op, axes)) continue;
      if (std::ranges::any_of(sharding.dims,
                              [&](const DimSharding& dim) { return Overlap(dim.axes, axes); })) {
        continue;
      }
      sharding.unreduced = axes;
      sharding.reduction = reduction;
      passing.push_back(op);
      passes.insert(op);
    }
    // Backward: what some user needs as a whole is a sum after all.
    for (auto op = passing.rbegin(); op != passing.rend(); ++op) {
      const bool kept =
          !(*op)->users().empty() &&
          std::all_of((*op)->users().begin(), (*op)->users().end(), [&](const Instruction* user) {
            return sharded.constraints.contains(user) || !PartialOperands(sharded, *user).empty();
          });
      if (kept) continue;
      Sharding& sharding = sharded.shardings[*op].leaves[0];
      sharding.unreduced.clear();
      sharding.reduction = Reduction::kSum;
    }
  }
}

}  // namespace tpusim::sharding
