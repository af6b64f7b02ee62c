// The value of a scalar that depends on nothing but which partition computes it.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_SCALAR_VALUE_H_
#define TPUSIM_WORKLOADS_HLO_RULES_SCALAR_VALUE_H_

#include <cstdint>
#include <optional>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Evaluates constants, partition-id and integer arithmetic, comparisons and
// look-ups in constant tables made of them. nullopt: it depends on data, or on an
// operation that is not of that kind.
std::optional<int64_t> ScalarValue(const Instruction& value, int64_t partition);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_SCALAR_VALUE_H_
