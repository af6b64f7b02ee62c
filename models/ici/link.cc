#include "models/ici/link.h"

namespace tpusim::ici {

Link::Link(sc_core::sc_module_name name, events::Fluid& fluid, const configs::Link& id,
           BytesPerSecond rate)
    : sc_module(name), id_(id), resource_(fluid.network().AddResource(this->name(), rate)) {
  fluid.network().CountSharing(resource_);
}

}  // namespace tpusim::ici
