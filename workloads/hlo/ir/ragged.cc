#include "workloads/hlo/ir/ragged.h"
#include "workloads/hlo/ir/annotations.h"

#include <algorithm>


namespace tpusim::hlo {

std::optional<std::vector<int64_t>> RaggedSizes(const Instruction& ragged) {
  std::optional<std::vector<int64_t>> sizes = annotations::kRaggedSizes.Of(ragged);
  // A file may state them too.
  return sizes && std::ranges::min(*sizes) >= 0 ? sizes : std::nullopt;
}

void SetRaggedSizes(Instruction* ragged, const std::vector<int64_t>& sizes) {
  if (sizes.empty()) return annotations::kRaggedSizes.Drop(ragged);
  annotations::kRaggedSizes.Set(ragged, sizes);
}

Bytes RowBytes(const Instruction& exchange) {
  const Shape& rows = exchange.operand(0)->shape();
  return Bytes(rows.ByteSize().value() / std::max<int64_t>(1, rows.dims[0]));
}

int64_t RowsSent(const Instruction& exchange) {
  const int64_t held = exchange.operand(0)->shape().dims[0];
  if (const auto sizes = RaggedSizes(exchange)) {
    int64_t sent = 0;
    for (const int64_t size : *sizes) sent += std::min(size, held - sent);
    return sent;
  }
  return std::min(held, exchange.operand(1)->shape().dims[0]);
}

int64_t RaggedDimension(const Instruction& dot) {
  const auto& ragged = dot.attrs().ragged_dot_dimension_numbers();
  return ragged.lhs_ragged_dimensions_size() > 0 ? ragged.lhs_ragged_dimensions(0) : 0;
}

}  // namespace tpusim::hlo
