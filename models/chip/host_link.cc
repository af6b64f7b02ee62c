#include "models/chip/host_link.h"

#include <array>
#include <string>

#include "models/events/sim_time.h"

namespace tpusim::chip {

HostLink::HostLink(sc_core::sc_module_name name, events::Fluid& fluid,
                   const configs::ChipParams& params, int64_t multiplicity)
    : sc_module(name),
      fluid_(fluid),
      latency_(params.host.pcie_latency),
      rate_(params.host.pcie_bytes_per_second.value()),
      multiplicity_(multiplicity),
      to_host_(fluid.network().AddResource(std::string(this->name()) + ".to_host", rate_)),
      from_host_(fluid.network().AddResource(std::string(this->name()) + ".from_host", rate_)),
      delays_("delays", this) {}

void HostLink::Issue(const HostTransfer& transfer) {
  uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(pending_.size());
    pending_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  pending_[slot] = {transfer, events::Now()};
  delays_.Push(events::Now() + latency_, slot);
}

void HostLink::DelayEnded(uint64_t slot) {
  const HostTransfer& transfer = pending_[slot].transfer;
  const double sharers =
      static_cast<double>(transfer.multiplicity) / static_cast<double>(multiplicity_);
  const std::array<flow::ResourceUse, 2> uses = {
      {{transfer.dma.to_host ? to_host_ : from_host_, sharers}, {transfer.hbm, 1.0}}};
  fluid_.Start(static_cast<double>(transfer.dma.bytes.value()), rate_, uses, this, slot);
}

void HostLink::FlowEnded(uint64_t slot) {
  const PendingHostTransfer done = pending_[slot];
  const HostTransfer& transfer = done.transfer;
  free_.push_back(static_cast<uint32_t>(slot));
  transfer.probe->HostTransferEnded(transfer.op, transfer.dma.to_host, done.began,
                                    transfer.dma.bytes);
  transfer.listener->TransferEnded(/*tag=*/0);
}

void HostLink::VisitFlow(uint64_t slot, steady::StateVisitor& visitor) {
  PendingHostTransfer& pending = pending_[slot];
  visitor.Same(pending.transfer.hbm.value);
  visitor.Same(pending.transfer.dma.to_host);
  visitor.Same(pending.transfer.dma.bytes);
  visitor.Named(isa::NameKind::kOp, pending.transfer.op);
  visitor.Same(pending.transfer.listener);
  visitor.Began(pending.began);
}

}  // namespace tpusim::chip
