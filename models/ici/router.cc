#include "models/ici/router.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "configs/status_macros.h"
#include "models/events/sim_time.h"
#include "models/timing/collective_timing.h"
#include "models/timing/reduce_timing.h"

namespace tpusim::ici {
namespace {

// "x+" has no place in a SystemC name.
std::string LinkName(configs::Direction direction) {
  const std::string_view name = configs::DirectionName(direction);
  return std::string("link_") + name[0] + (configs::IsPlus(direction) ? "_plus" : "_minus");
}

}  // namespace

Router::Router(sc_core::sc_module_name name, events::Fluid& fluid,
               const configs::ChipParams& params, int64_t chip, const LinkRates& links,
               const isa::PodProgram& program, FabricProbe& probe, events::Causes* causes)
    : sc_module(name),
      fluid_(fluid),
      params_(params),
      program_(program),
      probe_(probe),
      causes_(causes),
      arrivals_("arrivals", this) {
  for (int d = 0; d < configs::kDirections; ++d) {
    if (!links[d]) continue;
    const auto direction = static_cast<configs::Direction>(d);
    links_[d] = std::make_unique<Link>(LinkName(direction).c_str(), fluid,
                                       configs::Link{chip, direction}, *links[d]);
  }
}

Picoseconds Router::Latency(const Path& path, int32_t route) const {
  return timing::RouteLatency(params_, path.timed_by, program_.routes[route].from[path.timed_by]);
}

uint32_t Router::NewSlot() {
  if (free_.empty()) {
    pending_.emplace_back();
    return static_cast<uint32_t>(pending_.size() - 1);
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void Router::Spend(PendingSend& pending, Picoseconds end, events::Spent spent) {
  if (causes_ == nullptr) return;
  causes_->Spend(pending.cause, end, pending.record.op, spent);
  causes_->SetCurrent(pending.cause);
}

int64_t Router::TransfersTo(const Path::Receiver& receiver) {
  const int64_t receivers = fabric->EndpointOf(receiver.device).multiplicity();
  return std::llround(receiver.share * static_cast<double>(receivers));
}

void Router::UseDcn(const RdmaRecord& record, const Path& path) {
  Endpoint& source = fabric->EndpointOf(record.source);
  TPUSIM_CHECK(source.nic.size() > 0, "a single slice has no data-centre network");
  source.nic->Sent(record.rdma->bytes, source.multiplicity());
  const auto use = [&](flow::ResourceId resource, int64_t transfers, int64_t multiplicity) {
    uses_.push_back(
        {resource, static_cast<double>(transfers) / static_cast<double>(multiplicity)});
  };
  use(source.host_link->outward(), source.multiplicity(), source.host_link->multiplicity());
  use(source.nic->outward(), source.multiplicity(), source.nic->multiplicity());
  for (const Path::Receiver& receiver : path.receivers) {
    Endpoint& to = fabric->EndpointOf(receiver.device);
    const int64_t transfers = TransfersTo(receiver);
    use(to.nic->inward(), transfers, to.nic->multiplicity());
    use(to.host_link->inward(), transfers, to.host_link->multiplicity());
  }
}

void Router::UseReceiver(const isa::Rdma& rdma, const Path::Receiver& receiver) {
  Endpoint& to = fabric->EndpointOf(receiver.device);
  if (rdma.to == isa::MemorySpace::kHbm) {
    uses_.push_back(
        {to.hbm_resource(), receiver.share * (rdma.reduce ? timing::kReduceHbmWeight : 1)});
  }
  if (!rdma.reduce) return;
  if (rdma.reduce->sparse_core) {
    TPUSIM_CHECK(to.sparse_core.size() > 0, "there is no SparseCore to add on");
    uses_.push_back(
        {to.sparse_core->resource(), receiver.share * timing::AddsPerByte(*rdma.reduce)});
  } else {
    uses_.push_back(
        {to.vpu_resource(), receiver.share * timing::VregOpsPerByte(params_, *rdma.reduce)});
  }
}

void Router::Send(int32_t device, const isa::Rdma& rdma, const isa::RouteEnd& route,
                  const events::StreamRef& stream, int32_t op, const isa::Iteration& in) {
  const uint32_t slot = NewSlot();
  PendingSend& pending = pending_[slot];
  pending.path = &fabric->PathOf(device, rdma.route);
  pending.route = rdma.route;
  pending.flag = in.Flag(rdma.arrival_flag);
  pending.sent_flag = in.Flag(rdma.sent_flag);
  pending.next = -1;
  if (causes_ != nullptr) pending.cause = causes_->current();
  RdmaRecord& record = pending.record;
  record = RdmaRecord{};
  record.source = device;
  record.destination = route.peer;
  record.rdma = &rdma;
  record.route = &route;
  record.stream = stream;
  record.op = op;
  const auto [last, is_free] = last_.try_emplace(LaneOf(record), slot);
  if (is_free) {
    Start(slot);
  } else {
    pending_[std::exchange(last->second, slot)].next = slot;
  }
}

void Router::Start(uint32_t slot) {
  RdmaRecord& record = pending_[slot].record;
  const int32_t device = record.source;
  const isa::Rdma& rdma = *record.rdma;
  const isa::RouteEnd& route = *record.route;
  record.start = events::Now();

  Endpoint& source = fabric->EndpointOf(device);
  const Path& path = *pending_[slot].path;
  uses_.clear();
  for (const Path::LinkCrossing& crossing : path.crossings) {
    LinkInterface& link = fabric->LinkAt(crossing.link);
    link.Sent(rdma.bytes * crossing.flows);
    if (!crossing.limits) continue;
    uses_.push_back({link.resource(), static_cast<double>(crossing.flows)});
  }
  FlightListener* const flights = fabric->flights();
  if (flights != nullptr) flights->FlightBegins(device, rdma.route);
  if (route.dcn) {
    UseDcn(record, path);
  } else if (route.links.empty() && route.peer != device) {
    TPUSIM_CHECK(source.die_link.size() > 0, "a chip of one device has no way to another");
    uses_.push_back({source.die_link->resource(), 1});
  }
  if (rdma.from == isa::MemorySpace::kHbm) uses_.push_back({source.hbm_resource(), 1});
  for (const Path::Receiver& receiver : path.receivers) UseReceiver(rdma, receiver);
  fluid_.Start(static_cast<double>(rdma.bytes.value()), std::numeric_limits<double>::infinity(),
               uses_, this, slot);
}

void Router::FlowEnded(uint64_t slot) {
  RdmaRecord& record = pending_[slot].record;
  const isa::Rdma& rdma = *record.rdma;
  Endpoint& source = fabric->EndpointOf(record.source);
  const Path& path = *pending_[slot].path;
  for (const Path::LinkCrossing& crossing : path.crossings) {
    fabric->LinkAt(crossing.link).Received(rdma.bytes * crossing.flows);
  }
  if (FlightListener* flights = fabric->flights()) {
    flights->FlightEnds(record.source, rdma.route);
  }
  record.end = events::Now();
  if (record.route->dcn) {
    for (const Path::Receiver& receiver : path.receivers) {
      fabric->EndpointOf(receiver.device).nic->Received(rdma.bytes, TransfersTo(receiver));
    }
  }
  record.arrival = record.end + Latency(path, rdma.route);
  if (rdma.reduce) {
    record.arrival +=
        timing::ReduceTail(params_, *rdma.reduce, rdma.bytes, rdma.to == isa::MemorySpace::kHbm);
  }
  probe_.RdmaEnded(record);
  const events::Spent wire = record.route->dcn ? events::Spent::kDcn : events::Spent::kIci;
  Spend(pending_[slot], record.end - fluid_.limited_by_memory(), wire);
  Spend(pending_[slot], record.end, events::Spent::kHbm);
  if (const int32_t flag = pending_[slot].sent_flag; flag >= 0) source.flags->Raise(flag, 1);
  // Even without a flag the simulation lasts until everything has arrived.
  arrivals_.Push(record.arrival, slot);
  const int64_t next = pending_[slot].next;
  if (next < 0) {
    last_.erase(LaneOf(record));
    return;
  }
  if (causes_ != nullptr) pending_[next].cause = causes_->current();
  Start(static_cast<uint32_t>(next));
}

void Router::Signal(int32_t device, const isa::Signal& signal, const isa::RouteEnd& route,
                    const isa::Iteration& in) {
  const uint32_t slot = NewSlot();
  PendingSend& pending = pending_[slot];
  pending.path = &fabric->PathOf(device, signal.route);
  pending.route = signal.route;
  pending.flag = in.Flag(signal.flag);
  if (causes_ != nullptr) pending.cause = causes_->current();
  pending.record = RdmaRecord{};
  pending.record.source = device;
  pending.record.destination = route.peer;
  arrivals_.Push(events::Now() + Latency(*pending.path, signal.route), slot);
}

void Router::DelayEnded(uint64_t slot) {
  PendingSend& done = pending_[slot];
  Spend(done, events::Now(), events::Spent::kLatency);
  if (causes_ != nullptr) causes_->Finished(done.cause);
  done.cause = {};
  const int32_t flag = done.flag;
  const Path& path = *done.path;
  free_.push_back(static_cast<uint32_t>(slot));
  if (flag < 0) return;
  const int32_t route = done.route;
  for (const Path::Arrival& arrival : path.arrivals) {
    Endpoint& to = fabric->EndpointOf(arrival.device);
    const int32_t name = arrival.names == nullptr ? flag : (*arrival.names)[flag];
    if (!to.joint_arrivals().Add(route, name, arrival.sender, arrival.senders)) continue;
    to.flags->Raise(name, arrival.count);
  }
}

void Router::VisitFlow(uint64_t slot, steady::StateVisitor& visitor) {
  VisitDelay(slot, visitor);
  RdmaRecord& record = pending_[slot].record;
  visitor.Same(record.rdma);
  visitor.Named(isa::NameKind::kFlag, pending_[slot].sent_flag);
  visitor.Same(record.stream.ordinal);
  visitor.Named(isa::NameKind::kOp, record.op);
  visitor.Began(record.start);
  // What waits for it.
  int64_t waiting = 0;
  for (int64_t at = pending_[slot].next; at >= 0; at = pending_[at].next) ++waiting;
  visitor.Same(waiting);
  for (int64_t at = pending_[slot].next; at >= 0; at = pending_[at].next) {
    VisitDelay(static_cast<uint64_t>(at), visitor);
    visitor.Same(pending_[at].record.rdma);
    visitor.Named(isa::NameKind::kFlag, pending_[at].sent_flag);
    visitor.Named(isa::NameKind::kOp, pending_[at].record.op);
  }
}

int64_t Router::OrderOf(uint64_t slot) const {
  const PendingSend& pending = pending_[slot];
  return (static_cast<int64_t>(pending.record.destination) << 32) + pending.flag;
}

void Router::VisitDelay(uint64_t slot, steady::StateVisitor& visitor) {
  PendingSend& pending = pending_[slot];
  pending.cause.Visit(visitor);
  visitor.Named(isa::NameKind::kFlag, pending.flag);
  visitor.Same(pending.record.source);
  visitor.Same(pending.record.destination);
}

}  // namespace tpusim::ici
