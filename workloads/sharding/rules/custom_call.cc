// Custom calls, by target.
#include <string_view>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {
namespace {

struct Target {
  std::string_view name;
  RuleFn rule;
};

constexpr Target kTargets[] = {
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
};

}  // namespace

absl::StatusOr<ShardingRule> CustomCall(const hlo::Instruction& instruction) {
  const std::string& name = instruction.attrs().custom_call_target();
  for (const Target& target : kTargets) {
    if (target.name == name) return target.rule(instruction);
  }
  return NoRule(
      fmt::format("custom-call '{}' has no sharding rule, so it cannot be "
                  "partitioned: {}",
                  name, instruction.Describe()));
}

}  // namespace tpusim::sharding::rules
