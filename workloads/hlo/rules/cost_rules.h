// Cost rules, one per opcode: what cost.cc looks up. Private to this folder.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_COST_RULES_H_
#define TPUSIM_WORKLOADS_HLO_RULES_COST_RULES_H_

#include <cstdint>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/hlo/rules/cost.h"

namespace tpusim::hlo::cost_rules {

using Result = absl::StatusOr<Cost>;
// Costs of every computation that an instruction reaches, found bottom up: a
// rule never goes into a callee itself.
using CalleeCosts = std::unordered_map<const Computation*, Cost>;
using Rule = Result (*)(const Instruction&, const CalleeCosts&);

// Saturating: a damaged file must not become undefined behaviour. Nothing real
// comes near.
int64_t Mul(int64_t a, int64_t b);
int64_t Add(int64_t a, int64_t b);
Bytes Add(Bytes a, Bytes b);
// Figure by figure.
void Accumulate(const Cost& part, Cost* sum);

Bytes OperandBytes(const Instruction& i);
// Reads its operands and writes its result, both whole.
Cost Full(const Instruction& i, int64_t flops = 0, int64_t transcendentals = 0);
// Reads and writes `moved`; the rest of the operands is not touched.
Cost Moves(Bytes moved);
// An array's elements; of the first element for tuples (reduce of several inputs).
int64_t Elements(const Shape& shape);
// `count` calls of a scalar computation: a reducer, a comparator.
Result Applied(const Instruction& i, size_t callee, int64_t count, const CalleeCosts& callees);
// The same with the bytes of Full().
Result FullApplied(const Instruction& i, int64_t count, const CalleeCosts& callees);

// ---- cost_elementwise.cc ---------------------------------------------------
Result Elementwise(const Instruction& i, const CalleeCosts&);

// ---- cost_algebra.cc -------------------------------------------------------
Result Dot(const Instruction& i, const CalleeCosts&);
Result RaggedDot(const Instruction& i, const CalleeCosts&);
Result ScaledDot(const Instruction& i, const CalleeCosts&);
Result Convolution(const Instruction& i, const CalleeCosts&);
Result Fft(const Instruction& i, const CalleeCosts&);
Result Cholesky(const Instruction& i, const CalleeCosts&);
Result TriangularSolve(const Instruction& i, const CalleeCosts&);
Result Rng(const Instruction& i, const CalleeCosts&);
Result RngBitGenerator(const Instruction& i, const CalleeCosts&);
Result RngState(const Instruction& i, const CalleeCosts&);

// ---- cost_reductions.cc ----------------------------------------------------
Result Reduce(const Instruction& i, const CalleeCosts& callees);
Result ReduceWindow(const Instruction& i, const CalleeCosts& callees);
Result SelectAndScatter(const Instruction& i, const CalleeCosts& callees);
Result Map(const Instruction& i, const CalleeCosts& callees);
Result Gather(const Instruction& i, const CalleeCosts&);
Result Scatter(const Instruction& i, const CalleeCosts& callees);
Result Sort(const Instruction& i, const CalleeCosts& callees);
Result TopK(const Instruction& i, const CalleeCosts&);

// ---- cost_transfers.cc -----------------------------------------------------
Result AllReduce(const Instruction& i, const CalleeCosts& callees);
Result ReduceScatter(const Instruction& i, const CalleeCosts& callees);
Result CollectiveStart(const Instruction& i, const CalleeCosts&);
Result RaggedAllToAll(const Instruction& i, const CalleeCosts&);
Result InPlacePermute(const Instruction& i, const CalleeCosts&);
Result Send(const Instruction& i, const CalleeCosts&);
Result Recv(const Instruction& i, const CalleeCosts&);
Result Infeed(const Instruction& i, const CalleeCosts&);
Result Outfeed(const Instruction& i, const CalleeCosts&);

// ---- cost_calls.cc ---------------------------------------------------------
Result SumOfCalled(const Instruction& i, const CalleeCosts& callees);
Result Conditional(const Instruction& i, const CalleeCosts& callees);
Result Fusion(const Instruction& i, const CalleeCosts& callees);

// ---- cost_custom_call.cc ---------------------------------------------------
Result CustomCall(const Instruction& i, const CalleeCosts&);

}  // namespace tpusim::hlo::cost_rules

#endif  // TPUSIM_WORKLOADS_HLO_RULES_COST_RULES_H_
