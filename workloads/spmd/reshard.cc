#include "workloads/spmd/reshard.h"

#include <algorithm>
#include <deque>
#include <map>

#include "configs/status_macros.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/emit/emit.h"
#include "workloads/spmd/refit.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using sharding::Axes;
using sharding::Mesh;
using sharding::Sharding;

Instruction* Slice(Builder& builder, Instruction* value, const hlo::Shape& global,
                   const ReshardStep& step) {
  const hlo::Shape shape = ShardShape(global, step.after);
  // Dynamic slices clamp: a last shard that is not full needs something behind it.
  for (int64_t d = 0; d < global.rank(); ++d) {
    const int64_t shards = step.after.Shards(d) / step.before.Shards(d);
    if (shards > 1) value = builder.Resize(value, d, shards * shape.dims[d]);
  }
  std::vector<Instruction*> operands = {value};
  for (int64_t d = 0; d < global.rank(); ++d) {
    const Axes gained = AfterPrefix(step.before.dims[d].axes, step.after.dims[d].axes);
    operands.push_back(builder.Offset(gained, shape.dims[d]));
  }
  Instruction* slice = builder.Add(Opcode::kDynamicSlice, shape, operands);
  hlo::SetDynamicSliceSizes(slice, shape.dims);
  return slice;
}

// Shard numbers of every dimension and the number of the partial sum, as one key.
std::vector<int64_t> ShardOf(const Mesh& mesh, const Sharding& sharding, int64_t position) {
  std::vector<int64_t> shard;
  for (const sharding::DimSharding& dim : sharding.dims) {
    shard.push_back(ShardIndex(mesh, dim.axes, position));
  }
  shard.push_back(ShardIndex(mesh, sharding.unreduced, position));
  return shard;
}

// Several pairs of dimensions at once: the parts that go to other devices become one dimension in
// front, which numbers the senders afterwards and is taken apart again.
Instruction* AllToAll(Builder& builder, Instruction* value,
                      const std::vector<DimExchange>& exchanges) {
  const auto rank = static_cast<int64_t>(value->shape().dims.size());
  const auto pairs = std::ssize(exchanges);
  std::vector<int64_t> dims = value->shape().dims, parted, order, counts(rank, 1);
  for (const DimExchange& exchange : exchanges) counts[exchange.to_dim] = Product(exchange.axes);
  std::vector<int64_t> part_of(rank, -1), rest_of(rank);
  for (int64_t d = 0; d < rank; ++d) {
    if (counts[d] > 1) {
      part_of[d] = std::ssize(parted);
      parted.push_back(counts[d]);
    }
    rest_of[d] = std::ssize(parted);
    parted.push_back(dims[d] / counts[d]);
  }
  Axes axes;
  for (const DimExchange& exchange : exchanges) {
    order.push_back(part_of[exchange.to_dim]);
    axes = sharding::Concat(axes, exchange.axes);
  }
  order.insert(order.end(), rest_of.begin(), rest_of.end());
  const auto transpose = [&](Instruction* of, const std::vector<int64_t>& by) {
    std::vector<int64_t> moved;
    for (const int64_t d : by) moved.push_back(of->shape().dims[d]);
    Instruction* transposed = builder.Add(
        hlo::Opcode::kTranspose, hlo::MakeShape(of->shape().element_type, moved), {of});
    hlo::SetDimensions(transposed, by);
    return transposed;
  };
  Instruction* in_front = transpose(builder.Reshape(value, parted), order);
  std::vector<int64_t> joined = in_front->shape().dims;
  joined.erase(joined.begin() + 1, joined.begin() + pairs);
  joined[0] = Product(axes);
  Instruction* sent = builder.Exchange(builder.Reshape(in_front, joined), axes);
  Instruction* senders = builder.Reshape(sent, in_front->shape().dims);
  std::vector<int64_t> back, result;
  for (int64_t d = 0; d < rank; ++d) {
    result.push_back(dims[d] / counts[d]);
    for (int64_t p = 0; p < pairs; ++p) {
      if (exchanges[p].dim != d) continue;
      back.push_back(p);
      result.back() *= Product(exchanges[p].axes);
    }
    back.push_back(pairs + d);
  }
  return builder.Reshape(transpose(senders, back), result);
}

}  // namespace

