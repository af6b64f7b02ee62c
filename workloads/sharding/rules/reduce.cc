// Reductions over whole dimensions, of one or several arrays at once.
#include <algorithm>

#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {

absl::StatusOr<ShardingRule> Reduce(const hlo::Instruction& instruction) {
  ShardingRule rule = EmptyRule(instruction);
  const size_t inputs = instruction.operands().size() / 2;  // the rest are init values
  const auto& reduced = instruction.attrs().dimensions();
  const std::vector<int64_t>& dims = instruction.operand(0)->shape().dims;
  // Several arrays are reduced together by one function of all of them
  // (arg-max): no plain collective combines partial results, the op does.
  const FactorKind kind = inputs == 1 ? FactorKind::kReduction : FactorKind::kPermutation;
  size_t result = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool gone = std::ranges::find(reduced, d) != reduced.end();
    Dims tied = At(d, {std::span(rule.operands).first(inputs)});
    if (!gone) {
      const Dims results = At(result++, {rule.results});
      tied.insert(tied.end(), results.begin(), results.end());
    }
    Tie(rule, dims[d], gone ? kind : FactorKind::kPassThrough, tied);
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
