// A chip's share of its host's network card: what it may send to other slices
// over the data-centre network. A resource that routes between slices will cross;
// inside one slice nothing uses it.
#ifndef TPUSIM_MODELS_CHIP_NIC_H_
#define TPUSIM_MODELS_CHIP_NIC_H_

#include <systemc>

#include "configs/chip.h"
#include "models/chip/fluid.h"

namespace tpusim::chip {

class Nic : public sc_core::sc_module {
 public:
  Nic(sc_core::sc_module_name name, Fluid& fluid, const configs::ChipParams& params);

  flow::ResourceId egress() const { return egress_; }
  Picoseconds latency() const { return latency_; }

 private:
  const Picoseconds latency_;
  const flow::ResourceId egress_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_NIC_H_
