// The one table of what is known of an opcode's results: their shape, and what they cost.
//
// The room answers what follows from an opcode alone: the shape of a result, its arithmetic and
// bytes. `RulesOf` is its entry point. Two switches, one of shapes and one of costs, were replaced
// by a row per opcode. Nothing costs zero by default.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_OP_RULES_H_
#define TPUSIM_WORKLOADS_HLO_RULES_OP_RULES_H_

#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/cost_rules.h"
#include "workloads/hlo/rules/shape_rules.h"

namespace tpusim::hlo {

struct OpRules {
  shape_rules::Rule* shape = nullptr;
  bool arrays = false;               // every operand must be an array
  cost_rules::Rule* cost = nullptr;  // nullptr: there is no rule
  // Operands, attributes and callees leave more than the element type of the result open.
  bool states_shape = false;
};

const OpRules& RulesOf(Opcode opcode);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_OP_RULES_H_
