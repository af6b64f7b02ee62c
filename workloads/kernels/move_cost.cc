// Operations that only move elements: how many registers pass the VALUs (selects
// at the seams) and how many have to cross lanes or sublanes.

#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/kernel_view.h"
#include "workloads/kernels/vector_cost.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Do pieces along the minor dimension start inside a register?
bool ShiftsLanes(const Instruction& i, int64_t lanes) {
  const int64_t minor = i.shape().rank() - 1;
  if (minor < 0) return false;
  switch (i.opcode()) {
    case Opcode::kSlice: {
      const hlo::SliceDim dim = hlo::GetSlice(i)[minor];
      return dim.start % lanes != 0 || dim.stride != 1;
    }
    case Opcode::kPad: {
      const hlo::PaddingDim dim = hlo::GetPadding(i)[minor];
      return dim.low % lanes != 0 || dim.interior != 0;
    }
    case Opcode::kConcatenate: {
      if (hlo::OnlyDimension(i) != minor) return false;
      for (size_t n = 0; n + 1 < i.operands().size(); ++n) {
        if (i.operand(n)->shape().dims[minor] % lanes != 0) return true;
      }
      return false;
    }
    case Opcode::kDynamicSlice:
      // The start is known at run time only.
      return i.shape().dims[minor] != i.operand(0)->shape().dims[minor];
    case Opcode::kDynamicUpdateSlice:
      return i.shape().dims[minor] != i.operand(1)->shape().dims[minor];
    case Opcode::kReverse: {
      const std::vector<int64_t> dims = hlo::Dimensions(i);
      return std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return d >= minor - 1; });
    }
    case Opcode::kTranspose: {
      // Lanes stay lanes if the minor dimension stays; then only addresses change.
      const std::vector<int64_t> dims = hlo::Dimensions(i);
      return !dims.empty() && dims.back() != minor;
    }
    case Opcode::kReshape:
      return true;
    default:
      return false;
  }
}

}  // namespace

VectorWork MoveWork(const Instruction& i, const target::Target& target) {
  const hlo::Shape& moved =
      i.opcode() == Opcode::kDynamicUpdateSlice ? i.operand(1)->shape() : i.shape();
  const double registers = static_cast<double>(VectorRegisters(target, moved));
  VectorWork work;
  if (i.opcode() == Opcode::kBroadcast) {
    // A value from the lanes of one register needs a rotation to reach the
    // others; one from whole rows or a scalar is a splat.
    const std::vector<int64_t> dims = hlo::Dimensions(i);
    const bool across_lanes =
        i.operand(0)->shape().rank() > 0 &&
        std::find(dims.begin(), dims.end(), i.shape().rank() - 1) == dims.end();
    if (!across_lanes) return work;
    work.valu = registers;
    work.xlu = static_cast<double>(VectorRegisters(target, i.operand(0)->shape()));
    return work;
  }
  const bool shifts = ShiftsLanes(i, target.chip().vpu.lanes);
  const bool relayout = i.opcode() == Opcode::kReshape || i.opcode() == Opcode::kTranspose ||
                        i.opcode() == Opcode::kReverse;
  if (!relayout) work.valu = registers;
  if (shifts) work.xlu = registers;
  return work;
}

}  // namespace tpusim::kernels
