// Operations that only move elements: how many registers pass the VALUs (selects
// at the seams) and how many have to cross lanes or sublanes.

#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/kernel_view.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Do pieces along the minor dimension start inside a register?
bool ShiftsLanes(const Instruction& i, int64_t lanes) {
  const int64_t minor = hlo::MinorDimension(i.shape());
  if (minor < 0) return false;
  switch (i.opcode()) {
    case Opcode::kReverse: {
      const std::vector<int64_t> dims = hlo::Dimensions(i);
      return std::any_of(dims.begin(), dims.end(),
                         [&](int64_t d) { return hlo::PlaceFromMinor(i.shape(), d) < 2; });
    }
    case Opcode::kTranspose: {
      // Lanes stay lanes if the minor dimension stays; then only addresses change.
      return hlo::Dimensions(i)[static_cast<size_t>(minor)] !=
             hlo::MinorDimension(i.operand(0)->shape());
    }
    case Opcode::kCopy:
      return hlo::MinorDimension(i.operand(0)->shape()) != minor;
    case Opcode::kReshape: {
      // Only rows are regrouped if the fastest dimension is the same as before.
      const hlo::Shape& from = i.operand(0)->shape();
      const int64_t lanes_before = hlo::MinorDimension(from);
      if (lanes_before < 0) return true;
      const auto after = [](const hlo::Shape& shape, int64_t d) {
        int64_t count = 1;
        for (int64_t e = d + 1; e < shape.rank(); ++e) count *= shape.dims[static_cast<size_t>(e)];
        return count;
      };
      return from.dims[static_cast<size_t>(lanes_before)] !=
                 i.shape().dims[static_cast<size_t>(minor)] ||
             after(from, lanes_before) != after(i.shape(), minor);
    }
    default:
      return ShiftsAlong(i, minor, lanes);
  }
}

// The dimension whose elements are the rows of registers, in the operand's numbers; -1: none.
int64_t RowsOfOperand(const Instruction& i, bool in_result) {
  const hlo::Shape& shape = in_result ? i.shape() : i.operand(0)->shape();
  const bool turned = in_result && i.opcode() == Opcode::kTranspose;
  for (int64_t place = 1; place < shape.rank(); ++place) {
    const auto d = static_cast<size_t>(hlo::MinorDimension(shape, place));
    if (shape.dims[d] > 1) return turned ? hlo::Dimensions(i)[d] : static_cast<int64_t>(d);
  }
  return -1;
}

// Lanes stay, but another dimension becomes the rows of registers, as where heads change places
// with positions: rows are picked out one by one.
bool ExchangesRows(const Instruction& i) {
  if (i.opcode() != Opcode::kCopy && i.opcode() != Opcode::kTranspose) return false;
  return RowsOfOperand(i, /*in_result=*/false) != RowsOfOperand(i, /*in_result=*/true);
}

}  // namespace

bool ShiftsAlong(const Instruction& i, int64_t d, int64_t lanes) {
  const auto at = static_cast<size_t>(d);
  switch (i.opcode()) {
    case Opcode::kSlice: {
      const hlo::SliceDim dim = hlo::GetSlice(i)[at];
      return dim.start % lanes != 0 || dim.stride != 1;
    }
    case Opcode::kPad: {
      const hlo::PaddingDim dim = hlo::GetPadding(i)[at];
      return dim.low % lanes != 0 || dim.interior != 0;
    }
    case Opcode::kConcatenate:
      return hlo::OnlyDimension(i) == d &&
             std::any_of(i.operands().begin(), i.operands().end() - 1,
                         [&](const auto* o) { return o->shape().dims[at] % lanes != 0; });
    case Opcode::kDynamicSlice:
      // The start is known at run time only.
      return i.shape().dims[at] != i.operand(0)->shape().dims[at];
    case Opcode::kDynamicUpdateSlice:
      return i.shape().dims[at] != i.operand(1)->shape().dims[at];
    case Opcode::kReverse:
      return std::ranges::count(hlo::Dimensions(i), d) > 0;
    default:
      return false;
  }
}

bool TurnsLanes(const Instruction& i) {
  const bool moves = i.opcode() == Opcode::kCopy || i.opcode() == Opcode::kTranspose;
  return moves && i.shape().IsArray() && ShiftsLanes(i, /*lanes=*/1);
}

double SpreadRegisters(const Instruction& broadcast, const target::Target& target) {
  hlo::Shape rows = broadcast.shape();
  const std::vector<int64_t> kept = hlo::Dimensions(broadcast);
  for (int64_t d = 0; d < rows.rank(); ++d) {
    if (std::ranges::find(kept, d) == kept.end()) rows.dims[static_cast<size_t>(d)] = 1;
  }
  return static_cast<double>(VectorRegisters(target, rows));
}

VectorWork MoveWork(const Instruction& i, const target::Target& target) {
  const hlo::Shape& moved =
      i.opcode() == Opcode::kDynamicUpdateSlice ? i.operand(1)->shape() : i.shape();
  const double registers = static_cast<double>(VectorRegisters(target, moved));
  VectorWork work;
  if (i.opcode() == Opcode::kBroadcast) {
    // A value from a lane is spread over all lanes of its rows by the cross-lane unit, once for
    // all registers of these rows, and the VALUs take no part (a schedule of the TPU compiler for
    // v6e has 256 vbcast.lane, and no moves, for the rows of f32[4,512] beside 1024 registers of
    // f32[4,512,512]); one from whole rows or a scalar is a splat. What a reduction leaves has
    // been on the cross-lane unit already, and is only rotated to its rows.
    const Instruction& from = *i.operand(0);
    const int64_t lanes = hlo::MinorDimension(from.shape());
    const bool across_lanes = lanes >= 0 && hlo::Dimensions(i)[static_cast<size_t>(lanes)] !=
                                                hlo::MinorDimension(i.shape());
    if (!across_lanes) return work;
    const double spread = from.opcode() == Opcode::kReduce
                              ? static_cast<double>(VectorRegisters(target, from.shape()))
                              : SpreadRegisters(i, target);
    work.xlu = spread * target.instructions().At("spread-lane").xlu;
    return work;
  }
  const bool shifts = ShiftsLanes(i, target.chip().vpu.lanes);
  const bool relayout = i.opcode() == Opcode::kReshape || i.opcode() == Opcode::kTranspose ||
                        i.opcode() == Opcode::kReverse || i.opcode() == Opcode::kCopy;
  if (!relayout) work.valu = registers * target.instructions().At("move").valu;
  // What is turned goes in as it lies and comes out as it shall lie.
  const bool turned = shifts && relayout;
  const double read =
      turned ? static_cast<double>(VectorRegisters(target, i.operand(0)->shape())) : 0;
  if (shifts) {
    work.xlu = std::max(registers, read) *
               target.instructions().At(turned ? "transpose-lanes" : "rotate").xlu;
  }
  if (!shifts && ExchangesRows(i)) {
    const double share = PackedShare(i.shape());
    const configs::InstructionCost& each =
        target.instructions().At("exchange-rows", share < 1 ? "bf16" : "f32");
    const auto cores = static_cast<double>(target.chip().CoresPerDevice());
    work.scalar = each.scalar * share * registers / cores;
  }
  return work;
}

}  // namespace tpusim::kernels
