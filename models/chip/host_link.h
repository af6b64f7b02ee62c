// The PCIe link of a chip to its host: one resource per direction, shared by the
// chip's devices. A transfer takes the link's latency and then flows through
// PCIe and the device's HBM at once. Host memory itself is not a bottleneck.
// Transfers to other slices cross it too, on their way to the network card
// (models/ici/router.h).
#ifndef TPUSIM_MODELS_CHIP_HOST_LINK_H_
#define TPUSIM_MODELS_CHIP_HOST_LINK_H_

#include <cstdint>
#include <systemc>
#include <vector>

#include "configs/chip.h"
#include "models/chip/dma.h"
#include "models/chip/hbm.h"
#include "models/events/delay_queue.h"
#include "models/events/fluid.h"
#include "models/events/probe.h"

namespace tpusim::chip {

class HostLink : public sc_core::sc_module,
                 public events::FlowListener,
                 public events::DelayListener,
                 public steady::Stateful {
 public:
  // Stands for `copies` equal ones.
  HostLink(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params,
           int64_t copies);

  // From or to a device that stands for `copies` equal ones.
  void Issue(const Hbm& hbm, int64_t copies, const isa::HostDma& dma, int32_t op,
             events::Probe& probe, TransferListener* listener, uint64_t tag);

  flow::ResourceId to_host() const { return to_host_; }
  flow::ResourceId from_host() const { return from_host_; }
  int64_t copies() const { return copies_; }

  void FlowEnded(uint64_t slot) override;
  void DelayEnded(uint64_t slot) override;
  // Transfers are shown where they wait: with their delay, then with their flow.
  void Visit(steady::StateVisitor&) override {}
  void VisitFlow(uint64_t slot, steady::StateVisitor& visitor) override;
  int64_t OrderOf(uint64_t slot) const override { return pending_[slot].op; }
  void VisitDelay(uint64_t slot, steady::StateVisitor& visitor) override {
    VisitFlow(slot, visitor);
  }

 private:
  struct Pending {
    const Hbm* hbm = nullptr;
    int64_t copies = 1;
    isa::HostDma dma;
    int32_t op = -1;
    events::Probe* probe = nullptr;
    TransferListener* listener = nullptr;
    uint64_t tag = 0;
    Picoseconds began;
  };

  events::Fluid& fluid_;
  const Picoseconds latency_;
  const double rate_;
  const int64_t copies_;
  const flow::ResourceId to_host_;
  const flow::ResourceId from_host_;
  std::vector<Pending> pending_;
  std::vector<uint32_t> free_;
  events::DelayQueue delays_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_HOST_LINK_H_
