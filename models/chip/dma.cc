#include "models/chip/dma.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "configs/memory.h"
#include "configs/vector_register.h"
#include "models/events/sim_time.h"

namespace tpusim::chip {
namespace {

// A copy inside VMEM is loads and stores of whole registers.
double VmemCopyRate(const configs::ChipParams& params) {
  const configs::VpuParams& vpu = params.vpu;
  return static_cast<double>(params.CoresPerDevice() * std::min(vpu.load_slots, vpu.store_slots) *
                             configs::RegisterBytes(vpu)) *
         params.clock.value();
}

}  // namespace

Dma::Dma(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params,
         size_t channels, events::Probe& probe)
    : sc_module(name),
      fluid_(fluid),
      params_(params),
      probe_(probe),
      vmem_copy_rate_(VmemCopyRate(params)),
      channels_(channels, Served(params.dma)),
      delays_("delays", this) {}

void Dma::end_of_elaboration() {
  for (const isa::MemorySpace space : configs::kRatedSpaces) {
    const auto resource = memories[static_cast<int>(configs::IndexOf(space))]->resource();
    if (resource) rated_.push_back({space, *resource});
  }
}

flow::FlowId Dma::FlowOn(const Served& served, const Rated& memory) {
  const Served::Bulk& bulk = served.bulk.In(memory.space);
  return bulk.rate > 0 ? bulk.flow : served.flow;
}

void Dma::Issue(int32_t index, const DmaTransfer& transfer) {
  channels_[index].state.Issue(events::Now(), transfer);
  Serve(index);
}

void Dma::VisitChannel(Served& served, steady::StateVisitor& visitor) {
  served.state.Visit(visitor);
  visitor.Same(served.delayed);
  for (const Served::Bulk& bulk : served.bulk.of) visitor.SameRate(bulk.rate);
  for (Bytes& ended : served.ended.of) visitor.Counter(ended);
  visitor.Counter(served.flows);
}

void Dma::VisitAlone(int32_t index, steady::StateVisitor& visitor) {
  Served& served = channels_[index];
  VisitChannel(served, visitor);
  if (served.state.moving()) visitor.Same(std::llround(1024 * fluid_.Remaining(served.flow)));
}

void Dma::Visit(steady::StateVisitor& visitor) {
  for (Served& served : channels_) VisitChannel(served, visitor);
}

bool Dma::CanSuspend(int32_t index) const {
  const Served& served = channels_[index];
  return !served.state.moving() || fluid_.Remaining(served.flow) > 0;
}

Channel Dma::Suspend(int32_t index) {
  Served& served = channels_[index];
  if (served.state.moving()) {
    served.state.Count(events::Now(), fluid_.Remaining(served.flow));
    fluid_.Stop(served.flow);
    served.flows += Counts(served.state.first().transfer);
  }
  served.delayed = false;  // a delay that ends now finds nothing, or the same again
  return served.state.Take();
}

void Dma::BeginBulk(int32_t index, const timing::MemoryBytes& moved, Picoseconds period,
                    int64_t times) {
  Served& served = channels_[index];
  for (const Rated& memory : rated_) {
    const auto amount = static_cast<double>(moved.In(memory.space).value());
    if (amount == 0) continue;
    const std::array<flow::ResourceUse, 1> uses = {{{memory.resource, 1}}};
    Served::Bulk& bulk = served.bulk.In(memory.space);
    bulk.rate = amount / ToSeconds(period);
    bulk.flow = fluid_.Start(amount * static_cast<double>(times), bulk.rate, uses, this,
                             static_cast<uint64_t>(index));
    ++served.flows;
  }
}

bool Dma::BulkIsSlowed(int32_t index, double share) {
  for (const Served::Bulk& bulk : channels_[index].bulk.of) {
    if (bulk.rate > 0 && fluid_.network().Rate(bulk.flow) < bulk.rate * (1 - share)) return true;
  }
  return false;
}

void Dma::EndBulk(int32_t index, const timing::MemoryShares& moved) {
  Served& served = channels_[index];
  for (const Rated& memory : rated_) {
    Served::Bulk& bulk = served.bulk.In(memory.space);
    if (bulk.rate == 0) continue;
    fluid_.Stop(bulk.flow, moved.In(memory.space));
    ++served.flows;
    bulk.rate = 0;
  }
}

void Dma::Resume(int32_t index, const Channel& state) {
  Served& served = channels_[index];
  served.state = state;
  if (state.moving()) {
    StartFlow(index);
  } else {
    Serve(index);
  }
}

double Dma::Carried() {
  double sum = 0;
  for (const Rated& memory : rated_) {
    sum += fluid_.network().CarriedUntil(events::Now(), memory.resource);
  }
  return sum;
}

uint64_t Dma::OtherPopulation(int32_t index) const {
  uint64_t population = 0;
  for (const Rated& memory : rated_) population += fluid_.network().Population(memory.resource);
  return population - channels_[index].flows;
}

double Dma::OtherRates(int32_t index) const {
  double sum = 0;
  for (const Rated& memory : rated_) {
    sum += fluid_.network().OtherRates(memory.resource, FlowOn(channels_[index], memory));
  }
  return sum;
}

Picoseconds Dma::NextOtherCompletion(int32_t index) const {
  Picoseconds next(flow::Network::kNever);
  for (const Rated& memory : rated_) {
    next = std::min(next, fluid_.network().NextOtherCompletion(memory.resource,
                                                               FlowOn(channels_[index], memory)));
  }
  return next;
}

void Dma::Watch(events::ConditionsListener* listener) {
  for (const Rated& memory : rated_) fluid_.Watch(memory.resource, listener);
}

void Dma::Serve(int32_t index) {
  Served& served = channels_[index];
  if (served.state.moving() || served.delayed || served.state.empty()) return;
  const Picoseconds begin = served.state.NextBegin();
  if (begin > events::Now()) {
    served.delayed = true;
    delays_.Push(begin, static_cast<uint64_t>(index));
    return;
  }
  served.state.Begin(events::Now());
  StartFlow(index);
}

void Dma::StartFlow(int32_t index) {
  Served& served = channels_[index];
  const Channel::Item& first = served.state.first();
  served.flow = Start(index, first.bytes, first.transfer);
  served.flows += Counts(first.transfer);
}

uint64_t Dma::Counts(const DmaTransfer& transfer) {
  uint64_t memories = 0;
  for (const isa::MemorySpace space : configs::kRatedSpaces) {
    memories += static_cast<uint64_t>(transfer.accessed.In(space) > Bytes(0));
  }
  return memories;
}

flow::FlowId Dma::Start(int32_t index, double bytes, const DmaTransfer& transfer) {
  std::array<flow::ResourceUse, configs::kRatedSpaces.size()> uses;
  size_t count = 0;
  for (const Rated& memory : rated_) {
    const Bytes accessed = transfer.accessed.In(memory.space);
    if (accessed == Bytes(0)) continue;
    uses[count++] = {memory.resource, timing::ShareOf(accessed, transfer.bytes)};
  }
  const double rate = count == 0
                          ? vmem_copy_rate_
                          : timing::MoveRate(params_, transfer.accessed, transfer.bytes).value();
  return fluid_.Start(bytes, rate, std::span(uses.data(), count), this,
                      static_cast<uint64_t>(index));
}

void Dma::DelayEnded(uint64_t channel) {
  channels_[channel].delayed = false;
  Serve(static_cast<int32_t>(channel));
}

void Dma::FlowEnded(uint64_t index) {
  Served& served = channels_[index];
  const Picoseconds now = events::Now(), began = served.state.began();
  const DmaTransfer done = served.state.End(now);
  served.ended += done.accessed;
  served.flows += Counts(done);
  probe_.TransferEnded(static_cast<int32_t>(index), done.op, done.step, began, now, done.bytes,
                       done.accessed.hbm());
  Serve(static_cast<int32_t>(index));
  done.listener->TransferEnded(done.number);
}

}  // namespace tpusim::chip
