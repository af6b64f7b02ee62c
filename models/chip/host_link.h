// The PCIe link of a chip to its host: one resource per direction, shared by the chip's devices. A
// transfer takes the link's latency and then flows through PCIe and the device's HBM at once. Host
// memory itself is not a bottleneck. Transfers to other slices cross it too, on their way to the
// network card (models/ici/router.h).
#ifndef TPUSIM_MODELS_CHIP_HOST_LINK_H_
#define TPUSIM_MODELS_CHIP_HOST_LINK_H_

#include <cstdint>
#include <systemc>
#include <vector>

#include "configs/chip.h"
#include "models/chip/interfaces.h"
#include "models/events/delay_queue.h"
#include "models/events/fluid.h"

namespace tpusim::chip {

class HostLink : public sc_core::sc_module,
                 public HostInterface,
                 public DuplexInterface,
                 public events::FlowListener,
                 public events::DelayListener,
                 public steady::Stateful {
 public:
  // Represents `multiplicity` equal ones.
  HostLink(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params,
           int64_t multiplicity);

  void Issue(const HostTransfer& transfer) override;

  flow::ResourceId outward() const override { return to_host_; }
  flow::ResourceId inward() const override { return from_host_; }
  int64_t multiplicity() const override { return multiplicity_; }

  void FlowEnded(uint64_t slot) override;
  void DelayEnded(uint64_t slot) override;
  // Transfers are shown where they wait: with their delay, then with their flow.
  void Visit(steady::StateVisitor&) override {}
  void VisitFlow(uint64_t slot, steady::StateVisitor& visitor) override;
  int64_t OrderOfFlow(uint64_t slot) const override { return OrderOf(slot); }
  int64_t OrderOf(uint64_t slot) const override { return pending_[slot].transfer.op; }
  void VisitDelay(uint64_t slot, steady::StateVisitor& visitor) override {
    VisitFlow(slot, visitor);
  }

 private:
  struct PendingHostTransfer {
    HostTransfer transfer;
    Picoseconds began;
  };

  events::Fluid& fluid_;
  const Picoseconds latency_;
  const double rate_;
  const int64_t multiplicity_;
  const flow::ResourceId to_host_;
  const flow::ResourceId from_host_;
  std::vector<PendingHostTransfer> pending_;
  std::vector<uint32_t> free_;
  events::DelayQueue delays_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_HOST_LINK_H_
