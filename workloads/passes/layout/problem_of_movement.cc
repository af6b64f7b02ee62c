// Transposes, slices and what else takes arrays apart and together; gathers and scatters.

#include <algorithm>
#include <utility>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
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
  AddTerm(Term::Kind::kMemory, result, i.shape(), {});
}

// Dimensions along which elements do not keep their place modulo the lanes.
Dims ProblemBuilder::Shifted(const Instruction& i) const {
  const int64_t lanes = target_.chip().vpu.lanes;
  const int64_t rank = i.shape().rank();
  Dims shifted;
  for (int64_t d = 0; d < rank; ++d) {
    const auto at = static_cast<size_t>(d);
    bool shifts = false;
    switch (i.opcode()) {
      case Opcode::kSlice: {
        const hlo::SliceDim dim = hlo::GetSlice(i)[at];
        shifts = dim.start % lanes != 0 || dim.stride != 1;
        break;
      }
      case Opcode::kPad: {
        const hlo::PaddingDim dim = hlo::GetPadding(i)[at];
        shifts = dim.low % lanes != 0 || dim.interior != 0;
        break;
      }
      case Opcode::kConcatenate:
        shifts = hlo::OnlyDimension(i) == d &&
                 std::any_of(i.operands().begin(), i.operands().end() - 1,
                             [&](const auto* o) { return o->shape().dims[at] % lanes != 0; });
        break;
      case Opcode::kDynamicSlice:
        shifts = i.shape().dims[at] != i.operand(0)->shape().dims[at];
        break;
      case Opcode::kDynamicUpdateSlice:
        shifts = i.shape().dims[at] != i.operand(1)->shape().dims[at];
        break;
      default: {
        const Dims dims = hlo::Dimensions(i);
        shifts = std::find(dims.begin(), dims.end(), d) != dims.end();
      }
    }
    if (shifts) shifted.push_back(d);
  }
  return shifted;
}

void ProblemBuilder::AddPieces(const Instruction& i) {
  for (const Instruction* o : i.operands()) {
    if (o->shape().IsArray() && o->shape().rank() == i.shape().rank() && !TakesOwnOrder(i, *o)) {
      Unite(Seen(*o), Made(i));
    }
  }
  const Instruction& moved = i.opcode() == Opcode::kDynamicUpdateSlice ? *i.operand(1) : i;
  AddTerm(Term::Kind::kCrossLanes, Made(i), moved.shape(), Shifted(i));
}

void ProblemBuilder::AddIndexed(const Instruction& i) {
  const Shape& operand = i.operand(0)->shape();
  Dims slice(operand.dims.size(), 1);
  const bool gathers = i.opcode() == Opcode::kGather;
  const size_t arrays = gathers ? 1 : i.operands().size() / 2;
  const Instruction& indices = *i.operand(gathers ? 1 : arrays);
  int64_t vector_dim = 0;
  if (gathers) {
    const auto& numbers = i.attrs().gather_dimension_numbers();
    vector_dim = numbers.index_vector_dim();
    slice.assign(i.attrs().gather_slice_sizes().begin(), i.attrs().gather_slice_sizes().end());
    // Dimensions of a slice are dimensions of the result.
    Dims map(operand.dims.size(), -1);
    int next = 0;
    for (int64_t d = 0; d < operand.rank(); ++d) {
      const auto dropped = [&](const auto& dims) {
        return std::find(dims.begin(), dims.end(), d) != dims.end();
      };
      if (dropped(numbers.collapsed_slice_dims()) || dropped(numbers.operand_batching_dims())) {
        continue;
      }
      if (next < numbers.offset_dims_size()) {
        map[static_cast<size_t>(d)] = numbers.offset_dims(next++);
      }
    }
    AddLink(Link::Kind::kLanes, Seen(*i.operand(0)), Made(i), operand, i.shape(), map);
  } else {
    const auto& numbers = i.attrs().scatter_dimension_numbers();
    vector_dim = numbers.index_vector_dim();
    const Instruction& updates = *i.operand(arrays + 1);
    Dims map(updates.shape().dims.size(), -1);
    int next = 0;
    for (int64_t d = 0; d < operand.rank(); ++d) {
      const auto dropped = [&](const auto& dims) {
        return std::find(dims.begin(), dims.end(), d) != dims.end();
      };
      if (dropped(numbers.inserted_window_dims()) || dropped(numbers.input_batching_dims())) {
        continue;
      }
      if (next >= numbers.update_window_dims_size()) break;
      const auto of_update = static_cast<size_t>(numbers.update_window_dims(next++));
      slice[static_cast<size_t>(d)] = updates.shape().dims[of_update];
      map[of_update] = d;
    }
    for (size_t n = 0; n < arrays; ++n) {
      Unite(Seen(*i.operand(0)), Seen(*i.operand(n)));
      Unite(Seen(*i.operand(n)), Made(i, n));
      AddLink(Link::Kind::kLanes, Seen(*i.operand(arrays + 1 + n)), Made(i, n),
              i.operand(arrays + 1 + n)->shape(), operand, map);
    }
  }
  int64_t count = indices.shape().ElementCount();
  if (vector_dim < indices.shape().rank()) {
    count /= std::max<int64_t>(1, indices.shape().dims[static_cast<size_t>(vector_dim)]);
  }
  AddTerm(Term::Kind::kIndexed, Seen(*i.operand(0)), operand, slice,
          static_cast<double>(count) * static_cast<double>(arrays));
}

}  // namespace tpusim::passes
