// A module as HLO text, which the text parser reads back (text_parser.h).
#ifndef TPUSIM_WORKLOADS_HLO_IO_PRINTER_H_
#define TPUSIM_WORKLOADS_HLO_IO_PRINTER_H_

#include <string>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

std::string ToString(const Module& module);
std::string ToString(const Computation& computation);
std::string ToString(const Instruction& instruction);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_PRINTER_H_
