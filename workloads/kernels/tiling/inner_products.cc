#include "workloads/kernels/tiling/inner_products.h"

#include <algorithm>
#include <unordered_set>

#include "configs/status_macros.h"
#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_timing.h"

namespace tpusim::kernels {

using hlo::Instruction;

absl::StatusOr<InnerProducts> InnerProducts::Of(const KernelView& view, const Instruction& dot,
                                                int weights, const target::Target& target) {
  InnerProducts found;
  for (const int side : {1 - weights, weights}) {
    const std::unordered_set<const Instruction*> behind = MembersBehind(view, dot, side);
    const bool rows = side != weights;
    for (const Instruction* m : view.members) {
      if (!IsProduct(m->opcode()) || !behind.contains(m)) continue;
      Inner& inner = found.inner_.emplace_back();
      inner.rows = rows;
      ASSIGN_OR_RETURN(inner.product, ProductOf(*m, target));
      for (const int i : InputsBehind(view, *m, 0)) {
        found.dimension_[i] = rows ? Dimension::kRows : Dimension::kDepth;
      }
      for (const int i : InputsBehind(view, *m, 1)) {
        found.dimension_[i] = rows ? Dimension::kDepth : Dimension::kColumns;
      }
    }
  }
  // What the kernel's product reads itself comes as that has it.
  for (const int side : {0, 1}) {
    for (const int i : InputsBehind(view, dot, side)) found.dimension_.erase(i);
  }
  return found;
}

isa::Window InnerProducts::WindowOf(int input, Bytes bytes, isa::MemorySpace space,
                                    const BlockOfProduct& block) const {
  const Dimension dimension = dimension_.at(input);
  const BlockOfDimension& shared = dimension == Dimension::kRows    ? block.rows
                                   : dimension == Dimension::kDepth ? block.depth
                                                                    : block.columns;
  isa::Window window;
  window.kind = isa::WindowKind::kInput;
  window.space = space;
  window.moves_with = block.batch_bit | shared.bit;
  const auto extent = static_cast<double>(std::max<int64_t>(1, shared.extent));
  const double share = std::min(1.0, static_cast<double>(shared.block) / extent);
  window.bytes = timing::Scaled(bytes, share / static_cast<double>(block.batch));
  return window;
}

Cycles InnerProducts::TimeOf(const BlockOfProduct& block, const configs::ChipParams& chip) const {
  Cycles time(0);
  for (const Inner& inner : inner_) {
    isa::Block alone;
    alone.mxu = {inner.rows ? block.rows.block : block.depth.block, inner.product.k,
                 inner.rows ? block.depth.block : block.columns.block, inner.product.format,
                 block.batch_block};
    time += timing::TimeBlock(chip, alone).total;
  }
  return time;
}

}  // namespace tpusim::kernels
