// Factor rules: how the dimensions of an op's operands and results hang together.
//
// A rule describes an op as a loop nest. Each loop is a factor; each dimension
// of each tensor is a product of factors, major to minor. A dot
// (b i k),(b k j)->(b i j) has factors b, i, j (pass-through) and k (reduction);
// a reshape [32]->[4,8] has factors 4 and 8, and the operand's dimension is
// made of both. A sharding of one tensor is a sharding of the factors, and so
// says what the shardings of the other tensors must be for the op to run
// without communication. Propagation and the partitioner both work on factors
// only and know no op.
//
// One op family per file; rules.cc has the table opcode -> rule.
//
// The room answers which dimensions of an op belong to one loop; `RuleFor` is its entry point.
#ifndef TPUSIM_WORKLOADS_SHARDING_RULES_RULE_H_
#define TPUSIM_WORKLOADS_SHARDING_RULES_RULE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::sharding {

enum class FactorKind {
  kPassThrough,      // sharded: every device does its own part
  kReduction,        // sharded: every device has a partial result
  kNeedReplication,  // the op needs the whole factor
  // Passes through in propagation; sharded, the op itself has to move data (a halo) or to combine
  // what the devices found. Its dimensions may differ in size: the factor has the first one's.
  kPermutation,
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::kPassThrough;
  // Tensors that share the factor need not be split alike. A factor that needs
  // replication is propagated unless blocked: whole for the op, split around it.
  bool blocked = false;
  bool operator==(const Factor&) const = default;
};

// The factors of each dimension of a tensor, major to minor. Dimensions of size 1 have none.
using TensorFactors = std::vector<std::vector<int32_t>>;

struct ShardingRule {
  std::vector<Factor> factors;
  std::vector<TensorFactors> operands;  // one per operand
  std::vector<TensorFactors> results;   // one per leaf of the result

  int32_t AddFactor(int64_t size, FactorKind kind = FactorKind::kPassThrough) {
    factors.push_back({size, kind});
    return static_cast<int32_t>(factors.size()) - 1;
  }
};

// Returns the rule of an op. Error: it has none; the message names it with its source line.
absl::StatusOr<ShardingRule> RuleFor(const hlo::Instruction& instruction);

// The order in which ops take part in propagation, and in which directions: what is sure comes
// before what is a guess.
enum class RulePriority {
  kElementwise,    // both directions, from the first step on
  kForwardFirst,   // results first, operands later (dynamic slices)
  kGeneral,        // with all ops
  kBackwardFirst,  // operands first, results last (broadcast)
};
RulePriority PriorityOf(hlo::Opcode opcode);

namespace rules {

// Returns a rule whose tensors have the rank of their shape and no factors yet.
ShardingRule EmptyRule(const hlo::Instruction& instruction);
// Returns dimension `dim` of all these tensors that have it.
using Dims = std::vector<std::vector<int32_t>*>;
Dims At(size_t dim, std::initializer_list<std::span<TensorFactors>> tensors);
// Adds a factor that one dimension each of several tensors shares; none of size 1.
void Tie(ShardingRule& rule, int64_t size, FactorKind kind, const Dims& dims);
// Returns the rule in which every dimension is one loop of all tensors that have it; those of
// `along`, which are as large as the first operand says, are of kind `kind`.
ShardingRule AllAlike(const hlo::Instruction& instruction, const std::vector<int64_t>& along = {},
                      FactorKind kind = FactorKind::kPassThrough);
// Adds a factor that needs replication for each dimension without one.
void TieRest(ShardingRule& rule, const hlo::Instruction& instruction);

// Returns the rule of a custom call that the user gave as text. Error: it does not fit the call, or
// has factors that say too little of how to partition it.
inline constexpr char kShardingRule[] = "xla.sdy.sharding_rule";
absl::StatusOr<ShardingRule> StatedRule(const hlo::Instruction& instruction,
                                        const std::string& text);
using Rule = absl::StatusOr<ShardingRule>(const hlo::Instruction&);
Rule Broadcast, Collective, Concatenate, Convolution, CustomCall, Dot, DynamicSlice,
    DynamicUpdateSlice, Elementwise, Fft, Gather, MatrixBatch, Pad, RaggedAllToAll, RaggedDot,
    Reduce, ReduceWindow, Reshape, Reverse, Scatter, SelectAndScatter, Slice, Sort, TopK, Transpose,
    TriangularSolve, Whole;

}  // namespace rules
}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_RULES_RULE_H_
