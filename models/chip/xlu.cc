#include "models/chip/xlu.h"

#include <cmath>

#include "models/events/sim_time.h"

namespace tpusim::chip {

Xlu::Xlu(sc_core::sc_module_name name, const configs::ChipParams& params)
    : sc_module(name), params_(params) {}

Picoseconds Xlu::TimeOf(int64_t operations) const {
  const double cycles = static_cast<double>(operations) * params_.vpu.xlu_cycles_per_vreg /
                        static_cast<double>(params_.vpu.xlu_count);
  return ToTime(Cycles(static_cast<int64_t>(std::ceil(cycles))), params_.clock);
}

void Xlu::Occupy(Picoseconds start, Picoseconds duration) { slot_.Occupy(start, duration); }

}  // namespace tpusim::chip
