// Cost rules, one per opcode: what op_rules.cc lists. Private to this folder.
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
using Rule = Result(const Instruction&, const CalleeCosts&);

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
// Prices `count` applications, with the bytes of Full().
Result FullApplied(const Instruction& i, int64_t count, const CalleeCosts& callees);

// ---- cost_elementwise.cc ---------------------------------------------------
Rule Elementwise;

// ---- cost_algebra.cc -------------------------------------------------------
Rule Dot, RaggedDot, ScaledDot, Convolution, Fft, Cholesky, TriangularSolve, Rng, RngBitGenerator,
    RngState;

// ---- cost_reductions.cc ----------------------------------------------------
Rule Reduce, ReduceWindow, SelectAndScatter, Map, Gather, Scatter, Sort, TopK;

// ---- cost_transfers.cc -----------------------------------------------------
Rule AllReduce, ReduceScatter, CollectiveStart, RaggedAllToAll, InPlacePermute, Send, Recv, Infeed,
    Outfeed;

// ---- cost_calls.cc ---------------------------------------------------------
Rule SumOfCalled, Conditional, Fusion;

// ---- cost_custom_call.cc ---------------------------------------------------
Rule CustomCall;

}  // namespace tpusim::hlo::cost_rules

#endif  // TPUSIM_WORKLOADS_HLO_RULES_COST_RULES_H_
