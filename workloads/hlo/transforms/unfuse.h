// Expands fusions: the instructions of each fused computation stand in its place again.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_UNFUSE_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_UNFUSE_H_

#include <cstdint>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Fusions in fusions too, and those of several outputs, whose elements become the
// values themselves. Returns how many there were.
int64_t Unfuse(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_UNFUSE_H_
