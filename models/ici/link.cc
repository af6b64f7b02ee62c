#include "models/ici/link.h"

#include "configs/status_macros.h"

namespace tpusim::ici {

Link::Link(sc_core::sc_module_name name, chip::Fluid& fluid, const configs::Link& id,
           BytesPerSecond rate, int64_t copies)
    : sc_module(name),
      id_(id),
      resource_(fluid.network().AddResource(this->name(), rate)),
      copies_(copies) {}

Bytes Link::PerCopy(Bytes bytes) const {
  TPUSIM_CHECK(bytes.value() % copies_ == 0, "links that count as equal carried different bytes");
  return Bytes(bytes.value() / copies_);
}

}  // namespace tpusim::ici
