// Which all-reduces and reduce-scatters do the same to other arrays.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_ALL_REDUCE_KIND_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_ALL_REDUCE_KIND_H_

#include <string>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

// Equal for all-reduces of one array with the same groups, reduction and element type; empty for
// all other instructions, and for all-reduces that control edges hold in place.
std::string AllReduceKind(const hlo::Instruction& instruction);

// The same of reduce-scatters, along whatever dimension.
std::string ReduceScatterKind(const hlo::Instruction& instruction);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_ALL_REDUCE_KIND_H_
