// The graph that propagation works on: values that may be split, and ops between them.
//
// A node is one sharding to be found. Several HLO values may be one node:
// an element of a tuple and what the tuple was made of, a loop's result and the
// parameters of its body and condition, a branch's parameter and its operand.
// An op ties nodes by a factor rule. Besides the HLO ops there are edges, which
// tie one value to the values that it may come from: a loop's carry to the
// initial value and to what the body returns, a conditional's result to what
// the branches return, the boundary of a manual region.
#ifndef TPUSIM_WORKLOADS_SHARDING_PROPAGATION_PROPAGATION_GRAPH_H_
#define TPUSIM_WORKLOADS_SHARDING_PROPAGATION_PROPAGATION_GRAPH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/sharding/factors/factor_propagation.h"
#include "workloads/sharding/normalised/normalise.h"
#include "workloads/sharding/rules/rule.h"
#include "workloads/sharding/rules/rule_cache.h"
#include "workloads/sharding/types/axes.h"

namespace tpusim::sharding {

// A node as seen from outside or inside of the manual region whose boundary it
// is: inside, its manual axes are gone and its dimensions are those of a shard.
struct TensorRef {
  int32_t node = 0;
  bool inside = false;
  bool operator==(const TensorRef&) const = default;
};

struct ShardingNode {
  Sharding sharding;
  std::vector<Axes> manual;  // per dimension, of a boundary: its leading manual axes
  int32_t uses = 0;          // operand slots
  bool annotated = false;    // the program says something
  std::string reason;        // why it is as it is, if the program says so
  // Otherwise: the op, its tensor that had the axes, and when.
  int32_t from_op = -1, from_tensor = -1;
  int32_t priority = 0;
  int8_t step = 0;
  bool aggressive = false;
};

enum class OpKind : uint8_t { kHlo, kLoopCarry, kBranchResult, kRegionOperand, kRegionResult };

struct Op {
  std::shared_ptr<const ShardingRule> rule;
  std::vector<TensorRef> tensors;  // operands, then results
  int32_t num_operands = 0;
  const hlo::Instruction* instruction = nullptr;  // the op, or whose edge it is
  int32_t index = 0;                              // of an edge: which element
  OpKind kind = OpKind::kHlo;
  RulePriority priority = RulePriority::kGeneral;
  std::optional<Flow> barrier;  // the only way that axes may go
  bool single_use = false;      // no operand (scalars aside) has another use
  bool only_passes = true;      // every factor passes through
  bool is_result = false;       // makes a result of the program
  int32_t context = 0;          // which manual axes are out of reach

  const TensorFactors& FactorsOf(size_t tensor) const {
    const auto operands = static_cast<size_t>(num_operands);
    return tensor < operands ? rule->operands[tensor] : rule->results[tensor - operands];
  }
};

// A node took a mesh axis that it had not had, from an op. In the order of time.
struct Adoption {
  int32_t node = 0, axis = 0, op = 0;
};

class PropagationGraph {
 public:
  // On one device nothing is split; `on_any_mesh` has the ops nevertheless.
  explicit PropagationGraph(const NormalisedModule& in, bool on_any_mesh = false)
      : in_(in), has_ops_(on_any_mesh || in.mesh.mesh.size() > 1) {}
  // Error: an op without a rule.
  absl::Status Build();

  std::vector<ShardingNode> nodes;
  std::vector<Op> ops;         // in program order, loop bodies behind their loops
  std::vector<Axes> contexts;  // manual axes of regions; 0 = none
  std::vector<Adoption> adoptions;
  // Returns the leaves of an instruction; valid until the graph grows.
  std::span<const TensorRef> Values(const hlo::Instruction* instruction) const {
    const LeafRange range = values_.at(instruction->id());
    return std::span(refs_).subspan(range.first, range.count);
  }
  // Returns the instructions that have values, in the order in which they were met.
  const std::vector<const hlo::Instruction*>& instructions() const { return instructions_; }
  // The ops that a node takes part in: the op that makes it, then users.
  std::span<const int32_t> OpsOf(int32_t node) const {
    return std::span(ops_of_nodes_).subspan(ops_of_[node].first, ops_of_[node].count);
  }
  // The sharding as it stands in the module.
  Sharding Seen(const TensorRef& ref) const;

 private:
  struct LeafRange {
    uint32_t first = 0, count = 0;
  };
  bool HasValues(const hlo::Instruction* instruction) const { return met_[instruction->id()] != 0; }
  void SetValues(const hlo::Instruction* instruction, std::span<const TensorRef> refs);
  // The leaves of another one from `first` on.
  void ShareValues(const hlo::Instruction* instruction, const hlo::Instruction* with,
                   size_t first = 0, size_t count = SIZE_MAX);
  void TieOpsToNodes();
  // Leaves in front of an element of a tuple.
  size_t LeavesBefore(const hlo::Instruction* tuple, int64_t index);
  int32_t NewNode(int64_t rank, int32_t context);
  std::vector<TensorRef> NewNodes(const hlo::Instruction* instruction, int32_t context);
  void AddEdge(const hlo::Shape& shape, std::vector<TensorRef> from, TensorRef to, OpKind kind,
               const hlo::Instruction* instruction, int32_t index, int32_t context);
  // The program itself says how that leaf is sharded.
  bool IsAnnotated(const hlo::Instruction& instruction, size_t leaf) const;
  void AddLoop(const hlo::Instruction* loop, int32_t context);
  absl::Status AddInstruction(const hlo::Instruction* instruction, int32_t context);
  void AddRegionParameters(const hlo::Instruction* call, int32_t context);
  // Once the computations that it calls are known.
  void AddFlow(const hlo::Instruction* instruction, int32_t context);
  void ApplyConstraints();
  void Use(std::span<const TensorRef> refs) {
    for (const TensorRef& ref : refs) ++nodes[ref.node].uses;
  }
  int32_t Context(const hlo::Instruction* call, int32_t outer);

  const NormalisedModule& in_;
  const bool has_ops_;
  std::vector<TensorRef> refs_;  // of all instructions, one range each
  std::vector<LeafRange> values_;    // by instruction id
  std::vector<char> met_;        // by instruction id
  std::vector<const hlo::Instruction*> instructions_;
  std::vector<int32_t> ops_of_nodes_;  // one range per node
  std::vector<LeafRange> ops_of_;
  std::unordered_map<int64_t, int32_t> groups_;  // sharding group -> node
  // The offset at which each element of a large tuple begins.
  std::unordered_map<const hlo::Instruction*, std::vector<uint32_t>> begins_;
  RuleCache rules_;
};

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_PROPAGATION_PROPAGATION_GRAPH_H_
