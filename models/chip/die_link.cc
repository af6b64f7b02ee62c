#include "models/chip/die_link.h"

namespace tpusim::chip {

DieLink::DieLink(sc_core::sc_module_name name, events::Fluid& fluid,
                 const configs::ChipParams& params)
    : sc_module(name),
      resource_(fluid.network().AddResource(this->name(), params.ici.die_to_die_bytes_per_second)) {
}

}  // namespace tpusim::chip
