// Convolutions: halos along split spatial dimensions, partial results along a split
// input feature or along a split window.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/emit/window.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {
namespace {

using hlo::Instruction;
using hlo::Shape;
using sharding::Axes;
using sharding::FactorKind;

// Returns the window that spatial dimension `s` fetches if its factor is split.
std::optional<SpatialWindow> WindowOf(const Instruction& global, const sharding::ShardingRule& rule,
                                      size_t s, const Axes& axes) {
  const auto& dims = global.attrs().convolution_dimension_numbers();
  const int at = static_cast<int>(s);
  const int64_t d = dims.input_spatial_dimensions(at);
  const hlo::WindowDim window = hlo::GetWindow(global)[s];
  const int64_t size = global.operand(0)->shape().dims[d];
  const int64_t positions = global.shape().dims[dims.output_spatial_dimensions(at)];
  if (rule.factors[rule.operands[0][d][0]].kind != FactorKind::kReduction) {
    return SpatialWindowOf(window, d, size, positions, axes);
  }
  // The window is split: its elements i * block ... meet the input from
  // i * block * dilation on.
  if (window.base_dilation != 1 || window.reversal) return std::nullopt;
  const int64_t shards = Product(axes), block = CeilDiv(window.size, shards);
  SpatialWindow result{
      {d, axes, size, CeilDiv(size, shards), block * window.window_dilation, -window.padding_low,
       (positions - 1) * window.stride + (block - 1) * window.window_dilation + 1},
      window};
  result.local.size = block;
  result.local.padding_low = result.local.padding_high = 0;
  return result;
}

}  // namespace

std::optional<Bytes> ConvolutionOwn(const Instruction& global, const sharding::ShardingRule& rule,
                                    const std::vector<Axes>& axes) {
  const auto& dims = global.attrs().convolution_dimension_numbers();
  const Shape local = LocalOperandShape(global, rule, axes, 0);
  Bytes bytes(0);
  for (int s = 0; s < dims.input_spatial_dimensions_size(); ++s) {
    const int64_t d = dims.input_spatial_dimensions(s);
    const Axes* split = MovedAxes(rule, axes, rule.operands[0][d]);
    if (split == nullptr) continue;
    const std::optional<SpatialWindow> window = WindowOf(global, rule, s, *split);
    if (!window) return std::nullopt;
    bytes += LineBytes(local, d) * ReceivedElements(window->fetched);
  }
  return bytes;
}

absl::StatusOr<Instruction*> Convolution(const LocalOp& op) {
  Builder& builder = op.builder;
  const auto& dims = op.global.attrs().convolution_dimension_numbers();
  Instruction* input = op.operands[0];
  Instruction* zero = builder.Zero(input->shape().element_type);
  std::vector<hlo::WindowDim> window = hlo::GetWindow(op.global);
  const int64_t feature = dims.input_feature_dimension();
  for (int32_t factor : op.rule.operands[0][feature]) {
    if (op.rule.factors[factor].kind != FactorKind::kReduction) continue;
    input = builder.Mask(input, feature, OperandAxes(op, 0, feature),
                         op.global.operand(0)->shape().dims[feature], zero);
  }
  for (size_t s = 0; s < window.size(); ++s) {
    const int64_t d = dims.input_spatial_dimensions(static_cast<int>(s));
    const Axes* split = MovedAxes(op.rule, op.choice.axes, op.rule.operands[0][d]);
    if (split == nullptr) continue;
    const std::optional<SpatialWindow> spatial = WindowOf(op.global, op.rule, s, *split);
    input = Fetch(builder, input, spatial->fetched, zero);
    window[s] = spatial->local;
  }
  Instruction* kernel = MaskOperand(op, 1, builder.Zero(op.operands[1]->shape().element_type));
  Instruction* result = SameOpOn(op, {input, kernel});
  hlo::SetWindow(result, window);
  // Groups are the first factors of the dimensions that have them.
  const int64_t features = hlo::FeatureGroupCount(op.global);
  const int64_t batches = hlo::BatchGroupCount(op.global);
  size_t next = 0;
  if (features > 1) {
    result->mutable_attrs().set_feature_group_count(
        CeilDiv(features, Product(op.choice.axes[next++])));
  }
  if (batches > 1) {
    result->mutable_attrs().set_batch_group_count(
        CeilDiv(batches, Product(op.choice.axes[next++])));
  }
  return result;
}

}  // namespace tpusim::spmd::ops
