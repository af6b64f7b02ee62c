// The matrix unit of a device: all its systolic arrays as one in-order server.
//
// The arrays work on one product together (the columns of a tile are dealt out
// to them), so one busy interval per block says it all. How long a product takes
// is timing::TimeBlock; here it is only kept which array is busy when.
#ifndef TPUSIM_MODELS_CHIP_MXU_H_
#define TPUSIM_MODELS_CHIP_MXU_H_

#include <systemc>

#include "configs/units.h"
#include "models/chip/interfaces.h"
#include "models/events/slot.h"

namespace tpusim::chip {

class Mxu : public sc_core::sc_module, public SlotInterface, public steady::Stateful {
 public:
  explicit Mxu(sc_core::sc_module_name name);

  void Occupy(Picoseconds start, Picoseconds duration) override;
  void Visit(steady::StateVisitor& visitor) override { slot_.Visit(visitor); }
  Picoseconds busy() const { return slot_.busy(); }

 private:
  events::Slot slot_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_MXU_H_
