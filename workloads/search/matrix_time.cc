#include "workloads/search/matrix_time.h"

#include <algorithm>

#include "models/timing/kernel_timing.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/kernels/view/product.h"

namespace tpusim::search {

double MatrixSeconds(const hlo::Instruction& product, const target::Target& target) {
  const absl::StatusOr<hlo::Cost> cost = hlo::CostOf(product);
  const absl::StatusOr<kernels::Product> on_arrays = kernels::ProductOf(product, target);
  if (!cost.ok() || !on_arrays.ok()) return 0;
  const configs::MxuParams& mxu = target.chip().mxu;
  const isa::NumberFormat format = on_arrays->format;
  const double made = 2.0 * static_cast<double>(on_arrays->batch * on_arrays->m) *
                      static_cast<double>(on_arrays->k * on_arrays->n);
  return std::min(static_cast<double>(cost->flops.value()), made) *
         timing::FormatPasses(mxu, format) /
         (target.chip().MxuPeak().value() * timing::SustainedShare(mxu, format));
}

}  // namespace tpusim::search
