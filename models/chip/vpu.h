// The vector unit of a device.
//
// Seen twice. For the blocks of kernels it is an in-order server, like the
// matrix unit: busy for the fullest of its slots. For the additions of a
// reducing transfer it is a resource of the fluid, in whole-register operations
// per second: a transfer that adds what arrives needs a few per mille of it, and
// many such transfers may arrive at once. The two do not slow each other; a
// kernel that fills the VALU slots while large reductions arrive is modelled too
// fast by their share.
#ifndef TPUSIM_MODELS_CHIP_VPU_H_
#define TPUSIM_MODELS_CHIP_VPU_H_

#include <systemc>

#include "configs/chip.h"
#include "configs/units.h"
#include "models/chip/interfaces.h"
#include "models/events/fluid.h"
#include "models/events/slot.h"

namespace tpusim::chip {

class Vpu : public sc_core::sc_module,
            public SlotInterface,
            public ServerInterface,
            public steady::Stateful {
 public:
  Vpu(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params);

  void Occupy(Picoseconds start, Picoseconds duration) override;
  void Visit(steady::StateVisitor& visitor) override { slot_.Visit(visitor); }
  Picoseconds busy() const { return slot_.busy(); }
  // Additions of transfers, in register operations per second (timing::VregOpsPerSecond).
  flow::ResourceId resource() const override { return adds_; }

 private:
  events::Slot slot_;
  flow::ResourceId adds_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_VPU_H_
