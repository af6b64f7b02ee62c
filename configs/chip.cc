#include "configs/chip.h"

namespace tpusim::configs {

FlopsPerSecond ChipParams::MxuPeak() const {
  // A multiply and an add per cell, per LHS row that enters.
  const double flops_per_cycle = 2.0 * static_cast<double>(mxu.rows * mxu.columns * mxu.count) *
                                 mxu.lhs_rows_per_cycle * static_cast<double>(CoresPerDevice());
  return FlopsPerSecond(flops_per_cycle * clock.value());
}

}  // namespace tpusim::configs
