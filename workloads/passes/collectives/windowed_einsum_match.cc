#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "workloads/hlo/ir/annotations.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/transforms/merge_reduces.h"
#include "workloads/passes/collectives/operand_shape.h"
#include "workloads/passes/collectives/windowed_einsum.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Whether the axes of the collective split the work of the product; without, all members of a
// group would compute the same.
bool SplitsWork(const Instruction& collective, const Instruction& dot) {
  const auto axes = hlo::annotations::kAxes.Of(collective);
  const auto split = hlo::annotations::kSplitOver.Of(dot);
  if (!axes.has_value() || !split.has_value()) return false;
  const std::set<std::string> of_collective = absl::StrSplit(*axes, ',');
  const std::set<std::string> of_dot = absl::StrSplit(*split, ',');
  return std::includes(of_dot.begin(), of_dot.end(), of_collective.begin(), of_collective.end());
}

bool IsOneReshard(const Instruction& i, Opcode opcode) {
  return i.opcode() == opcode && i.operands().size() == 1 && i.shape().IsArray() &&
         hlo::annotations::kReshard.On(i) && !i.has_control_edges();
}

bool OnlyUse(const Instruction& value, const Instruction& user) {
  return value.users().size() == 1 && value.users()[0] == &user && !value.IsRoot();
}

int64_t IndexOf(const std::vector<int64_t>& dims, int64_t dim) {
  const auto found = std::find(dims.begin(), dims.end(), dim);
  return found == dims.end() ? -1 : found - dims.begin();
}

struct OperandDims {
  std::vector<int64_t> contracting, batch, free;
};

OperandDims DimsOf(const Instruction& dot, size_t operand) {
  const hlo::DotDims dims = hlo::GetDotDims(dot);
  OperandDims of = operand == 0 ? OperandDims{dims.lhs_contracting, dims.lhs_batch, {}}
                                : OperandDims{dims.rhs_contracting, dims.rhs_batch, {}};
  of.free = hlo::FreeDims(dot.operand(operand)->shape().rank(), of.contracting, of.batch);
  return of;
}

// Results begin with batch dimensions, then the free ones of the left operand.
int64_t FirstFreeOfResult(const Instruction& dot, size_t operand) {
  const OperandDims left = DimsOf(dot, 0);
  const size_t batch = left.batch.size();
  return static_cast<int64_t>(operand == 0 ? batch : batch + left.free.size());
}

// The sharding that `dot` would have an operand in.
std::string WantedAxes(const Instruction& dot, size_t operand) {
  const auto axes = hlo::annotations::kWantedAxes.Of(dot);
  if (!axes.has_value()) return "";
  const std::vector<std::string> of_operands = absl::StrSplit(*axes, '|');
  return operand < of_operands.size() ? of_operands[operand] : "";
}

// Whether something else needs what `gather` makes as operand `operand` of `dot`: not a product
// that has it in another shape or would have it in another sharding.
bool IsShared(const Instruction& gather, const Instruction& dot, size_t operand) {
  const bool reshaped = MultipliesReshaped(dot, gather);
  const std::string wanted = WantedAxes(dot, operand);
  const auto needs = [&](const Instruction& value, const Instruction& user) {
    if (&user == &dot) return false;
    if (user.opcode() != Opcode::kDot || user.operand(0) == user.operand(1)) return true;
    const size_t other = user.operand(0) == &value ? 0 : 1;
    return MultipliesReshaped(user, value) == reshaped && WantedAxes(user, other) == wanted;
  };
  const std::vector<Instruction*>& users = gather.operand(0)->users();
  return gather.IsRoot() || std::ranges::any_of(users, [&](const Instruction* value) {
           if (value->opcode() != Opcode::kAllGather) return false;
           return std::ranges::any_of(
               value->users(), [&](const Instruction* user) { return needs(*value, *user); });
         });
}

// Whether the product's result is a partial sum of which every device gets the whole, perhaps with
// others added to it first.
bool IsAllReduced(const Instruction& dot) {
  const Instruction* value = &dot;
  while (value->users().size() == 1) {
    value = value->users()[0];
    if (value->opcode() == Opcode::kAllReduce) return true;
    if (value->opcode() != Opcode::kAdd && value->opcode() != Opcode::kConvert) return false;
  }
  return false;
}

