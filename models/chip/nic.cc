#include "models/chip/nic.h"

#include <string>

namespace tpusim::chip {

Nic::Nic(sc_core::sc_module_name name, Fluid& fluid, const configs::ChipParams& params)
    : sc_module(name),
      latency_(params.host.dcn_latency),
      egress_(fluid.network().AddResource(std::string(this->name()) + ".egress",
                                          params.host.dcn_bytes_per_second)) {}

}  // namespace tpusim::chip
