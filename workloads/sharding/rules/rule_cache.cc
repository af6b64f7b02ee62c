#include "workloads/sharding/rules/rule_cache.h"

#include <cstdint>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::sharding {
namespace {

using hlo::Instruction;
using hlo::Opcode;

void Append(int64_t number, std::string* key) {
  key->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <typename Numbers>
void AppendList(const Numbers& numbers, std::string* key) {
  Append(static_cast<int64_t>(numbers.size()), key);
  for (const int64_t number : numbers) Append(number, key);
}

// Writes everything that the instruction's rule depends on. False: it depends on something else, or
// the opcode is too rare to bother.
bool MakeKey(const Instruction& instruction, std::string* key) {
  if (!instruction.shape().IsArray()) return false;
  key->clear();
  Append(static_cast<int64_t>(instruction.opcode()), key);
  AppendList(instruction.shape().dims, key);
  for (const Instruction* operand : instruction.operands()) {
    AppendList(operand->shape().dims, key);
  }
  if (hlo::IsElementwise(instruction.opcode())) return true;
  switch (instruction.opcode()) {
    case Opcode::kConstant:
    case Opcode::kCopy:
    case Opcode::kIota:
    case Opcode::kReshape:
      return true;
    case Opcode::kBroadcast:
    case Opcode::kReduce:
    case Opcode::kTranspose:
      AppendList(instruction.attrs().dimensions(), key);
      return true;
    case Opcode::kDot: {
      const auto& dims = instruction.attrs().dot_dimension_numbers();
      AppendList(dims.lhs_contracting_dimensions(), key);
      AppendList(dims.rhs_contracting_dimensions(), key);
      AppendList(dims.lhs_batch_dimensions(), key);
      AppendList(dims.rhs_batch_dimensions(), key);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ShardingRule>> RuleCache::Find(
    const Instruction& instruction) {
  const bool has_key = MakeKey(instruction, &key_);
  if (has_key) {
    if (const auto it = known_.find(key_); it != known_.end()) return it->second;
  }
  ASSIGN_OR_RETURN(ShardingRule rule, RuleFor(instruction));
  auto shared = std::make_shared<const ShardingRule>(std::move(rule));
  if (has_key) known_.emplace(key_, shared);
  return shared;
}

}  // namespace tpusim::sharding
