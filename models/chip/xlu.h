// The cross-lane units of a device: transposes, rotations, reductions over
// lanes. An in-order server beside the vector unit; a block claims both.
#ifndef TPUSIM_MODELS_CHIP_XLU_H_
#define TPUSIM_MODELS_CHIP_XLU_H_

#include <systemc>

#include "configs/units.h"
#include "models/chip/interfaces.h"
#include "models/events/slot.h"

namespace tpusim::chip {

class Xlu : public sc_core::sc_module, public SlotInterface, public steady::Stateful {
 public:
  explicit Xlu(sc_core::sc_module_name name);

  void Occupy(Picoseconds start, Picoseconds duration) override;
  void Visit(steady::StateVisitor& visitor) override { slot_.Visit(visitor); }
  Picoseconds busy() const { return slot_.busy(); }

 private:
  events::Slot slot_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_XLU_H_
