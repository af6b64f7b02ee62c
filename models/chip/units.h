// The units of a device that work is given to: what occupies one is known when it begins, or is a
// flow of the fluid. How long work takes is models/timing; a unit only keeps who has it when.
//
//   Slot     an execution slot of the TensorCore, an in-order server that is busy for known
//            intervals. The matrix unit (MXU): all its systolic arrays work on one product
//            together, the columns of a tile are dealt out to them, so one interval per block says
//            it all. The cross-lane units (XLU): transposes, rotations, reductions over lanes; a
//            block claims them beside the vector unit.
//   Server   a resource of the fluid that transfers share. The way from one device to the others of
//            its chip, between the dies of a package or the cores of a die: what leaves the device
//            for its own chip. The SparseCores, as far as they run collectives: in additions of 32
//            bit per second, for reducing transfers of off-loaded collectives. What else
//            SparseCores can do (embeddings) is not modelled.
//   Vpu      the vector unit, which is both (below)
#ifndef TPUSIM_MODELS_CHIP_UNITS_H_
#define TPUSIM_MODELS_CHIP_UNITS_H_

#include <string>
#include <string_view>
#include <systemc>

#include "configs/chip.h"
#include "configs/status_macros.h"
#include "configs/units.h"
#include "models/chip/interfaces.h"
#include "models/events/fluid.h"
#include "models/steady/state.h"
#include "models/timing/reduce_timing.h"

namespace tpusim::chip {

class Slot : public sc_core::sc_module, public SlotInterface, public steady::Stateful {
 public:
  explicit Slot(sc_core::sc_module_name name) : sc_module(name) {}

  // Busy from `start` for `duration`. A block claims its slots when it starts; a slot that is still
  // busy from the block before would mean that two blocks overlap, which the sequencer forbids.
  void Occupy(Picoseconds start, Picoseconds duration) override {
    TPUSIM_CHECK(start >= free_at_, "two blocks in one execution slot");
    free_at_ = start + duration;
    busy_ += duration;
  }
  void Visit(steady::StateVisitor& visitor) override {
    visitor.Pending(free_at_);
    visitor.Counter(busy_);
  }
  Picoseconds busy() const { return busy_; }

 private:
  Picoseconds free_at_{0};
  Picoseconds busy_{0};
};

class Server : public sc_core::sc_module, public ServerInterface {
 public:
  // Builds a server with a rate in bytes or additions per second; `of` is appended to the
  // resource's name.
  Server(sc_core::sc_module_name name, events::Fluid& fluid, double rate, std::string_view of = "")
      : sc_module(name),
        resource_(fluid.network().AddResource(std::string(this->name()).append(of), rate)) {}

  flow::ResourceId resource() const override { return resource_; }

 private:
  const flow::ResourceId resource_;
};

// Seen twice. For the blocks of kernels it is a slot, busy for the fullest of its vector slots. For
// the additions of a reducing transfer it is a server, in whole-register operations per second: a
// transfer that adds what arrives needs a few per mille of it, and many such transfers may arrive
// at once. The two do not slow each other; a kernel that fills the VALU slots while large
// reductions arrive is modelled too fast by their share.
class Vpu : public Slot {
 public:
  Vpu(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params)
      : Slot(name), adds_("adds", fluid, timing::VregOpsPerSecond(params)) {}

  Server& adds() { return adds_; }

 private:
  Server adds_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_UNITS_H_
