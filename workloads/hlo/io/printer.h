// A module as HLO text, which the text parser reads back (text_parser.h).
#ifndef TPUSIM_WORKLOADS_HLO_IO_PRINTER_H_
#define TPUSIM_WORKLOADS_HLO_IO_PRINTER_H_

#include <cstdint>
#include <string>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

struct PrintOptions {
  // Constants of many elements are written out; else as {...}, which people rather read
  // but from which the module cannot be read back as it is.
  bool large_constants = false;
  // The num_partitions that is written, which modules do not know; 0: it is left out.
  int64_t num_partitions = 0;
};

std::string ToString(const Module& module, const PrintOptions& options = {});
std::string ToString(const Computation& computation, const PrintOptions& options = {});
std::string ToString(const Instruction& instruction, const PrintOptions& options = {});

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_IO_PRINTER_H_
