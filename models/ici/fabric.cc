#include "models/ici/fabric.h"

namespace tpusim::ici {

Endpoint::Endpoint(sc_core::sc_module_name name, int64_t multiplicity)
    : sc_module(name), multiplicity_(multiplicity) {}

void Endpoint::end_of_elaboration() {
  hbm_resource_ = *hbm->resource();
  vpu_resource_ = vpu->resource();
}

Fabric::Fabric(sc_core::sc_module_name name) : sc_module(name) {}

}  // namespace tpusim::ici
