// Dots and convolutions.

#include <algorithm>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/ir/ragged.h"
#include "workloads/kernels/view/product.h"
#include "workloads/kernels/view/ragged_tiling.h"
#include "workloads/passes/layout/problem_builder.h"

namespace tpusim::passes {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// The kernel of a library that a product of rows in groups becomes takes matrices with their columns
// along the lanes: others are turned before it (libtpu 0.0.42 copies them, on SparseCores where there
// are any). Other ragged products take what the padding allows.
void ProblemBuilder::AddRagged(const Instruction& i) {
  if (!kernels::RaggedTilingOf(i, target_)) return;
  FixRowMajor(Want(i, 0));
  const int64_t depth = hlo::GetDotDims(i).rhs_contracting[0];
  const auto& groups = i.attrs().ragged_dot_dimension_numbers().rhs_group_dimensions();
  if (const int32_t wanted = Want(i, 1); wanted >= 0 && groups.size() == 1) {
    const int64_t columns = 3 - depth - groups[0];  // number: 0 + 1 + 2 less the others
    problem_.fixed.emplace(wanted, Dims{columns, depth, groups[0]});
  }
  for (const int32_t made : problem_.made.at(&i)) FixRowMajor(made);
  Separate(i);
}

// The arrays multiply what lies in the two fastest dimensions; the others of a batch come
// one after the other. Contracted or not, and in which order, they take it.
void ProblemBuilder::AddDot(const Instruction& i) {
  const hlo::DotDims dims = hlo::GetDotDims(i);
  const Shape &lhs = i.operand(0)->shape(), &rhs = i.operand(1)->shape();
  Dims lhs_map(lhs.dims.size(), -1), rhs_map(rhs.dims.size(), -1);
  int64_t next = 0;
  for (size_t n = 0; n < dims.lhs_batch.size(); ++n, ++next) {
    lhs_map[static_cast<size_t>(dims.lhs_batch[n])] = next;
    rhs_map[static_cast<size_t>(dims.rhs_batch[n])] = next;
  }
  for (int64_t d : hlo::FreeDims(lhs.rank(), dims.lhs_contracting, dims.lhs_batch)) {
    lhs_map[static_cast<size_t>(d)] = next++;
  }
  for (int64_t d : hlo::FreeDims(rhs.rank(), dims.rhs_contracting, dims.rhs_batch)) {
    rhs_map[static_cast<size_t>(d)] = next++;
  }
  if (kernels::RunsOnVectorUnits(i)) {
    // The larger side is multiplied and summed where it lies.
    const size_t larger = lhs.ElementCount() >= rhs.ElementCount() ? 0 : 1;
    const Shape& big = larger == 0 ? lhs : rhs;
    AddTerm(TermKind::kReduce, Seen(*i.operand(larger)), big,
            larger == 0 ? dims.lhs_contracting : dims.rhs_contracting);
    AddLink(LinkKind::kLanes, Seen(*i.operand(larger)), Made(i), big, i.shape(),
            larger == 0 ? lhs_map : rhs_map);
    // Which dimension of the larger each of the smaller belongs to.
    const Shape& small = larger == 0 ? rhs : lhs;
    const auto& small_batch = larger == 0 ? dims.rhs_batch : dims.lhs_batch;
    const auto& big_batch = larger == 0 ? dims.lhs_batch : dims.rhs_batch;
    const auto& small_sum = larger == 0 ? dims.rhs_contracting : dims.lhs_contracting;
    const auto& big_sum = larger == 0 ? dims.lhs_contracting : dims.rhs_contracting;
    Dims map(small.dims.size(), -1);
    for (size_t n = 0; n < small_batch.size(); ++n) {
      map[static_cast<size_t>(small_batch[n])] = big_batch[n];
    }
    for (size_t n = 0; n < small_sum.size(); ++n) {
      map[static_cast<size_t>(small_sum[n])] = big_sum[n];
    }
    AddLink(LinkKind::kLanes, Seen(*i.operand(1 - larger)), Seen(*i.operand(larger)), small, big,
            map);
    return;
  }
  const auto several = [](const Shape& shape, const auto& batch) {
    return std::any_of(batch.begin(), batch.end(),
                       [&](int64_t d) { return shape.dims[static_cast<size_t>(d)] > 1; });
  };
  if (!several(lhs, dims.lhs_batch)) return;
  const auto apart = [&](size_t n, const std::vector<int64_t>& batch) {
    const Shape& shape = i.operand(n)->shape();
    if (shape.rank() < static_cast<int64_t>(batch.size()) + 2) return;
    AddTerm(TermKind::kBatch, Want(i, n), shape, batch);
  };
  apart(0, dims.lhs_batch);
  apart(1, dims.rhs_batch);
  const auto batch = static_cast<int64_t>(dims.lhs_batch.size());
  if (i.shape().rank() < batch + 2) return;
  AddTerm(TermKind::kBatch, Made(i), i.shape(), Identity(batch));
  Separate(i, LinkKind::kResult);
}

// A convolution is one product per tap: positions come one after the other like a batch, what
// is multiplied lies in the two other dimensions, batch and features or both features. (With one
// of these of extent one there is no second to choose; but a batch of pictures with one feature
// goes to the lanes, as the TPU compiler has it.)
void ProblemBuilder::AddConvolution(const Instruction& i) {
  const auto& numbers = i.attrs().convolution_dimension_numbers();
  const auto two = [](const Shape& shape, int64_t a, int64_t b) {
    return shape.rank() > 2 && shape.dims[static_cast<size_t>(a)] > 1 &&
           shape.dims[static_cast<size_t>(b)] > 1;
  };
  const auto dims = [](const auto& spatial) { return Dims(spatial.begin(), spatial.end()); };
  const Shape &in = i.operand(0)->shape(), &kernel = i.operand(1)->shape();
  const int64_t batch = numbers.input_batch_dimension(),
                feature = numbers.input_feature_dimension();
  const bool gray = in.rank() > 2 && in.dims[static_cast<size_t>(feature)] == 1 &&
                    in.dims[static_cast<size_t>(batch)] > 1;
  if (gray || two(in, batch, feature)) {
    AddTerm(TermKind::kBatch, Want(i, 0), in, dims(numbers.input_spatial_dimensions()));
  }
  if (two(kernel, numbers.kernel_input_feature_dimension(),
          numbers.kernel_output_feature_dimension())) {
    AddTerm(TermKind::kBatch, Want(i, 1), kernel, dims(numbers.kernel_spatial_dimensions()));
  }
  if (two(i.shape(), numbers.output_batch_dimension(), numbers.output_feature_dimension())) {
    AddTerm(TermKind::kBatch, Made(i), i.shape(), dims(numbers.output_spatial_dimensions()));
    Separate(i, LinkKind::kResult);
  }
}

}  // namespace tpusim::passes
