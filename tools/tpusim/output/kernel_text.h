// Text of what bounds the kernels of a program, as `tpusim kernel` prints it.
#ifndef TPUSIM_TOOLS_TPUSIM_OUTPUT_KERNEL_TEXT_H_
#define TPUSIM_TOOLS_TPUSIM_OUTPUT_KERNEL_TEXT_H_

#include <string>

#include "configs/chip.h"
#include "models/isa/program.h"

namespace tpusim::tools {

// Prints all kernels, each operation once, in program order.
std::string KernelsText(const isa::PodProgram& program, const configs::ChipParams& chip);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_OUTPUT_KERNEL_TEXT_H_
