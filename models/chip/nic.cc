#include "models/chip/nic.h"

#include <string>

namespace tpusim::chip {

Nic::Nic(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params,
         int64_t chips, int64_t multiplicity)
    : sc_module(name),
      egress_(fluid.network().AddResource(std::string(this->name()) + ".egress",
                                          params.host.DcnRate(chips))),
      ingress_(fluid.network().AddResource(std::string(this->name()) + ".ingress",
                                           params.host.DcnRate(chips))),
      multiplicity_(multiplicity) {}

}  // namespace tpusim::chip
