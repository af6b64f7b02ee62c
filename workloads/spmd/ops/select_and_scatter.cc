// The gradient of max-pooling: a device recomputes the windows that touch its block.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/emit/window.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using sharding::Axes;

// Along one dimension: the windows that touch the block, and what they cover.
struct Cover {
  Window source, operand;
  int64_t begin = 0;  // of what they cover, from the start of the block
};

// nullopt: blocks do not all meet the windows at the same places.
std::optional<Cover> CoverOf(const Instruction& global, int64_t d, const Axes& axes) {
  const hlo::WindowDim window = hlo::GetWindow(global)[d];
  const int64_t size = global.shape().dims[d], shards = Product(axes);
  const int64_t block = CeilDiv(size, shards), stride = window.stride;
  if (block % stride != 0 || window.window_dilation != 1 || window.base_dilation != 1) {
    return std::nullopt;
  }
  const int64_t windows = global.operand(1)->shape().dims[d];
  // Window j covers j * stride - padding_low and `size` elements from there on.
  const int64_t reach = window.padding_low - window.size + 1;
  const int64_t first = reach >= 0 ? CeilDiv(reach, stride) : -(-reach / stride);
  const int64_t count = (block - 1 + window.padding_low) / stride - first + 1;
  Cover cover;
  cover.begin = first * stride - window.padding_low;
  cover.source = {d, axes, windows, CeilDiv(windows, shards), block / stride, first, count};
  cover.operand = {d, axes, size, block, block, cover.begin, (count - 1) * stride + window.size};
  return cover;
}

// "GE" or "GT": the selected element is the largest; null if it is not known.
std::optional<bool> SelectsLargest(const Instruction& global) {
  const Instruction* root = global.called()[0]->root();
  if (root->opcode() != Opcode::kCompare || root->operand(0)->opcode() != Opcode::kParameter ||
      root->operand(0)->attrs().parameter_number() != 0) {
    return std::nullopt;
  }
  const std::string& direction = root->attrs().comparison_direction();
  if (direction == "GE" || direction == "GT") return true;
  if (direction == "LE" || direction == "LT") return false;
  return std::nullopt;
}

}  // namespace

std::optional<Bytes> SelectAndScatterOwn(const Instruction& global,
                                         const sharding::ShardingRule& rule,
                                         const std::vector<Axes>& axes) {
  Bytes bytes(0);
  for (int64_t d = 0; d < global.shape().rank(); ++d) {
    const Axes* split = MovedAxes(rule, axes, rule.results[0][d]);
    if (split == nullptr) continue;
    const std::optional<Cover> cover = CoverOf(global, d, *split);
    if (!cover || !SelectsLargest(global) || global.called()[1]->root()->opcode() != Opcode::kAdd) {
      return std::nullopt;
    }
    for (size_t i = 0; i < 2; ++i) {
      bytes += LineBytes(LocalOperandShape(global, rule, axes, i), d) *
               ReceivedElements(i == 0 ? cover->operand : cover->source);
    }
  }
  return bytes;
}

// Elements outside of the array are never selected; windows that do not exist scatter zero.
absl::StatusOr<Instruction*> SelectAndScatter(const LocalOp& op) {
  Builder& builder = op.builder;
  std::vector<Instruction*> operands = op.operands;
  std::vector<hlo::WindowDim> window = hlo::GetWindow(op.global);
  hlo::Shape shape = op.shape;
  std::vector<std::pair<int64_t, int64_t>> begins;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const Axes* split = MovedAxes(op.rule, op.choice.axes, op.rule.results[0][d]);
    if (split == nullptr) continue;
    const Cover cover = *CoverOf(op.global, d, *split);
    operands[0] = Fetch(builder, operands[0], cover.operand,
                        Extreme(builder, shape.element_type, !*SelectsLargest(op.global)));
    operands[1] = Fetch(builder, operands[1], cover.source, builder.Zero(shape.element_type));
    window[d].padding_low = window[d].padding_high = 0;
    shape.dims[d] = cover.operand.width;
    begins.emplace_back(d, cover.begin);
  }
  Instruction* result = SameOpOn(op, shape, operands);
  hlo::SetWindow(result, window);
  for (const auto& [d, begin] : begins) {
    // The block, of which the ends may be in no window.
    const int64_t low = std::max<int64_t>(begin, 0), block = op.shape.dims[d];
    const int64_t high = std::max<int64_t>(block - begin - shape.dims[d], 0);
    result = PadDim(builder, result, d, low, high, operands[2]);
    const int64_t start = std::max<int64_t>(-begin, 0);
    result = SliceDim(builder, result, d, start, start + block);
  }
  return result;
}

}  // namespace tpusim::spmd::ops
