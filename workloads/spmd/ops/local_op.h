// One device's part of an op, once its operands are sharded as the op needs them.
//
// The partitioner does the same for every op: it takes the op's factor rule
// (sharding/rules), chooses which factors to split over which mesh axes, reshards
// the operands to that, asks the op's family for the local part, and reshards
// the result to what its users expect. Most ops are themselves on smaller
// shapes. A family adds what is special about an op: one family per file, and one
// line in table.cc.
//
// What a family may rely on:
// - Factor kinds. Pass-through factors may be split. A reduction factor is split
//   only if the family has a combiner: the local result then is partial (the
//   result's sharding lists the axes as unreduced) and is added up later, at the
//   best place. A permutation factor is split only if the family's `own` allows
//   it; the family then brings what it needs from other devices by itself (a
//   halo, an offset, a mask). Factors that need replication are never split.
// - Uneven shards. A dimension of size n over k shards has a local size of
//   ceil(n / k); the shard with number i holds elements [i * ceil, (i + 1) * ceil), and
//   what lies beyond n is padding of arbitrary content (NaN, any integer). Along a
//   pass-through factor is of no consequence. Along any other split factor a family masks
//   its operands first (MaskOperand, Builder::Mask). A factor is split unevenly only
//   if it is alone in its dimension, in every operand and result.
//
// The room answers what one device does of an op; `FamilyOf` is its entry point.
#ifndef TPUSIM_WORKLOADS_SPMD_OPS_LOCAL_OP_H_
#define TPUSIM_WORKLOADS_SPMD_OPS_LOCAL_OP_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/sharding/rules/rule.h"
#include "workloads/spmd/emit/emit.h"

namespace tpusim::spmd {

// The split of an op's loops over the mesh (factor_choice.h chooses it).
struct FactorChoice {
  std::vector<sharding::Axes> axes;          // per factor
  std::vector<sharding::Sharding> operands;  // as the local op needs them
  std::vector<sharding::Sharding> results;   // as it gives them, partial sums included
  Bytes bytes{0};                            // moved by all reshards together
};

struct LocalOp {
  Builder& builder;  // its source is the op
  const hlo::Instruction& global;
  const sharding::ShardingRule& rule;
  const FactorChoice& choice;  // axes per factor; shardings of operands and results
  const std::vector<hlo::Instruction*>& operands;  // sharded as choice.operands
  const hlo::Shape& shape;                         // of this device's part
};

// The result, sharded as choice.results says.
using Make = absl::StatusOr<hlo::Instruction*>(const LocalOp& op);
using CombinerRule = std::optional<Combiner>(const hlo::Instruction& global);
// Bytes that `make` itself makes a device receive with the factors split like this; nullopt: it
// cannot do so.
using OwnBytes = std::optional<Bytes>(const hlo::Instruction& global,
                                      const sharding::ShardingRule& rule,
                                      const std::vector<sharding::Axes>& axes);

struct OpFamily {
  Make* make = nullptr;
  CombinerRule* combiner = nullptr;  // null or nullopt: reduction factors must be whole
  OwnBytes* own = nullptr;           // null: permutation factors must be whole
};

// The family of an op; one that is the op itself if it has no line in the table.
const OpFamily& FamilyOf(const hlo::Instruction& global);
std::optional<Combiner> CombinerOf(const hlo::Instruction& global);

// The op with its attributes, on local shapes; what it calls is copied.
Make SameOp;
// Adds the op on other operands, for example masked ones.
hlo::Instruction* SameOpOn(const LocalOp& op, std::vector<hlo::Instruction*> operands);
// Adds the op on another shape as well, for example with a halo.
hlo::Instruction* SameOpOn(const LocalOp& op, hlo::Shape shape,
                           std::vector<hlo::Instruction*> operands);

// Axes that split dimension `dim` of operand `i`.
const sharding::Axes& OperandAxes(const LocalOp& op, size_t i, int64_t dim);
// One device's part of operand `i` if the factors are split by `axes`.
hlo::Shape LocalOperandShape(const hlo::Instruction& global, const sharding::ShardingRule& rule,
                             const std::vector<sharding::Axes>& axes, size_t i);
// Bytes per element along dimension `d` of it.
Bytes LineBytes(const hlo::Shape& local, int64_t d);
// The one factor of a dimension; -1 if it has none.
inline int32_t FactorOf(const std::vector<int32_t>& dim) { return dim.size() == 1 ? dim[0] : -1; }
// The axes that split the one factor of a dimension, along which the op moves elements or adds
// them up; null if nothing splits it, or the op only passes along it.
const sharding::Axes* MovedAxes(const sharding::ShardingRule& rule,
                                const std::vector<sharding::Axes>& axes,
                                const std::vector<int32_t>& dim);
// Operand `i` with the padding of every dimension whose factor is no pass-through
// replaced by the scalar `fill` (of the operand's type).
hlo::Instruction* MaskOperand(const LocalOp& op, size_t i, hlo::Instruction* fill);

namespace ops {
// One family per file.
Make Concatenate, Convolution, Dot, DynamicSlice, DynamicUpdateSlice, Gather, Iota, Pad, RaggedDot,
    Reduce, ReduceWindow, Reverse, Roll, Scatter, SelectAndScatter, Slice, TopK;
CombinerRule ReduceCombiner, ScatterCombiner;
OwnBytes ConcatenateOwn, ConvolutionOwn, DynamicUpdateSliceOwn, PadOwn, RaggedDotOwn, ReduceOwn, ReduceWindowOwn,
    ReverseOwn, RollOwn, SelectAndScatterOwn, SliceOwn, TopKOwn;
}  // namespace ops

}  // namespace tpusim::spmd

#endif  // TPUSIM_WORKLOADS_SPMD_OPS_LOCAL_OP_H_
