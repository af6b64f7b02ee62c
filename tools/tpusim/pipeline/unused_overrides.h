// Finds --set parameters that a program does not use.
//
// A parameter that nothing reads is a question answered wrongly: "twice the
// PCIe rate changes nothing" is true of every program without host transfers.
#ifndef TPUSIM_TOOLS_TPUSIM_PIPELINE_UNUSED_OVERRIDES_H_
#define TPUSIM_TOOLS_TPUSIM_PIPELINE_UNUSED_OVERRIDES_H_

#include <string>
#include <vector>

#include "configs/config.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::tools {

// One sentence per override without effect on this program on this slice.
std::vector<std::string> UnusedOverrides(const configs::Config& config,
                                         const isa::PodProgram& program, const hlo::Module& module);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_PIPELINE_UNUSED_OVERRIDES_H_
