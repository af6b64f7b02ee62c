// A window that sees all of a dimension wherever it stands.
//
// The TPU compiler writes so what reduces rows and spreads each result over its row again, as a
// softmax does with the largest element and the sum: a reduce-window of 2 n - 1 elements over a
// dimension of n, padded by n - 1 on both sides. Every position combines the same elements, so they
// are combined once.
#ifndef TPUSIM_WORKLOADS_HLO_RULES_WHOLE_WINDOW_H_
#define TPUSIM_WORKLOADS_HLO_RULES_WHOLE_WINDOW_H_

#include <cstdint>

#include "workloads/hlo/ir/attributes.h"

namespace tpusim::hlo {

inline bool SeesWhole(int64_t bound, const WindowDim& dim) {
  if (dim.stride != 1 || dim.window_dilation != 1 || dim.base_dilation != 1) return false;
  return bound > 1 && dim.padding_low >= bound - 1 && dim.padding_high >= bound - 1 &&
         dim.size == dim.padding_low + dim.padding_high + 1;
}

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_RULES_WHOLE_WINDOW_H_
