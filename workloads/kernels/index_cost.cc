// Gather and scatter: rows at addresses that are data.
//
// Every index is read into the scalar core, checked, turned into an address and
// issued as one DMA of one slice; slices are far apart, so nothing is shared
// between them. Where rows lie in tiles with several rows to a 32-bit word
// (16-bit and narrower types), a single row drags its neighbours along.

#include "workloads/kernels/index_cost.h"

#include <algorithm>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/kernel_view.h"
#include "workloads/kernels/vector_cost.h"

namespace tpusim::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;

int64_t IndexCount(const hlo::Shape& indices, int64_t index_vector_dim) {
  int64_t count = indices.ElementCount();
  if (index_vector_dim < indices.rank() && indices.dims[index_vector_dim] > 0) {
    count /= indices.dims[index_vector_dim];
  }
  return count;
}

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
  const int64_t packing = std::max<int64_t>(1, 32 / std::max<int64_t>(bits, 1));
  if (rank > 1) rows = rows / at(1) * RoundUp(at(1), packing);
  const Bytes bytes(CeilDiv(row, 8));
  return Bytes(RoundUp(bytes.value(), target.chip().dma.granule.value())) * rows;
}

}  // namespace

IndexedAccess AccessOfGather(const Instruction& gather, const target::Target& target) {
  const auto& numbers = gather.attrs().gather_dimension_numbers();
  IndexedAccess access;
  access.count = IndexCount(gather.operand(1)->shape(), numbers.index_vector_dim());
  const auto& sizes = gather.attrs().gather_slice_sizes();
  access.slice_bytes = SliceBytes(gather.operand(0)->shape(),
                                  std::vector<int64_t>(sizes.begin(), sizes.end()), target);
  return access;
}

IndexedAccess AccessOfScatter(const Instruction& scatter, const target::Target& target) {
  const size_t n = scatter.operands().size() / 2;
  const auto& numbers = scatter.attrs().scatter_dimension_numbers();
  const hlo::Shape& operand = scatter.operand(0)->shape();
  const hlo::Shape& updates = scatter.operand(n + 1)->shape();
  IndexedAccess access;
  access.count = IndexCount(scatter.operand(n)->shape(), numbers.index_vector_dim());
  // The window of an update, in the operand's dimensions.
  std::vector<int64_t> slice(operand.dims.size(), 1);
  size_t next = 0;
  for (size_t d = 0; d < slice.size(); ++d) {
    const auto holds = [&](const auto& dims) {
      return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
    };
    if (holds(numbers.inserted_window_dims()) || holds(numbers.input_batching_dims())) continue;
    if (next < static_cast<size_t>(numbers.update_window_dims_size())) {
      slice[d] = updates.dims[numbers.update_window_dims(static_cast<int>(next++))];
    }
  }
  access.slice_bytes = SliceBytes(operand, slice, target);
  return access;
}

bool ScatterOverwrites(const Instruction& scatter) {
  const Instruction* root = scatter.called()[0]->root();
  return root->opcode() == Opcode::kParameter && root->attrs().parameter_number() == 1;
}

VectorWork GatherWork(const Instruction& gather, const target::Target& target) {
  const IndexedAccess access = AccessOfGather(gather, target);
  VectorWork work;
  work.scalar =
      static_cast<double>(access.count) *
      (target.policy().scalars_per_index + static_cast<double>(target.chip().dma.issue_cycles));
  // From where the DMA put them into the layout of the result.
  work.valu = static_cast<double>(VectorRegisters(target, gather.shape()));
  return work;
}

absl::StatusOr<VectorWork> ScatterWork(const Instruction& scatter, const target::Target& target) {
  const size_t n = scatter.operands().size() / 2;
  ASSIGN_OR_RETURN(const VectorWork call, CallCost(*scatter.called()[0]));
  const IndexedAccess access = AccessOfScatter(scatter, target);
  // A row comes in (unless it is overwritten), is combined, and goes out.
  const double transfers = ScatterOverwrites(scatter) ? 1 : 2;
  VectorWork work;
  work.scalar =
      static_cast<double>(access.count) *
      (target.policy().scalars_per_index +
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
