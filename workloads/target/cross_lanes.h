// The work across lanes and sublanes that a reduction leaves.
//
// Registers that line up with each other are combined first. Where the lane dimension goes, the
// remaining registers of partial results are transposed, so that their lanes become registers, and
// these are combined: up to lanes / sublanes of them (a square of lanes by lanes) enter the
// cross-lane unit together, and leave it in `sublanes` pops. Where the sublane dimension goes,
// there are three steps that rotate and combine.
#ifndef TPUSIM_WORKLOADS_TARGET_CROSS_LANES_H_
#define TPUSIM_WORKLOADS_TARGET_CROSS_LANES_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "configs/chip.h"
#include "configs/instructions.h"

namespace tpusim::target {

// An array that is reduced: does its lane or its sublane dimension go, how many rows (elements over
// all dimensions but that of the lanes) and how many elements are left.
struct ReducedArray {
  bool lanes = false, sublanes = false;
  int64_t kept_rows = 1, kept = 1;
};

struct CrossLaneWork {
  double xlu = 0;           // operations of the cross-lane unit
  double combinations = 0;  // calls of the reducer, on a register each
};

inline CrossLaneWork CrossLaneWorkOf(const ReducedArray& array, const configs::VpuParams& vpu,
                                     const configs::Instructions& instructions) {
  const double sublanes = static_cast<double>(vpu.sublanes);
  CrossLaneWork crossing;
  if (array.lanes) {
    const double partial = std::ceil(static_cast<double>(array.kept_rows) / sublanes);
    const double together = static_cast<double>(vpu.lanes) / sublanes;
    const double popped = std::ceil(partial / together) * sublanes;
    crossing.xlu = (partial + popped) * instructions.At("transpose-lanes").xlu;
    crossing.combinations = std::max(partial, popped);
  } else if (array.sublanes) {
    const int steps = std::bit_width(static_cast<uint64_t>(vpu.sublanes - 1));
    const double partial =
        std::ceil(static_cast<double>(array.kept) / static_cast<double>(vpu.lanes));
    crossing.combinations = steps * partial;
    crossing.xlu = crossing.combinations * instructions.At("rotate").xlu;
  }
  return crossing;
}

}  // namespace tpusim::target

#endif  // TPUSIM_WORKLOADS_TARGET_CROSS_LANES_H_
