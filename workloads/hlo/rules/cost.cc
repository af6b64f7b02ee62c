#include "workloads/hlo/rules/cost.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "configs/status_macros.h"
#include "fmt/format.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/rules/cost_rules.h"

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

Result Free(const Instruction&, const CalleeCosts&) { return Cost{}; }
Result FullBytes(const Instruction& i, const CalleeCosts&) { return Full(i); }
Result MovesResult(const Instruction& i, const CalleeCosts&) { return Moves(i.shape().ByteSize()); }
Result MovesUpdate(const Instruction& i, const CalleeCosts&) {
  return Moves(i.operand(1)->shape().ByteSize());
}
Result MovesOperand(const Instruction& i, const CalleeCosts&) {
  return Moves(i.operand(0)->shape().ByteSize());
}

// nullptr: no rule.
Rule RuleOf(Opcode opcode) {
  if (IsElementwise(opcode)) return Elementwise;
  switch (opcode) {
    // Names of values that exist already, and what only orders or describes.
    case Opcode::kParameter:
    case Opcode::kConstant:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kBitcast:
    case Opcode::kAfterAll:
    case Opcode::kAddDependency:
    case Opcode::kOptBarrier:
    case Opcode::kDomain:
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
    // Sizes are static: what is asked is known, what is set is a name.
    case Opcode::kGetDimensionSize:
    case Opcode::kSetDimensionSize:
    // The start has the cost.
    case Opcode::kAllGatherDone:
    case Opcode::kAllReduceDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kCopyDone:
    case Opcode::kAsyncUpdate:
    case Opcode::kAsyncDone:
    case Opcode::kSendDone:
    case Opcode::kRecvDone:
      return Free;
    case Opcode::kDot:
      return Dot;
    case Opcode::kRaggedDot:
      return RaggedDot;
    case Opcode::kScaledDot:
      return ScaledDot;
    case Opcode::kConvolution:
      return Convolution;
    case Opcode::kFft:
      return Fft;
    case Opcode::kCholesky:
      return Cholesky;
    case Opcode::kTriangularSolve:
      return TriangularSolve;
    case Opcode::kRng:
      return Rng;
    case Opcode::kRngBitGenerator:
      return RngBitGenerator;
    case Opcode::kRngGetAndUpdateState:
      return RngState;
    case Opcode::kReduce:
      return Reduce;
    case Opcode::kReduceWindow:
      return ReduceWindow;
    case Opcode::kSelectAndScatter:
      return SelectAndScatter;
    case Opcode::kMap:
      return Map;
    case Opcode::kGather:
      return Gather;
    case Opcode::kScatter:
      return Scatter;
    case Opcode::kSort:
      return Sort;
    case Opcode::kTopk:
      return TopK;
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
      return MovesResult;
    case Opcode::kDynamicUpdateSlice:
      return MovesUpdate;
    case Opcode::kCopyStart:
      return MovesOperand;
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kCopy:
    case Opcode::kConcatenate:
    case Opcode::kPad:
    case Opcode::kReverse:
    case Opcode::kIota:
    case Opcode::kBitcastConvert:
    case Opcode::kAllGather:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
      return FullBytes;
    case Opcode::kCollectivePermute:
      return InPlacePermute;
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
      return AllReduce;
    case Opcode::kReduceScatter:
      return ReduceScatter;
    case Opcode::kRaggedAllToAll:
      return RaggedAllToAll;
    case Opcode::kAllGatherStart:
    case Opcode::kCollectivePermuteStart:
      return CollectiveStart;
    case Opcode::kSend:
      return Send;
    case Opcode::kRecv:
      return Recv;
    case Opcode::kInfeed:
      return Infeed;
    case Opcode::kOutfeed:
      return Outfeed;
    case Opcode::kWhile:
    case Opcode::kCall:
    case Opcode::kAsyncStart:
      return SumOfCalled;
    case Opcode::kConditional:
      return Conditional;
    case Opcode::kFusion:
      return Fusion;
    case Opcode::kCustomCall:
      return CustomCall;
    default:
      return nullptr;
  }
}

Result CostWith(const Instruction& i, const CalleeCosts& callees) {
  const Rule rule = RuleOf(i.opcode());
  if (rule != nullptr) return rule(i, callees);
  return NoRule(fmt::format("{}: no cost rule for {}", i.Describe(), OpcodeName(i.opcode())));
}

// Of everything that `roots` reach, each once: callees that are shared are not
// priced again for every caller, and deep calls need no deep stack.
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
