#include "models/chip/sparse_core.h"

#include <string>

#include "models/timing/reduce_timing.h"

namespace tpusim::chip {

SparseCore::SparseCore(sc_core::sc_module_name name, events::Fluid& fluid,
                       const configs::ChipParams& params)
    : sc_module(name),
      adds_(fluid.network().AddResource(std::string(this->name()) + ".adds",
                                        timing::AddsPerSecond(params))) {}

}  // namespace tpusim::chip
