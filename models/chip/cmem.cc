#include "models/chip/cmem.h"

#include "models/timing/memory_bytes.h"

namespace tpusim::chip {

Cmem::Cmem(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params)
    : sc_module(name), live_(timing::CmemCapacity(params)) {
  if (live_.capacity() > Bytes(0)) {
    resource_ = fluid.network().AddResource(this->name(), timing::CmemRate(params));
  }
}

}  // namespace tpusim::chip
