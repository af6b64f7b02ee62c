// Rules that are made once for all instructions alike: programs repeat
// themselves.
#ifndef TPUSIM_WORKLOADS_SHARDING_RULES_RULE_CACHE_H_
#define TPUSIM_WORKLOADS_SHARDING_RULES_RULE_CACHE_H_

#include <memory>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding {

class RuleCache {
 public:
  // RuleFor(instruction).
  absl::StatusOr<std::shared_ptr<const ShardingRule>> Find(const hlo::Instruction& instruction);

 private:
  std::unordered_map<std::string, std::shared_ptr<const ShardingRule>> known_;
  std::string key_;  // of the instruction at hand
};

}  // namespace tpusim::sharding

#endif  // TPUSIM_WORKLOADS_SHARDING_RULES_RULE_CACHE_H_
