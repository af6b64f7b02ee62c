#include "workloads/hlo/transforms/extents_of_one.h"

namespace tpusim::hlo {

std::optional<std::vector<int64_t>> MatchWithoutOnes(const Shape& from, const Shape& to) {
  std::vector<int64_t> match(from.dims.size(), -1);
  size_t d = 0;
  const auto skip_ones = [&] {
    while (d < to.dims.size() && to.dims[d] == 1) ++d;
  };
  for (size_t s = 0; s < from.dims.size(); ++s) {
    if (from.dims[s] == 1) continue;
    skip_ones();
    if (d == to.dims.size() || to.dims[d] != from.dims[s]) return std::nullopt;
    match[s] = static_cast<int64_t>(d++);
  }
  skip_ones();
  if (d < to.dims.size()) return std::nullopt;
  return match;
}

Instruction* Reshaped(Instruction* value, const std::vector<int64_t>& dims,
                      const Instruction* like) {
  if (value->shape().dims == dims) return value;
  return value->parent()->Add(Opcode::kReshape, MakeShape(value->shape().element_type, dims),
                              {value}, "reshape", like);
}

}  // namespace tpusim::hlo
