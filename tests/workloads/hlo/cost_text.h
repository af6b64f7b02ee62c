// The cost of an instruction, as files of cases write it.
#ifndef TPUSIM_TESTS_WORKLOADS_HLO_COST_TEXT_H_
#define TPUSIM_TESTS_WORKLOADS_HLO_COST_TEXT_H_

#include <fmt/format.h>

#include <string>

#include "configs/status_macros.h"
#include "workloads/hlo/rules/cost.h"

namespace tpusim::hlo {

// "128 flops, 0 transcendentals, 512 read, 512 written", or the error.
inline std::string CostText(const Instruction& instruction) {
  const auto cost = CostOf(instruction);
  if (!cost.ok()) return Message(cost.status());
  return fmt::format("{} flops, {} transcendentals, {} read, {} written", cost->flops.value(),
                     cost->transcendentals.value(), cost->bytes_read.value(),
                     cost->bytes_written.value());
}

}  // namespace tpusim::hlo

#endif  // TPUSIM_TESTS_WORKLOADS_HLO_COST_TEXT_H_
