#include <algorithm>

#include "configs/memory.h"
#include "models/timing/kernel_timing.h"
#include "workloads/cost/cost_model.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/kernels/view/kernel_view.h"

namespace tpusim::cost {

ArrayCosts::ArrayCosts(const target::Target& target)
    : target_(target),
      bytes_per_cycle_(configs::HbmRate(target.chip()).value() / target.chip().clock.value()) {
  const configs::ChipParams& chip = target.chip();
  const configs::VpuParams& vpu = chip.vpu;
  const auto cores = static_cast<double>(chip.CoresPerDevice());
  register_ = 1 / (static_cast<double>(std::max<int64_t>(1, vpu.alus_per_lane)) * cores);
  cross_lane_ =
      vpu.xlu_cycles_per_vreg / (static_cast<double>(std::max<int64_t>(1, vpu.xlu_count)) * cores);
  kernel_ = ToSeconds(chip.tensor_core.kernel_launch + chip.dma.start_latency) * chip.clock.value();
}

double ArrayCosts::Memory(const hlo::Shape& array) const {
  return static_cast<double>(target_.PaddedSize(array).value()) / bytes_per_cycle_;
}

double ArrayCosts::Registers(const hlo::Shape& array) const {
  return static_cast<double>(kernels::VectorRegisters(target_, array)) * register_;
}

double ArrayCosts::CrossLanes(const hlo::Shape& array) const {
  return static_cast<double>(kernels::VectorRegisters(target_, array)) * cross_lane_;
}

double ArrayCosts::Reduced(const hlo::Shape& array, const std::vector<int64_t>& dims) const {
  return kernels::CrossLaneWorkOf(array, dims, target_).xlu * cross_lane_;
}

double ArrayCosts::Piece(const hlo::Shape& array, const std::vector<int64_t>& extents) const {
  double rows = 1;
  const std::vector<int64_t>& order = array.layout.minor_to_major;
  for (size_t place = 1; place < order.size(); ++place) {
    rows *= static_cast<double>(extents[static_cast<size_t>(order[place])]);
  }
  const int64_t row =
      CeilDiv(extents[static_cast<size_t>(order[0])] * hlo::BitWidth(array.element_type), 8);
  const auto granules = static_cast<double>(RoundUp(row, target_.chip().dma.granule.value()));
  return rows * granules / bytes_per_cycle_;
}

}  // namespace tpusim::cost
