// The way from one device to the others of its chip: between the dies of a
// package, or between the cores of a die. A resource of the fluid; what leaves the
// device for its own chip shares it.
#ifndef TPUSIM_MODELS_CHIP_DIE_LINK_H_
#define TPUSIM_MODELS_CHIP_DIE_LINK_H_

#include <systemc>

#include "configs/chip.h"
#include "models/chip/interfaces.h"
#include "models/events/fluid.h"

namespace tpusim::chip {

class DieLink : public sc_core::sc_module, public ServerInterface {
 public:
  DieLink(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params);

  flow::ResourceId resource() const override { return resource_; }

 private:
  const flow::ResourceId resource_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_DIE_LINK_H_
