// Transposes, slices and what else takes arrays apart and together; gathers and scatters.

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/needed_share.h"
#include "workloads/passes/layout/problem_builder.h"

namespace tpusim::passes {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

void ProblemBuilder::AddTranspose(const Instruction& i) {
  trips_ = trips_of_.at(i.parent());
  const int32_t operand = Seen(*i.operand(0)), result = Made(i);
  if (operand < 0) return;
  // Dimension d of the result is dims[d] of the operand.
  const Dims dims = hlo::Dimensions(i);
  if (problem_.classes.Unite(result, operand, dims)) return;
  // It lies in one class with its operand, and otherwise: it moves.
  AddTerm(TermKind::kMemory, result, i.shape(), {});
}

void ProblemBuilder::AddPieces(const Instruction& i) {
  for (const Instruction* o : i.operands()) {
    if (o->shape().IsArray() && o->shape().rank() == i.shape().rank() && !TakesOwnOrder(i, *o)) {
      Unite(Seen(*o), Made(i));
    }
  }
  Dims shifted;
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    if (kernels::ShiftsAlong(i, d, target_.chip().vpu.lanes)) shifted.push_back(d);
  }
  const Instruction& moved = i.opcode() == Opcode::kDynamicUpdateSlice ? *i.operand(1) : i;
  AddTerm(TermKind::kCrossLanes, Made(i), moved.shape(), shifted);
  // What comes from the host lies as it did there, and is turned on the device: the TPU compiler
  // has a copy to row-major behind dynamic-slices of stacks that lie otherwise.
  if (i.opcode() == hlo::Opcode::kDynamicSlice && OnHost(i.operand(0)->shape()) &&
      !OnHost(i.shape())) {
    Separate(i, LinkKind::kMove);
    FixRowMajor(Seen(i));
  }
}

void ProblemBuilder::AddIndexed(const Instruction& i) {
  const Shape& operand = i.operand(0)->shape();
  const kernels::IndexedSlices slices = kernels::SlicesOf(i);
  size_t arrays = 1;
  if (i.opcode() == Opcode::kGather) {
    // Dimensions of a slice are dimensions of the result.
    AddLink(LinkKind::kLanes, Seen(*i.operand(0)), Made(i), operand, i.shape(), slices.windows);
  } else {
    arrays = i.operands().size() / 2;
    Dims map(i.operand(arrays + 1)->shape().dims.size(), -1);
    for (size_t d = 0; d < slices.windows.size(); ++d) {
      const int64_t of_update = slices.windows[d];
      if (of_update >= 0) map[static_cast<size_t>(of_update)] = static_cast<int64_t>(d);
    }
    for (size_t n = 0; n < arrays; ++n) {
      Unite(Seen(*i.operand(0)), Seen(*i.operand(n)));
      Unite(Seen(*i.operand(n)), Made(i, n));
      AddLink(LinkKind::kLanes, Seen(*i.operand(arrays + 1 + n)), Made(i, n),
              i.operand(arrays + 1 + n)->shape(), operand, map);
    }
  }
  AddTerm(TermKind::kIndexed, Seen(*i.operand(0)), operand, slices.extents,
          static_cast<double>(slices.count) * static_cast<double>(arrays));
}

}  // namespace tpusim::passes
