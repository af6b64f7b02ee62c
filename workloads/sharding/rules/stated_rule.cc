// The sharding rule that a user gave a custom call, in Shardy's text form:
//
//   #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=64, j=16, k=32} reduction={k}, custom>
//
// A dimension is one factor or several, major to minor ("ij"). Factors are named
// i to z, then z_1, z_2 and so on. A factor that every result has is split among
// devices, each of which calls the kernel on its part.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/sharding/rules/rule.h"

namespace tpusim::sharding::rules {
namespace {

// Factor names per dimension.
using Names = std::vector<std::vector<std::string>>;

class RuleReader {
 public:
  RuleReader(const hlo::Instruction& instruction, std::string_view text)
      : instruction_(instruction), text_(text), left_(text) {}

  absl::Status Error(const std::string& what) const {
    return UserError(
        fmt::format("sharding rule '{}' of {}: {}", text_, instruction_.Describe(), what));
  }
  bool Accept(std::string_view token) {
    while (!left_.empty() && left_[0] == ' ') left_.remove_prefix(1);
    if (left_.substr(0, token.size()) != token) return false;
    left_.remove_prefix(token.size());
    return true;
  }
  absl::Status Expect(std::string_view token) {
    return Accept(token) ? absl::OkStatus() : Error(fmt::format("'{}' is missing", token));
  }
  bool AtEnd() { return !Accept(" ") && left_.empty(); }

  // "i", "z_12"; "" if there is none.
  std::string Factor() {
    Accept("");
    if (left_.empty() || left_[0] < 'a' || left_[0] > 'z') return "";
    size_t size = 1;
    if (left_.substr(1, 1) == "_") {
      size = 2;
      while (size < left_.size() && left_[size] >= '0' && left_[size] <= '9') ++size;
    }
    const std::string name(left_.substr(0, size));
    left_.remove_prefix(size);
    return name;
  }

  absl::StatusOr<int64_t> Number() {
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < left_.size() && left_[digits] >= '0' && left_[digits] <= '9'; ++digits) {
      if (digits == 18) return Error("a size is too large");
      value = value * 10 + (left_[digits] - '0');
    }
    if (digits == 0) return Error("a size is missing");
    left_.remove_prefix(digits);
    return value;
  }

  // "([i, jk], [])"
  absl::StatusOr<std::vector<Names>> Tensors() {
    std::vector<Names> tensors;
    RETURN_IF_ERROR(Expect("("));
    if (Accept(")")) return tensors;
    do {
      Names& tensor = tensors.emplace_back();
      RETURN_IF_ERROR(Expect("["));
      if (Accept("]")) continue;
      do {
        std::vector<std::string>& dim = tensor.emplace_back();
        for (std::string f = Factor(); !f.empty(); f = Factor()) dim.push_back(f);
        if (dim.empty()) Accept("{}");  // a dimension without factors
      } while (Accept(","));
      RETURN_IF_ERROR(Expect("]"));
    } while (Accept(","));
    RETURN_IF_ERROR(Expect(")"));
    return tensors;
  }

 private:
  const hlo::Instruction& instruction_;
  const std::string_view text_;
  std::string_view left_;
};

struct FactorKindName {
  std::string_view name;
  FactorKind kind;
  bool supported;
};
// The kinds of factors that a call may state. The Python function that partitions the call knows
// how the devices' parts are combined, or which of them move; the module does not.
constexpr FactorKindName kKinds[] = {
    {"reduction", FactorKind::kReduction, false},
    {"need_replication", FactorKind::kNeedReplication, true},
    {"permutation", FactorKind::kPermutation, false},
};

}  // namespace

