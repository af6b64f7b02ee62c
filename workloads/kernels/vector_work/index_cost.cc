// Gather and scatter: rows at addresses that are data.
//
// Every index is read into the scalar core, checked, turned into an address and
// issued as one DMA of one slice; slices are far apart, so nothing is shared
// between them. Where rows lie in tiles with several rows to a 32-bit word
// (16-bit and narrower types), a single row drags its neighbours along.

#include <algorithm>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/kernel_view.h"
#include "workloads/kernels/view/needed_share.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;

Bytes SliceBytes(const hlo::Shape& operand, const std::vector<int64_t>& slice,
                 const target::Target& target) {
  const int64_t bits = hlo::BitWidth(operand.element_type);
  const int64_t rank = operand.rank();
  int64_t row = bits, rows = 1;
  const auto at = [&](int64_t place) {
    return slice[static_cast<size_t>(hlo::MinorDimension(operand, place))];
  };
  if (rank > 0) row *= at(0);
  for (int64_t place = 1; place < rank; ++place) rows *= at(place);
  // number: bits of a type
  const int64_t packing = std::max<int64_t>(1, 32 / std::max<int64_t>(bits, 1));
  if (rank > 1) rows = rows / at(1) * RoundUp(at(1), packing);
  const Bytes bytes(CeilDiv(row, 8));  // number: bits of a type
  return Bytes(RoundUp(bytes.value(), target.chip().dma.granule.value())) * rows;
}

}  // namespace

IndexedSlices SlicesOf(const Instruction& i) {
  const bool gathers = i.opcode() == Opcode::kGather;
  const size_t arrays = gathers ? 1 : i.operands().size() / 2;
  const auto& gather = i.attrs().gather_dimension_numbers();
  const auto& scatter = i.attrs().scatter_dimension_numbers();
  IndexedSlices slices;
  const hlo::Shape& indices = i.operand(arrays)->shape();
  slices.count = indices.ElementCount();
  const int64_t vector = gathers ? gather.index_vector_dim() : scatter.index_vector_dim();
  if (vector < indices.rank()) slices.count /= std::max<int64_t>(1, indices.dims[vector]);
  // The window of a slice, in the operand's dimensions.
  const auto& windows = gathers ? gather.offset_dims() : scatter.update_window_dims();
  const auto& dropped = gathers ? gather.collapsed_slice_dims() : scatter.inserted_window_dims();
  const auto& batch = gathers ? gather.operand_batching_dims() : scatter.input_batching_dims();
  slices.windows.assign(i.operand(0)->shape().dims.size(), -1);
  int next = 0;
  for (size_t d = 0; d < slices.windows.size(); ++d) {
    const auto at = static_cast<int64_t>(d);
    if (std::ranges::count(dropped, at) > 0 || std::ranges::count(batch, at) > 0) continue;
    if (next < windows.size()) slices.windows[d] = windows[next++];
  }
  if (gathers) {
    slices.extents.assign(i.attrs().gather_slice_sizes().begin(),
                          i.attrs().gather_slice_sizes().end());
    return slices;
  }
  const hlo::Shape& updates = i.operand(arrays + 1)->shape();
  for (const int64_t d : slices.windows) slices.extents.push_back(d < 0 ? 1 : updates.dims[d]);
  return slices;
}

IndexedAccess IndexedAccessOf(const Instruction& i, const target::Target& target) {
  const IndexedSlices slices = SlicesOf(i);
  return {slices.count, SliceBytes(i.operand(0)->shape(), slices.extents, target)};
}

bool ScatterOverwrites(const Instruction& scatter) {
  const Instruction* root = scatter.called()[0]->root();
  return root->opcode() == Opcode::kParameter && root->attrs().parameter_number() == 1;
}

VectorWork GatherWork(const Instruction& gather, const target::Target& target) {
  const IndexedAccess access = IndexedAccessOf(gather, target);
  VectorWork work;
  const double address = target.instructions().At("slice-address", "s32").scalar;
  work.scalar = static_cast<double>(access.count) *
                (address + static_cast<double>(target.chip().dma.issue_cycles));
  // From where the DMA put them into the layout of the result.
  work.valu = static_cast<double>(VectorRegisters(target, gather.shape()));
  return work;
}

absl::StatusOr<VectorWork> ScatterWork(const Instruction& scatter, const target::Target& target) {
  const size_t n = scatter.operands().size() / 2;
  ASSIGN_OR_RETURN(const VectorWork call, CallCost(*scatter.called()[0], target));
  const IndexedAccess access = IndexedAccessOf(scatter, target);
  // A row comes in (unless it is overwritten), is combined, and goes out.
  const double transfers = ScatterOverwrites(scatter) ? 1 : 2;
  VectorWork work;
  const double address = target.instructions().At("slice-address", "s32").scalar;
  work.scalar =
      static_cast<double>(access.count) *
      (address +
       transfers * static_cast<double>(n) * static_cast<double>(target.chip().dma.issue_cycles));
  double registers = 0;
  for (size_t k = n + 1; k < scatter.operands().size(); ++k) {
    registers += static_cast<double>(VectorRegisters(target, scatter.operand(k)->shape()));
  }
  // At least one register per slice and array.
  registers = std::max(registers, static_cast<double>(access.count * static_cast<int64_t>(n)));
  work += call * (registers / static_cast<double>(n));
  work.valu += registers;
  work.load += registers;
  work.store += registers;
  return work;
}

}  // namespace tpusim::kernels
