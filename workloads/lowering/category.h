// How profiles sort operations.
#ifndef TPUSIM_WORKLOADS_LOWERING_CATEGORY_H_
#define TPUSIM_WORKLOADS_LOWERING_CATEGORY_H_

#include <string>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

// XProf's hlo_category.
std::string CategoryOf(const hlo::Instruction& instruction);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_CATEGORY_H_
