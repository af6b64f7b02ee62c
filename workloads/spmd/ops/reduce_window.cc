// Reductions over windows. Sums over everything so far (cumsum and its like) are
// done block by block, and then add up the blocks before.
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/emit/window.h"
#include "workloads/spmd/ops/local_op.h"

namespace tpusim::spmd::ops {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using sharding::Axes;

enum class Running { kNo, kForward, kBackward };

// Whether dimension `d` accumulates all elements up to each (or from each on).
Running RunningOf(const Instruction& global, int64_t d) {
  const hlo::WindowDim window = hlo::GetWindow(global)[d];
  const int64_t size = global.operand(0)->shape().dims[d];
  if (window.size != size || window.stride != 1 || window.window_dilation != 1 ||
      window.base_dilation != 1 || !ReduceCombiner(global)) {
    return Running::kNo;
  }
  if (window.padding_low == size - 1 && window.padding_high == 0) return Running::kForward;
  if (window.padding_high == size - 1 && window.padding_low == 0) return Running::kBackward;
  return Running::kNo;
}

std::optional<SpatialWindow> WindowOf(const Instruction& global, int64_t d, const Axes& axes) {
  return SpatialWindowOf(hlo::GetWindow(global)[d], d, global.operand(0)->shape().dims[d],
                         hlo::Leaves(global.shape())[0]->dims[d], axes);
}

// The result of the blocks before (or behind) this one, one element along `d`.
Instruction* OtherBlocks(const LocalOp& op, Instruction* local, int64_t d, const Axes& axes,
                         Running running) {
  Builder& builder = op.builder;
  const int64_t block = local->shape().dims[d];
  Instruction* total = running == Running::kForward ? SliceDim(builder, local, d, block - 1, block)
                                                    : SliceDim(builder, local, d, 0, 1);
  Instruction* all = builder.AllGather(total, axes, d);
  // Block b comes before this one (number i) where b - i < 0.
  Instruction* minus =
      Binary(builder, Opcode::kSubtract, builder.Constant(hlo::PrimitiveType::kS32, 0),
             builder.Coordinate(axes));
  Instruction* counts = running == Running::kForward
                            ? builder.InRange(all->shape(), d, minus, std::nullopt, 0)
                            : builder.InRange(all->shape(), d, minus, 1, std::nullopt);
  all = Select(builder, counts, all, op.operands[1]);
  Shape shape = local->shape();
  shape.dims.erase(shape.dims.begin() + d);
  shape = hlo::MakeShape(shape.element_type, shape.dims);
  Instruction* sum = builder.Add(Opcode::kReduce, shape, {all, op.operands[1]});
  hlo::SetDimensions(sum, {d});
  sum->set_called({builder.module()->CloneComputation(*op.global.called()[0])});
  std::vector<int64_t> to;
  for (int64_t i = 0; i < local->shape().rank(); ++i) {
    if (i != d) to.push_back(i);
  }
  return Spread(builder, sum, local->shape().dims, to);
}

}  // namespace

std::optional<Bytes> ReduceWindowOwn(const Instruction& global, const sharding::ShardingRule& rule,
                                     const std::vector<Axes>& axes) {
  Bytes bytes(0);
  const size_t inputs = global.operands().size() / 2;
  for (size_t i = 0; i < inputs; ++i) {
    const Shape local = LocalOperandShape(global, rule, axes, i);
    for (int64_t d = 0; d < local.rank(); ++d) {
      const Axes* split = MovedAxes(rule, axes, rule.operands[0][d]);
      if (split == nullptr) continue;
      if (RunningOf(global, d) != Running::kNo) {
        bytes += LineBytes(local, d) * (Product(*split) - 1);
        continue;
      }
      const std::optional<SpatialWindow> window = WindowOf(global, d, *split);
      if (!window) return std::nullopt;
      bytes += LineBytes(local, d) * ReceivedElements(window->fetched);
    }
  }
  return bytes;
}

absl::StatusOr<Instruction*> ReduceWindow(const LocalOp& op) {
  Builder& builder = op.builder;
  const size_t inputs = op.operands.size() / 2;
  std::vector<Instruction*> operands = op.operands;
  std::vector<hlo::WindowDim> window = hlo::GetWindow(op.global);
  std::vector<std::pair<int64_t, Running>> running;
  for (int64_t d = 0; d < op.operands[0]->shape().rank(); ++d) {
    const Axes* split = MovedAxes(op.rule, op.choice.axes, op.rule.operands[0][d]);
    if (split == nullptr) continue;
    if (const Running kind = RunningOf(op.global, d); kind != Running::kNo) {
      const int64_t block = operands[0]->shape().dims[d];
      operands[0] =
          builder.Mask(operands[0], d, *split, op.global.operand(0)->shape().dims[d], operands[1]);
      window[d].size = block;
      window[d].padding_low = kind == Running::kForward ? block - 1 : 0;
      window[d].padding_high = kind == Running::kForward ? 0 : block - 1;
      running.emplace_back(d, kind);
      continue;
    }
    const std::optional<SpatialWindow> spatial = WindowOf(op.global, d, *split);
    for (size_t i = 0; i < inputs; ++i) {
      operands[i] = Fetch(builder, operands[i], spatial->fetched, operands[inputs + i]);
    }
    window[d] = spatial->local;
  }
  Instruction* result = SameOpOn(op, std::move(operands));
  hlo::SetWindow(result, window);
  for (const auto& [d, kind] : running) {
    Instruction* others = OtherBlocks(
        op, result, d, *MovedAxes(op.rule, op.choice.axes, op.rule.operands[0][d]), kind);
    result = Binary(builder, ReduceCombiner(op.global)->opcode, result, others);
  }
  return result;
}

}  // namespace tpusim::spmd::ops