// Whether a transpose behind the product, or behind the reduce-scatter of its result, exchanges
// what comes of its left and of its right operand.
bool IsExchanged(const Instruction& dot) {
  const Instruction* value = &dot;
  while (value->users().size() == 1 && value->users()[0]->opcode() == Opcode::kReduceScatter) {
    value = value->users()[0];
  }
  if (value->users().size() != 1 || value->users()[0]->opcode() != Opcode::kTranspose) return false;
  const std::vector<int64_t> permutation = hlo::Dimensions(*value->users()[0]);
  const auto first_right = FirstFreeOfResult(dot, 1);
  const auto batch = static_cast<int64_t>(DimsOf(dot, 0).batch.size());
  return batch < static_cast<int64_t>(permutation.size()) && permutation[batch] >= first_right;
}

std::optional<WindowedEinsum> MatchGather(Instruction* dot, size_t operand) {
  Instruction* gather = dot->operand(operand);
  if (!IsOneReshard(*gather, Opcode::kAllGather) || dot->operand(0) == dot->operand(1) ||
      !SplitsWork(*gather, *dot)) {
    return std::nullopt;
  }
  WindowedEinsum einsum;
  einsum.dot = dot;
  einsum.collective = gather;
  einsum.operand = operand;
  einsum.dim = hlo::OnlyDimension(*gather);
  einsum.shared = IsShared(*gather, *dot, operand);
  const OperandDims dims = DimsOf(*dot, operand);
  const int64_t contracted = IndexOf(dims.contracting, einsum.dim);
  const int64_t free = IndexOf(dims.free, einsum.dim);
  if (contracted >= 0) {
    einsum.exchange = WindowedEinsum::Exchange::kGatherContracted;
    einsum.other_dim = DimsOf(*dot, 1 - operand).contracting[contracted];
  } else if (free >= 0) {
    einsum.exchange = WindowedEinsum::Exchange::kGatherFree;
    einsum.other_dim = FirstFreeOfResult(*dot, operand) + free;
  } else {
    return std::nullopt;
  }
  return einsum;
}

std::optional<WindowedEinsum> MatchScatter(Instruction* dot) {
  if (dot->users().size() != 1) return std::nullopt;
  Instruction* scatter = dot->users()[0];
  if (!IsOneReshard(*scatter, Opcode::kReduceScatter) || !OnlyUse(*dot, *scatter) ||
      hlo::ReducerOperation(*scatter->called()[0]) != Opcode::kAdd || !SplitsWork(*scatter, *dot)) {
    return std::nullopt;
  }
  WindowedEinsum einsum;
  einsum.dot = dot;
  einsum.collective = scatter;
  einsum.other_dim = hlo::OnlyDimension(*scatter);
  for (size_t operand = 0; operand < 2; ++operand) {
    const OperandDims dims = DimsOf(*dot, operand);
    const int64_t free = einsum.other_dim - FirstFreeOfResult(*dot, operand);
    if (free < 0 || free >= static_cast<int64_t>(dims.free.size())) continue;
    einsum.operand = operand;
    einsum.dim = dims.free[free];
    return einsum;
  }
  return std::nullopt;  // a batch dimension
}

}  // namespace

std::optional<WindowedEinsum> MatchWindowedEinsum(Instruction* dot) {
  if (dot->opcode() != Opcode::kDot || dot->has_control_edges()) return std::nullopt;
  const size_t right = IsExchanged(*dot) ? 0 : 1;
  std::optional<WindowedEinsum> form = MatchScatter(dot);
  const bool all_reduced = IsAllReduced(*dot);
  const auto is_free = [](const WindowedEinsum& einsum) {
    return einsum.exchange == WindowedEinsum::Exchange::kGatherFree;
  };
  const auto take_larger = [&](const std::optional<WindowedEinsum>& other) {
    if (!other || (all_reduced && is_free(*other))) return;
    if (!form || other->whole().ByteSize() > form->whole().ByteSize()) form = other;
  };
  take_larger(MatchGather(dot, right));
  const std::optional<WindowedEinsum> left = MatchGather(dot, 1 - right);
  if (!form || (left && !is_free(*left))) take_larger(left);
  return form;
}

}  // namespace tpusim::passes
