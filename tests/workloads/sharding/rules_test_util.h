// Factor rules as text: "(ab c)(c d)->(ab d) a=2 b=4 c=8r d=16". Dimensions are
// separated by blanks; '.' is a dimension without factors. After a size: r
// reduction, w whole (needs replication), p permutation; s propagation is stopped.
#ifndef TPUSIM_TESTS_WORKLOADS_SHARDING_RULES_TEST_UTIL_H_
#define TPUSIM_TESTS_WORKLOADS_SHARDING_RULES_TEST_UTIL_H_

#include <string>

#include "configs/status_macros.h"
#include "tests/workloads/hlo/hlo_test_util.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding {

inline std::string RuleText(const hlo::Instruction* instruction) {
  const absl::StatusOr<ShardingRule> rule = RuleFor(*instruction);
  if (!rule.ok()) return Message(rule.status());
  const auto text = [](const std::vector<TensorFactors>& tensors) {
    std::string all;
    for (const TensorFactors& tensor : tensors) {
      std::string dims;
      for (const std::vector<int32_t>& dim : tensor) {
        if (!dims.empty()) dims += ' ';
        for (int32_t factor : dim) dims += static_cast<char>('a' + factor);
        if (dim.empty()) dims += '.';
      }
      all += "(" + dims + ")";
    }
    return all;
  };
  std::string result = text(rule->operands) + "->" + text(rule->results);
  for (size_t f = 0; f < rule->factors.size(); ++f) {
    const Factor& factor = rule->factors[f];
    result += std::string(" ") + static_cast<char>('a' + f) + "=" + std::to_string(factor.size);
    if (factor.kind == FactorKind::kReduction) result += 'r';
    if (factor.kind == FactorKind::kNeedReplication) result += 'w';
    if (factor.kind == FactorKind::kPermutation) result += 'p';
    if (factor.blocked) result += 's';
  }
  return result;
}

}  // namespace tpusim::sharding

#endif  // TPUSIM_TESTS_WORKLOADS_SHARDING_RULES_TEST_UTIL_H_
