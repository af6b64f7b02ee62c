#include "models/chip/host_link.h"

#include <array>
#include <string>

#include "models/events/sim_time.h"

namespace tpusim::chip {

HostLink::HostLink(sc_core::sc_module_name name, events::Fluid& fluid,
                   const configs::ChipParams& params, int64_t copies)
    : sc_module(name),
      fluid_(fluid),
      latency_(params.host.pcie_latency),
      rate_(params.host.pcie_bytes_per_second.value()),
      copies_(copies),
      to_host_(fluid.network().AddResource(std::string(this->name()) + ".to_host", rate_)),
      from_host_(fluid.network().AddResource(std::string(this->name()) + ".from_host", rate_)),
      delays_("delays", this) {}

void HostLink::Issue(const Hbm& hbm, int64_t copies, const isa::HostDma& dma, int32_t op,
                     events::Probe& probe, TransferListener* listener, uint64_t tag) {
  uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(pending_.size());
    pending_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  pending_[slot] = {&hbm, copies, dma, op, &probe, listener, tag, events::Now()};
  delays_.Push(events::Now() + latency_, slot);
}

void HostLink::DelayEnded(uint64_t slot) {
  const Pending& pending = pending_[slot];
  const double sharers = static_cast<double>(pending.copies) / static_cast<double>(copies_);
  const std::array<flow::Use, 2> uses = {
      {{pending.dma.to_host ? to_host_ : from_host_, sharers}, {pending.hbm->resource(), 1.0}}};
  fluid_.Start(static_cast<double>(pending.dma.bytes.value()), rate_, uses, this, slot);
}

void HostLink::FlowEnded(uint64_t slot) {
  const Pending done = pending_[slot];
  free_.push_back(static_cast<uint32_t>(slot));
  done.probe->HostTransferEnded(done.op, done.dma.to_host, done.began, done.dma.bytes);
  done.listener->TransferEnded(done.tag);
}

void HostLink::VisitFlow(uint64_t slot, steady::StateVisitor& visitor) {
  Pending& pending = pending_[slot];
  visitor.Same(pending.hbm);
  visitor.Same(pending.dma.to_host);
  visitor.Same(pending.dma.bytes);
  visitor.Same(pending.op);
  visitor.Same(pending.listener);
  visitor.Same(static_cast<int64_t>(pending.tag));
  visitor.Began(pending.began);
}

}  // namespace tpusim::chip
