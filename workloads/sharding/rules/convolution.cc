// Convolutions, with feature and batch groups.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

// Groups are a batch dimension inside the feature dimensions: a dimension of
// size groups * rest has two factors. Spatial dimensions need their neighbours.
absl::StatusOr<ShardingRule> Convolution(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const auto& dims = instruction.attrs().convolution_dimension_numbers();
  const hlo::Shape& lhs = instruction.operand(0)->shape();
  const hlo::Shape& rhs = instruction.operand(1)->shape();
  const hlo::Shape& out = instruction.shape();
  TensorFactors& in = rule.operands[0];
  TensorFactors& kernel = rule.operands[1];
  TensorFactors& result = rule.results[0];
  const int64_t feature_groups = hlo::FeatureGroupCount(instruction);
  const int64_t batch_groups = hlo::BatchGroupCount(instruction);
  std::vector<int32_t>* out_feature = &result[dims.output_feature_dimension()];
  std::vector<int32_t>* kernel_out = &kernel[dims.kernel_output_feature_dimension()];

  // The major factors of grouped dimensions.
  Tie(rule, feature_groups, FactorKind::kPassThrough,
      {&in[dims.input_feature_dimension()], kernel_out, out_feature});
  Tie(rule, batch_groups, FactorKind::kPassThrough,
      {&in[dims.input_batch_dimension()], kernel_out, out_feature});
  // What is left of them.
  Tie(rule, lhs.dims[dims.input_batch_dimension()] / batch_groups, FactorKind::kPassThrough,
      {&in[dims.input_batch_dimension()], &result[dims.output_batch_dimension()]});
  Tie(rule, out.dims[dims.output_feature_dimension()] / feature_groups / batch_groups,
      FactorKind::kPassThrough, {kernel_out, out_feature});
  Tie(rule, rhs.dims[dims.kernel_input_feature_dimension()], FactorKind::kReduction,
      {&in[dims.input_feature_dimension()], &kernel[dims.kernel_input_feature_dimension()]});

  const std::vector<hlo::WindowDim> window = hlo::GetWindow(instruction);
  for (size_t s = 0; s < window.size(); ++s) {
    const int at = static_cast<int>(s);
    const int64_t from = dims.input_spatial_dimensions(at);
    const int64_t to = dims.output_spatial_dimensions(at);
    const int64_t over = dims.kernel_spatial_dimensions(at);
    const int64_t size = lhs.dims[from], positions = out.dims[to];
    // A window of one element that goes everywhere is pointwise. A window with more
    // elements than places contracts both (the gradient of a kernel).
    if (window[s] == hlo::WindowDim{}) {
      Tie(rule, size, FactorKind::kPassThrough, {&in[from], &result[to]});
      continue;
    }
    if (size != 1 && rhs.dims[over] > positions && window[s].base_dilation == 1 &&
        !window[s].reversal) {
      Tie(rule, size, FactorKind::kReduction, {&in[from], &kernel[over]});
      Tie(rule, positions, FactorKind::kNeedReplication, {&result[to]});
      continue;
    }
    if (size != 1 && positions != 1) {
      Tie(rule, size, FactorKind::kPermutation, {&in[from], &result[to]});
    } else {
      Tie(rule, size, FactorKind::kNeedReplication, {&in[from]});
      Tie(rule, positions, FactorKind::kNeedReplication, {&result[to]});
    }
    Tie(rule, rhs.dims[over], FactorKind::kNeedReplication, {&kernel[over]});
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
