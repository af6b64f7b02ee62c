// Result shapes of gather and scatter.
#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/shape_rules.h"

namespace tpusim::hlo::shape_rules {

namespace {

template <typename Range>
Dims ToDims(const Range& range) {
  return {range.begin(), range.end()};
}

// Checks the indices of gather and scatter: one index is as long as `map`, along `vector_dim`;
// batching dimensions of both sides pair up.
absl::Status CheckIndexArray(const Shape& operand, const Shape& indices, int64_t vector_dim,
                             const Dims& map, const Dims& operand_batching,
                             const Dims& indices_batching) {
  TPUSIM_REQUIRE(IsIntegral(indices.element_type), "indices {} are no integers",
                 indices.ToString());
  TPUSIM_REQUIRE(vector_dim >= 0 && vector_dim <= indices.rank(), "index_vector_dim {} of {}",
                 vector_dim, indices.ToString());
  const int64_t length = vector_dim == indices.rank() ? 1 : indices.dims[vector_dim];
  TPUSIM_REQUIRE(static_cast<int64_t>(map.size()) == length && AreDims(map, operand.rank()),
                 "indices {} into dimensions {{{}}} of {}", indices.ToString(), fmt::join(map, ","),
                 operand.ToString());
  bool pairs = operand_batching.size() == indices_batching.size() &&
               AreDims(indices_batching, indices.rank()) &&
               AreDims(operand_batching, operand.rank());
  for (size_t n = 0; pairs && n < operand_batching.size(); ++n) {
    pairs = indices_batching[n] != vector_dim && !Contains(map, operand_batching[n]) &&
            indices.dims[indices_batching[n]] == operand.dims[operand_batching[n]];
  }
  TPUSIM_REQUIRE(pairs, "batching dimensions {{{}}} of {} and {{{}}} of {}",
                 fmt::join(operand_batching, ","), operand.ToString(),
                 fmt::join(indices_batching, ","), indices.ToString());
  return absl::OkStatus();
}

// Sizes of the dimensions of an index array beside the one that holds an index.
Dims BatchSizes(const Shape& indices, int64_t vector_dim) {
  Dims sizes;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d != vector_dim) sizes.push_back(indices.dims[d]);
  }
  return sizes;
}

}  // namespace

Result Gather(const Instruction& i) {
  const pb::GatherDimensionNumbers& n = i.attrs().gather_dimension_numbers();
  const Shape &in = In(i, 0), &indices = In(i, 1);
  const Dims offset = ToDims(n.offset_dims());
  const Dims batching = ToDims(n.operand_batching_dims());
  Dims dropped = ToDims(n.collapsed_slice_dims());
  dropped.insert(dropped.end(), batching.begin(), batching.end());
  const auto& sizes = i.attrs().gather_slice_sizes();
  TPUSIM_REQUIRE(sizes.size() == in.rank() && AreDims(dropped, in.rank()),
                 "dimension numbers do not fit {} and {}", in.ToString(), indices.ToString());
  RETURN_IF_ERROR(CheckIndexArray(in, indices, n.index_vector_dim(), ToDims(n.start_index_map()),
                                  batching, ToDims(n.start_indices_batching_dims())));
  Dims window;
  for (int64_t d = 0; d < in.rank(); ++d) {
    const bool drop = Contains(dropped, d);
    TPUSIM_REQUIRE(sizes[d] >= 0 && sizes[d] <= in.dims[d] && (!drop || sizes[d] <= 1),
                   "slice size {} of dimension {} of {}", sizes[d], d, in.ToString());
    if (!drop) window.push_back(sizes[d]);
  }
  const Dims batch = BatchSizes(indices, n.index_vector_dim());
  const int64_t rank = static_cast<int64_t>(window.size() + batch.size());
  TPUSIM_REQUIRE(offset.size() == window.size() && AreDims(offset, rank),
                 "offset dimensions {{{}}}", fmt::join(offset, ","));
  Dims out;
  for (int64_t d = 0, w = 0, b = 0; d < rank; ++d) {
    out.push_back(Contains(offset, d) ? window[w++] : batch[b++]);
  }
  return MakeShape(in.element_type, out);
}

// N arrays of one shape, the indices, N updates of one shape.
Result Scatter(const Instruction& i) {
  const size_t count = i.operands().size() / 2;
  TPUSIM_REQUIRE(count > 0 && i.operands().size() == 2 * count + 1, "{} operands",
                 i.operands().size());
  const pb::ScatterDimensionNumbers& n = i.attrs().scatter_dimension_numbers();
  const Shape &in = In(i, 0), &indices = In(i, count), &updates = In(i, count + 1);
  for (size_t k = 0; k < count; ++k) {
    TPUSIM_REQUIRE(In(i, k).dims == in.dims && In(i, count + 1 + k).dims == updates.dims &&
                       Compatible(In(i, k).element_type, In(i, count + 1 + k).element_type),
                   "update {} of {}", In(i, count + 1 + k).ToString(), In(i, k).ToString());
  }
  const Dims batching = ToDims(n.input_batching_dims());
  const Dims window_dims = ToDims(n.update_window_dims());
  Dims dropped = ToDims(n.inserted_window_dims());
  dropped.insert(dropped.end(), batching.begin(), batching.end());
  TPUSIM_REQUIRE(AreDims(dropped, in.rank()) && AreDims(window_dims, updates.rank()) &&
                     std::ranges::is_sorted(window_dims) &&
                     window_dims.size() + dropped.size() == in.dims.size(),
                 "dimension numbers do not fit {} and {}", in.ToString(), updates.ToString());
  RETURN_IF_ERROR(CheckIndexArray(in, indices, n.index_vector_dim(),
                                  ToDims(n.scatter_dims_to_operand_dims()), batching,
                                  ToDims(n.scatter_indices_batching_dims())));
  const Dims window = FreeDims(in.rank(), dropped, {});
  for (size_t w = 0; w < window.size(); ++w) {
    TPUSIM_REQUIRE(updates.dims[window_dims[w]] <= in.dims[window[w]], "update {} of {}",
                   updates.ToString(), in.ToString());
  }
  Dims scattered;
  for (int64_t d : FreeDims(updates.rank(), window_dims, {})) scattered.push_back(updates.dims[d]);
  TPUSIM_REQUIRE(scattered == BatchSizes(indices, n.index_vector_dim()),
                 "updates {} for indices {}", updates.ToString(), indices.ToString());
  return OneOrTuple(OperandShapes(i, count));
}

}  // namespace tpusim::hlo::shape_rules
