// Constants in HLO text.
#ifndef TPUSIM_WORKLOADS_HLO_IO_LITERAL_TEXT_H_
#define TPUSIM_WORKLOADS_HLO_IO_LITERAL_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The value of a constant as text: all elements in row-major order, or {...} where there
// are many of them and `large` is not set, or where the value is not known or of a type
// without text (4-bit numbers).
std::string LiteralText(const Instruction& constant, bool large);

// Text that leaves values out can be compiled and simulated, but not computed with. Error:
// names the first constant of the module without one.
absl::Status CheckConstantsHaveValues(const Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_LITERAL_TEXT_H_
