#include "workloads/hlo/transforms/merge_reduces.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/walk.h"
#include "workloads/hlo/transforms/extents_of_one.h"

namespace tpusim::hlo {
namespace {

bool IsLowest(const Instruction& value, bool highest) {
  const PrimitiveType type = value.shape().element_type;
  if (type == PrimitiveType::kPred) return ScalarIntConstant(value) == (highest ? 1 : 0);
  if (IsIntegral(type)) {
    const int64_t bits = BitWidth(type);
    if (bits > 32) return false;
    const bool is_signed = IsSignedIntegral(type);
    const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
    const int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
    return ScalarIntConstant(value) == (highest ? high : low);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  return ScalarConstant(value) == (highest ? infinity : -infinity);
}

bool IsOneReduce(const Instruction& i) {
  return i.opcode() == Opcode::kReduce && i.operands().size() == 2 && i.called().size() == 1;
}

bool Contains(const std::vector<int64_t>& dims, int64_t d) {
  return std::ranges::find(dims, d) != dims.end();
}

// `like` over these dimensions of `value`, of which the others are left, in the shape of `like`.
Instruction* ReduceOver(const Instruction& like, Instruction* value,
                        const std::vector<int64_t>& dims) {
  if (dims.empty()) {
    const auto op = ReducerOperation(*like.called()[0]);
    if (!op.has_value() || !IsIdentity(*op, *like.operand(1))) return nullptr;
    return Reshaped(value, like.shape().dims, &like);
  }
  std::vector<int64_t> left;
  for (int64_t d = 0; d < value->shape().rank(); ++d) {
    if (!Contains(dims, d)) left.push_back(value->shape().dims[d]);
  }
  Instruction* reduce =
      like.parent()->Add(Opcode::kReduce, MakeShape(like.shape().element_type, left),
                         {value, like.operand(1)}, like.name(), &like);
  reduce->set_called(like.called());
  SetDimensions(reduce, dims);
  return Reshaped(reduce, like.shape().dims, &like);
}

}  // namespace

std::optional<Opcode> ReducerOperation(const Computation& reducer) {
  const Instruction* root = reducer.root();
  if (root == nullptr || root->operands().size() != 2 || !IsElementwise(root->opcode()) ||
      root->operand(0) == root->operand(1)) {
    return std::nullopt;
  }
  for (const Instruction* operand : root->operands()) {
    if (operand->opcode() != Opcode::kParameter) return std::nullopt;
  }
  return root->opcode();
}

bool IsZero(const Instruction& value) {
  const Instruction* from = &value;
  while (from->opcode() == Opcode::kConvert || from->opcode() == Opcode::kCopy ||
         from->opcode() == Opcode::kBroadcast) {
    from = from->operand(0);
  }
  return ScalarConstant(*from) == 0.0;
}

bool IsIdentity(Opcode op, const Instruction& value) {
  switch (op) {
    case Opcode::kAdd:
    case Opcode::kXor:
      return ScalarConstant(value) == 0.0;
    case Opcode::kMultiply:
      return ScalarConstant(value) == 1.0;
    case Opcode::kMaximum:
      return IsLowest(value, false);
    case Opcode::kMinimum:
      return IsLowest(value, true);
    case Opcode::kOr:
      return ScalarIntConstant(value) == 0;
    case Opcode::kAnd:
      return value.shape().element_type == PrimitiveType::kPred && ScalarIntConstant(value) == 1;
    default:
      return false;
  }
}

bool MergeWithOperand(Instruction* outer) {
  if (!IsOneReduce(*outer)) return false;
  const Instruction* inner = outer->operand(0);
  if (!IsOneReduce(*inner) || inner->users().size() != 1 || inner->IsRoot() ||
      inner->has_control_edges()) {
    return false;
  }
  const auto op = ReducerOperation(*outer->called()[0]);
  if (!op.has_value() || op != ReducerOperation(*inner->called()[0]) ||
      !IsIdentity(*op, *outer->operand(1)) || !IsIdentity(*op, *inner->operand(1))) {
    return false;
  }
  // Dimensions of the inner operand; those of its result are what it leaves of them.
  const std::vector<int64_t> gone = Dimensions(*inner);
  std::vector<int64_t> kept, all = gone;
  for (int64_t d = 0; d < inner->operand(0)->shape().rank(); ++d) {
    if (std::ranges::find(gone, d) == gone.end()) kept.push_back(d);
  }
  for (int64_t d : Dimensions(*outer)) all.push_back(kept[d]);
  std::ranges::sort(all);
  outer->ReplaceOperand(0, inner->operand(0));
  SetDimensions(outer, all);
  return true;
}

Instruction* ReduceWithoutOnes(Instruction* reduce) {
  if (!IsOneReduce(*reduce)) return nullptr;
  Instruction* value = reduce->operand(0);
  const std::vector<int64_t> all = Dimensions(*reduce);
  std::vector<int64_t> left, dims;
  bool any = all.empty();
  for (int64_t d = 0; d < value->shape().rank(); ++d) {
    const bool gone = Contains(all, d);
    if (gone && value->shape().dims[d] == 1) {
      any = true;
      continue;
    }
    if (gone) dims.push_back(static_cast<int64_t>(left.size()));
    left.push_back(value->shape().dims[d]);
  }
  if (!any || value->shape().ElementCount() == 0) return nullptr;
  // As it may come to nothing, without a reshape before.
  if (dims.empty()) return ReduceOver(*reduce, value, dims);
  return ReduceOver(*reduce, Reshaped(value, left, reduce), dims);
}

Instruction* ReduceOfReshape(Instruction* reduce) {
  if (!IsOneReduce(*reduce)) return nullptr;
  const Instruction* reshape = reduce->operand(0);
  if (reshape->opcode() != Opcode::kReshape || reshape->shape().ElementCount() == 0) return nullptr;
  Instruction* value = reshape->operand(0);
  const auto match = MatchWithoutOnes(value->shape(), reshape->shape());
  if (!match.has_value()) return nullptr;
  const std::vector<int64_t> all = Dimensions(*reduce);
  std::vector<int64_t> dims;
  for (size_t d = 0; d < match->size(); ++d) {
    if ((*match)[d] >= 0 && Contains(all, (*match)[d])) dims.push_back(static_cast<int64_t>(d));
  }
  return ReduceOver(*reduce, value, dims);
}

bool MergeReduces(Computation* computation, const std::function<bool(const Instruction*)>& fixed) {
  bool changed = false;
  for (Instruction* i : Walk(computation->PostOrder())) {
    if (!IsOneReduce(*i) || fixed(i) || i->has_control_edges()) continue;
    Instruction* reduce = i;
    const int64_t first = i->id();
    while (IsOneReduce(*reduce)) {
      Instruction* operand = reduce->operand(0);
      if (fixed(operand)) break;
      if (MergeWithOperand(reduce)) {
        computation->Remove(operand);
        changed = true;
        continue;
      }
      Instruction* value = ReduceOfReshape(reduce);
      if (value == nullptr) break;
      reduce->ReplaceAllUsesWith(value);
      computation->Remove(reduce);
      if (operand->users().empty() && !operand->has_control_edges()) computation->Remove(operand);
      changed = true;
      reduce = value->opcode() == Opcode::kReshape ? value->operand(0) : value;
      if (reduce->id() < first) break;  // nothing was left to reduce
    }
  }
  return changed;
}

}  // namespace tpusim::hlo
