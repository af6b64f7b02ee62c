// Random arrays of a distribution as random bits and arithmetic.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_RNG_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_RNG_H_

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Replaces rng by rng-bit-generator over the device's state: uniform in [a, b) by the bits of a
// mantissa (integers: the remainder), normal by the transform of Box and Muller. Uniform arrays of
// 64-bit floats and of pred stay as they are: nothing lowers them. rng-get-and-update-state becomes a
// constant: the state's value is the device's own, and no time depends on it.
void ExpandRng(Module& module);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_EXPAND_RNG_H_
