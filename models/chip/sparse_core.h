// The SparseCores of a device, as far as they run collectives: a resource of the
// fluid, in additions of 32 bit per second. A reducing transfer of an off-loaded
// collective uses it instead of the VPU. What else they can do (embeddings) is not
// modelled.
#ifndef TPUSIM_MODELS_CHIP_SPARSE_CORE_H_
#define TPUSIM_MODELS_CHIP_SPARSE_CORE_H_

#include <systemc>

#include "configs/chip.h"
#include "models/chip/interfaces.h"
#include "models/events/fluid.h"

namespace tpusim::chip {

class SparseCore : public sc_core::sc_module, public ServerInterface {
 public:
  SparseCore(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params);

  // Capacity in additions per second (timing::AddsPerSecond).
  flow::ResourceId resource() const override { return adds_; }

 private:
  const flow::ResourceId adds_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_SPARSE_CORE_H_