std::vector<std::pair<int64_t, int64_t>> PermutePairs(const Mesh& mesh, const Sharding& from,
                                                      const Sharding& to) {
  const std::vector<int64_t> partitions = sharding::PartitionAtPosition(mesh);
  const int64_t n = mesh.size();
  std::vector<int64_t> source(n, -1);  // of each position
  std::map<std::vector<int64_t>, std::deque<int64_t>> free;
  for (int64_t p = 0; p < n; ++p) {
    const std::vector<int64_t> held = ShardOf(mesh, from, p);
    if (held == ShardOf(mesh, to, p)) {
      source[p] = p;
    } else {
      free[held].push_back(p);
    }
  }
  // Every shard has as many holders before as after.
  for (int64_t p = 0; p < n; ++p) {
    if (source[p] >= 0) continue;
    std::deque<int64_t>& holders = free[ShardOf(mesh, to, p)];
    TPUSIM_CHECK(!holders.empty(), "no permutation between shardings of different counts");
    source[p] = holders.front();
    holders.pop_front();
  }
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t p = 0; p < n; ++p) pairs.push_back({partitions[source[p]], partitions[p]});
  std::ranges::sort(pairs);
  return pairs;
}

Axes AxesOfPairs(const Mesh& mesh, const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  const std::vector<int64_t> positions = sharding::PositionOfPartition(mesh);
  const auto partitions = static_cast<int64_t>(positions.size());
  for (const auto& [from, to] : pairs) {
    TPUSIM_CHECK(from >= 0 && from < partitions && to >= 0 && to < partitions,
                 "a pair beyond the mesh, which hlo::VerifyCollectives refuses");
  }
  Axes axes;
  for (size_t a = 0; a < mesh.axes.size(); ++a) {
    const Axes axis = {sharding::FullAxis(mesh, static_cast<int32_t>(a))};
    for (const auto& [from, to] : pairs) {
      if (ShardIndex(mesh, axis, positions[from]) == ShardIndex(mesh, axis, positions[to]))
        continue;
      axes.push_back(axis[0]);
      break;
    }
  }
  return axes;
}

Instruction* CarryOut(Builder& builder, Instruction* value, const hlo::Shape& global,
                      const ReshardPlan& plan, const RegionMaker& region) {
  for (const ReshardStep& step : plan.steps) {
    const hlo::Shape after = ShardShape(global, step.after);
    const int64_t group = sharding::Product(step.axes);
    switch (step.kind) {
      case ReshardKind::kSlice:
        value = Slice(builder, value, global, step);
        break;
      case ReshardKind::kAllGather:
        value = builder.AllGather(value, step.axes, step.dim);
        value = builder.Resize(value, step.dim, after.dims[step.dim]);
        break;
      case ReshardKind::kAllToAll: {
        if (step.exchanges.size() > 1) {
          value = AllToAll(builder, value, step.exchanges);
          break;
        }
        const auto& [dim, to_dim, axes] = step.exchanges.front();
        value = builder.Resize(value, to_dim, after.dims[to_dim] * group);
        value = builder.AllToAll(value, axes, to_dim, dim);
        value = builder.Resize(value, dim, after.dims[dim]);
        break;
      }
      case ReshardKind::kCollectivePermute: {
        const auto pairs = PermutePairs(builder.mesh(), step.before, step.after);
        value = builder.CollectivePermute(value, pairs, AxesOfPairs(builder.mesh(), pairs));
        break;
      }
      case ReshardKind::kSumOfParts: {
        // Every device puts its shard among zeros.
        const int64_t d = step.dim, block = value->shape().dims[d];
        const Combiner sum = SumOf(global.element_type);
        Instruction* zero = builder.Zero(global.element_type);
        value = AmongZeros(builder, value, d, block * group, zero,
                           [&] { return builder.Offset(step.axes, block); });
        value = builder.Resize(value, d, after.dims[d]);
        value = builder.AllReduce(value, step.axes, builder.BinaryRegion(sum.opcode, sum.type));
        break;
      }
      case ReshardKind::kRefit: {
        const int64_t d = step.dim;
        const auto refit = RefitOf(builder.mesh(), step.before.dims[d].axes,
                                   step.after.dims[d].axes, global.dims[d]);
        TPUSIM_CHECK(refit.has_value(), "a refit that the plan has not");
        value = CarryOut(builder, value, d, *refit);
        break;
      }
      case ReshardKind::kAllReduce:
        value = builder.AllReduce(value, step.axes, region());
        break;
      case ReshardKind::kReduceScatter:
        value = builder.Resize(value, step.dim, after.dims[step.dim] * group);
        value = builder.ReduceScatter(value, step.axes, step.dim, region());
        break;
    }
  }
  return value;
}

}  // namespace tpusim::spmd
