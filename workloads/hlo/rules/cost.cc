#include "workloads/hlo/rules/cost.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/op_rules.h"

namespace tpusim::hlo {
namespace cost_rules {

int64_t Mul(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}
int64_t Add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}
Bytes Add(Bytes a, Bytes b) { return Bytes(Add(a.value(), b.value())); }

void Accumulate(const Cost& part, Cost* sum) {
  sum->flops = Flops(Add(sum->flops.value(), part.flops.value()));
  sum->transcendentals = Flops(Add(sum->transcendentals.value(), part.transcendentals.value()));
  sum->bytes_read = Add(sum->bytes_read, part.bytes_read);
  sum->bytes_written = Add(sum->bytes_written, part.bytes_written);
}

Bytes OperandBytes(const Instruction& i) {
  Bytes sum(0);
  for (const Instruction* operand : i.operands()) sum = Add(sum, operand->shape().ByteSize());
  return sum;
}

Cost Full(const Instruction& i, int64_t flops, int64_t transcendentals) {
  return {Flops(flops), Flops(transcendentals), OperandBytes(i), i.shape().ByteSize()};
}

Cost Moves(Bytes moved) { return {Flops(0), Flops(0), moved, moved}; }

int64_t Elements(const Shape& shape) {
  const Shape* first = &shape;
  while (first->IsTuple() && !first->tuple.empty()) first = &first->tuple[0];
  return first->IsArray() ? first->ElementCount() : 0;
}

Result Applied(const Instruction& i, size_t callee, int64_t count, const CalleeCosts& callees) {
  if (callee >= i.called().size()) return UserError(i.Describe() + " calls nothing");
  const Cost& once = callees.at(i.called()[callee]);
  Cost cost;
  cost.flops = Flops(Mul(once.flops.value(), count));
  cost.transcendentals = Flops(Mul(once.transcendentals.value(), count));
  return cost;
}

Result FullApplied(const Instruction& i, int64_t count, const CalleeCosts& callees) {
  ASSIGN_OR_RETURN(Cost cost, Applied(i, 0, count, callees));
  cost.bytes_read = OperandBytes(i);
  cost.bytes_written = i.shape().ByteSize();
  return cost;
}

namespace {

Result CostWith(const Instruction& i, const CalleeCosts& callees) {
  const OpRules& rules = RulesOf(i.opcode());
  if (rules.cost != nullptr) return rules.cost(i, callees);
  return NoRule(fmt::format("{}: no cost rule for {}", i.Describe(), OpcodeName(i.opcode())));
}

// Prices every computation that `roots` reach once: callees that are shared are not priced again
// for every caller, and deep calls need no deep stack.
absl::StatusOr<CalleeCosts> CostsOf(const std::vector<Computation*>& roots) {
  CalleeCosts costs;
  if (roots.empty()) return costs;
  std::vector<Computation*> order;
  TPUSIM_CHECK(CalleesFirst(roots, &order), "computations call each other at " + roots[0]->name());
  for (const Computation* computation : order) {
    Cost sum;
    for (const Instruction* i : computation->PostOrder()) {
      ASSIGN_OR_RETURN(const Cost cost, CostWith(*i, costs));
      Accumulate(cost, &sum);
    }
    costs[computation] = sum;
  }
  return costs;
}

}  // namespace
}  // namespace cost_rules

absl::StatusOr<Cost> CostOf(const Instruction& instruction) {
  ASSIGN_OR_RETURN(const cost_rules::CalleeCosts callees,
                   cost_rules::CostsOf(instruction.called()));
  return cost_rules::CostWith(instruction, callees);
}

absl::StatusOr<Cost> CostOf(const Computation& computation) {
  ASSIGN_OR_RETURN(const cost_rules::CalleeCosts costs,
                   cost_rules::CostsOf({const_cast<Computation*>(&computation)}));
  return costs.at(&computation);
}

}  // namespace tpusim::hlo
