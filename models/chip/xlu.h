// The cross-lane units of a device: transposes, rotations, reductions over
// lanes. An in-order server beside the vector unit; a block claims both.
#ifndef TPUSIM_MODELS_CHIP_XLU_H_
#define TPUSIM_MODELS_CHIP_XLU_H_

#include <systemc>

#include "configs/chip.h"
#include "configs/units.h"
#include "models/events/slot.h"

namespace tpusim::chip {

class Xlu : public sc_core::sc_module, public steady::Stateful {
 public:
  Xlu(sc_core::sc_module_name name, const configs::ChipParams& params);

  // How long `operations` whole-register operations keep the units busy: they
  // are dealt out evenly.
  Picoseconds TimeOf(int64_t operations) const;
  void Occupy(Picoseconds start, Picoseconds duration);
  void Visit(steady::StateVisitor& visitor) override { slot_.Visit(visitor); }
  Picoseconds busy() const { return slot_.busy(); }

 private:
  const configs::ChipParams& params_;
  events::Slot slot_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_XLU_H_
