#include "workloads/passes/collectives/operand_shape.h"

#include <cstdint>
#include <vector>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Whether an extent of `from`, dimensions [first, last), does not occur in `to`: the reshape keeps
// the dimensions before and behind them apart from these.
bool Splits(const hlo::Shape& from, const hlo::Shape& to, size_t first, size_t last) {
  int64_t before = 1;
  for (size_t d = 0; d < first; ++d) before *= from.dims[d];
  size_t at = 0;
  int64_t passed = 1;
  while (at < to.dims.size() && passed < before) passed *= to.dims[at++];
  if (passed != before) return false;  // Merged with what is before them: not these alone.
  for (size_t d = first; d < last; ++d) {
    while (at < to.dims.size() && to.dims[at] == 1) ++at;
    if (at == to.dims.size()) return false;
    if (to.dims[at] < from.dims[d]) return true;
    if (to.dims[at] > from.dims[d]) return false;
    ++at;
  }
  return false;
}

// Whether it is an element of a barrier's result, or made of one operand that is.
bool IsBehindBarrier(const Instruction& value) {
  const Instruction* i = &value;
  while (i->operands().size() == 1 && i->opcode() != Opcode::kOptBarrier) i = i->operand(0);
  return i->opcode() == Opcode::kOptBarrier;
}

}  // namespace

bool MultipliesReshaped(const Instruction& dot, const Instruction& operand) {
  if (dot.opcode() != Opcode::kDot || dot.IsRoot() || dot.users().size() != 1) return false;
  const Instruction& reader = *dot.users()[0];
  if (reader.opcode() != Opcode::kReshape || IsBehindBarrier(operand)) return false;
  const hlo::DotDims dims = hlo::GetDotDims(dot);
  const size_t batch = dims.lhs_batch.size();
  const size_t rank = dot.shape().dims.size();
  const size_t left = dot.operand(0)->shape().dims.size() - batch - dims.lhs_contracting.size();
  const bool is_left = dot.operand(0) == &operand;
  return Splits(dot.shape(), reader.shape(), is_left ? batch : batch + left,
                is_left ? batch + left : rank);
}

}  // namespace tpusim::passes