absl::StatusOr<ShardingRule> StatedRule(const hlo::Instruction& instruction,
                                        const std::string& text) {
  RuleReader reader(instruction, text);
  RETURN_IF_ERROR(reader.Expect("#sdy.op_sharding_rule<"));
  ASSIGN_OR_RETURN(std::vector<Names> tensors, reader.Tensors());
  const size_t operands = tensors.size();
  RETURN_IF_ERROR(reader.Expect("->"));
  ASSIGN_OR_RETURN(const std::vector<Names> results, reader.Tensors());
  tensors.insert(tensors.end(), results.begin(), results.end());

  ShardingRule rule = EmptyRule(instruction);
  if (operands != rule.operands.size() || results.size() != rule.results.size()) {
    return reader.Error(fmt::format("it is of {} operands and {} results, the call has {} and {}",
                                    operands, results.size(), rule.operands.size(),
                                    rule.results.size()));
  }
  std::map<std::string, int32_t> factors;  // -1: of size 1
  RETURN_IF_ERROR(reader.Expect("{"));
  while (!reader.Accept("}")) {
    const std::string name = reader.Factor();
    RETURN_IF_ERROR(reader.Expect("="));
    ASSIGN_OR_RETURN(const int64_t size, reader.Number());
    factors[name] = size == 1 ? -1 : rule.AddFactor(size);
    reader.Accept(",");
  }
  for (const FactorKindName& kind : kKinds) {
    if (!reader.Accept(kind.name)) continue;
    RETURN_IF_ERROR(reader.Expect("={"));
    do {
      const std::string name = reader.Factor();
      const auto found = factors.find(name);
      if (found == factors.end()) return reader.Error(fmt::format("no factor '{}'", name));
      if (found->second < 0) continue;
      if (!kind.supported) {
        return NoRule(fmt::format(
            "the sharding rule of {} has the {} factor '{}': how the devices' parts become the "
            "result is not in the module; only pass-through and need_replication factors can be "
            "partitioned",
            instruction.Describe(), kind.name, name));
      }
      rule.factors[found->second].kind = kind.kind;
    } while (reader.Accept(","));
    RETURN_IF_ERROR(reader.Expect("}"));
  }
  if (reader.Accept("blocked_propagation={")) {
    do {
      const auto found = factors.find(reader.Factor());
      if (found == factors.end()) return reader.Error("no such factor");
      if (found->second >= 0) rule.factors[found->second].blocked = true;
    } while (reader.Accept(","));
    RETURN_IF_ERROR(reader.Expect("}"));
  }
  if (reader.Accept(",")) RETURN_IF_ERROR(reader.Expect("custom"));
  RETURN_IF_ERROR(reader.Expect(">"));
  if (!reader.AtEnd()) return reader.Error("something follows its end");

  std::vector<const hlo::Shape*> shapes;
  for (const hlo::Instruction* operand : instruction.operands())
    shapes.push_back(&operand->shape());
  for (const hlo::Shape* leaf : hlo::Leaves(instruction.shape())) shapes.push_back(leaf);
  for (size_t t = 0; t < tensors.size(); ++t) {
    TensorFactors& into = t < operands ? rule.operands[t] : rule.results[t - operands];
    if (tensors[t].size() != into.size()) {
      return reader.Error(
          fmt::format("value {} has {} dimensions, not {}", t, into.size(), tensors[t].size()));
    }
    for (size_t d = 0; d < into.size(); ++d) {
      int64_t size = 1;
      for (const std::string& name : tensors[t][d]) {
        const auto found = factors.find(name);
        if (found == factors.end()) return reader.Error(fmt::format("no size of '{}'", name));
        if (found->second < 0) continue;
        into[d].push_back(found->second);
        size *= rule.factors[found->second].size;
      }
      // Shardy allows factors that do not fill a dimension; devices would then
      // hold parts of different meaning.
      if (size != shapes[t]->dims[d] && !into[d].empty()) {
        return reader.Error(fmt::format("dimension {} of value {} has size {}, its factors {}", d,
                                        t, shapes[t]->dims[d], size));
      }
    }
  }
  // Parts of what is summed away would make parts of a sum: the call gets it whole.
  for (int32_t f = 0; f < static_cast<int32_t>(rule.factors.size()); ++f) {
    const auto holds = [f](const TensorFactors& tensor) {
      return std::ranges::any_of(
          tensor, [f](const auto& dim) { return std::ranges::find(dim, f) != dim.end(); });
    };
    if (!std::ranges::all_of(rule.results, holds)) {
      rule.factors[f].kind = FactorKind::kNeedReplication;
    }
  }
  return rule;
}

}  // namespace tpusim::sharding::rules
