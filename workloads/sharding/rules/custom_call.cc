// Custom calls, by target.
#include <string_view>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/host_callback.h"
#include "workloads/sharding/rules/rolls.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {
namespace {

struct TargetRule {
  std::string_view name;
  Rule* rule;
};

// A device needs a part of its neighbours' blocks.
absl::StatusOr<ShardingRule> RollRule(const hlo::Instruction& instruction) {
  return AllAlike(instruction, {GetRoll(instruction).dim}, FactorKind::kPermutation);
}

constexpr TargetRule kTargets[] = {
    // Where a value lives, not what it is.
    {"annotate_device_placement", Elementwise},
    {"MoveToHost", Elementwise},
    {"MoveToDevice", Elementwise},
    {"LayoutConstraint", Elementwise},
    {"TopK", TopK},
    {"Cholesky", MatrixBatch},
    {"Eigh", MatrixBatch},
    {"LuDecomposition", MatrixBatch},
    {"ProductOfElementaryHouseholderReflectors", MatrixBatch},
    {"Qr", MatrixBatch},
    {"QrDecomposition", MatrixBatch},
    // A kernel knows nothing of the mesh: outside of a manual region every device
    // runs it on everything.
    {"tpu_custom_call", Whole},
    {kRollTarget, RollRule},
};

}  // namespace

absl::StatusOr<ShardingRule> CustomCall(const hlo::Instruction& instruction) {
  const std::string& name = instruction.attrs().custom_call_target();
  // The user's word comes first.
  if (const auto stated = hlo::FrontendAttribute(instruction, kShardingRule)) {
    return StatedRule(instruction, *stated);
  }
  for (const TargetRule& target : kTargets) {
    if (target.name == name) return target.rule(instruction);
  }
  // JAX calls back once, with whole arrays.
  if (hlo::IsHostCallback(instruction)) return Whole(instruction);
  return NoRule(
      fmt::format("custom-call '{}' has no sharding rule, so it cannot be "
                  "partitioned: {}",
                  name, instruction.Describe()));
}

}  // namespace tpusim::sharding::rules
