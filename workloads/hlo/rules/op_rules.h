// The one table of what is known of an opcode's results: their shape, and what they cost.
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
};

const OpRules& RulesOf(Opcode opcode);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_OP_RULES_H_
