#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
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
  const auto axes = hlo::FrontendAttribute(collective, hlo::kAxes);
  const auto split = hlo::FrontendAttribute(dot, hlo::kSplitOver);
  if (!axes.has_value() || !split.has_value()) return false;
  const std::set<std::string> of_collective = absl::StrSplit(*axes, ',');
  const std::set<std::string> of_dot = absl::StrSplit(*split, ',');
  return std::includes(of_dot.begin(), of_dot.end(), of_collective.begin(), of_collective.end());
}

bool IsOneReshard(const Instruction& i, Opcode opcode) {
  return i.opcode() == opcode && i.operands().size() == 1 && i.shape().IsArray() &&
         hlo::IsReshard(i) && !i.has_control_edges();
}

bool OnlyUse(const Instruction& value, const Instruction& user) {
  return value.users().size() == 1 && value.users()[0] == &user && !value.IsRoot();
}

// Whether no other all-gather makes what `gather` makes for `dot`, in the shape that it has there.
bool GatheredOnce(const Instruction& gather, const Instruction& dot) {
  const bool reshaped = MultipliesReshaped(dot, gather);
  const std::vector<Instruction*>& users = gather.operand(0)->users();
  return std::none_of(users.begin(), users.end(), [&](const Instruction* other) {
    if (other == &gather || other->opcode() != Opcode::kAllGather) return false;
    return std::none_of(other->users().begin(), other->users().end(), [&](const Instruction* user) {
      return MultipliesReshaped(*user, *other) != reshaped;
    });
  });
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

std::optional<WindowedEinsum> MatchGather(Instruction* dot, size_t operand) {
  Instruction* gather = dot->operand(operand);
  if (!IsOneReshard(*gather, Opcode::kAllGather) || !OnlyUse(*gather, *dot) ||
      dot->operand(0) == dot->operand(1) || !GatheredOnce(*gather, *dot) ||
      !SplitsWork(*gather, *dot)) {
    return std::nullopt;
  }
  WindowedEinsum einsum;
  einsum.dot = dot;
  einsum.collective = gather;
  einsum.operand = operand;
  einsum.dim = hlo::OnlyDimension(*gather);
  const OperandDims dims = DimsOf(*dot, operand);
  const int64_t contracted = IndexOf(dims.contracting, einsum.dim);
  const int64_t free = IndexOf(dims.free, einsum.dim);
  if (contracted >= 0) {
    einsum.form = WindowedEinsum::Form::kGatherContracted;
    einsum.other_dim = DimsOf(*dot, 1 - operand).contracting[contracted];
  } else if (free >= 0) {
    einsum.form = WindowedEinsum::Form::kGatherFree;
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

std::vector<WindowedEinsum> MatchWindowedEinsums(Instruction* dot) {
  std::vector<WindowedEinsum> forms;
  if (dot->opcode() != Opcode::kDot || dot->has_control_edges()) return forms;
  for (const size_t operand : {1, 0}) {
    if (const auto gather = MatchGather(dot, operand)) forms.push_back(*gather);
  }
  if (const auto scatter = MatchScatter(dot)) forms.push_back(*scatter);
  return forms;
}

}  // namespace tpusim::passes
