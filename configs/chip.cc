#include "configs/chip.h"

#include <algorithm>

namespace tpusim::configs {

FlopsPerSecond ChipParams::MxuPeak() const {
  // A multiply and an add per cell, per LHS row that enters.
  const double flops_per_cycle = 2.0 * static_cast<double>(mxu.rows * mxu.columns * mxu.count) *
                                 mxu.lhs_rows_per_cycle * static_cast<double>(CoresPerDevice());
  return FlopsPerSecond(flops_per_cycle * clock.value());
}

FlopsPerSecond ChipParams::FastestPeak() const {
  return MxuPeak() * std::max(1.0, fastest_clock.value() / clock.value());
}

}  // namespace tpusim::configs
