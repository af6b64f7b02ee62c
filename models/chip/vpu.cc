#include "models/chip/vpu.h"

#include "models/events/sim_time.h"
#include "models/timing/reduce_timing.h"

namespace tpusim::chip {

Vpu::Vpu(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params)
    : sc_module(name),
      adds_(fluid.network().AddResource(std::string(this->name()) + ".adds",
                                        timing::VregOpsPerSecond(params))) {}

void Vpu::Occupy(Picoseconds start, Picoseconds duration) { slot_.Occupy(start, duration); }

}  // namespace tpusim::chip
