#include "models/chip/dma.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "models/events/sim_time.h"

namespace tpusim::chip {
namespace {

// A copy inside VMEM is loads and stores of whole registers.
double VmemCopyRate(const configs::ChipParams& params) {
  const configs::VpuParams& vpu = params.vpu;
  return static_cast<double>(params.CoresPerDevice() * std::min(vpu.load_slots, vpu.store_slots) *
                             vpu.sublanes * vpu.lanes * 4) *
         params.clock.value();
}

}  // namespace

Dma::Dma(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params,
         size_t channels, events::Probe& probe)
    : sc_module(name),
      fluid_(fluid),
      params_(params),
      probe_(probe),
      start_latency_(params.dma.start_latency),
      write_start_latency_(params.dma.write_start_latency),
      turnaround_(params.dma.turnaround),
      vmem_copy_rate_(VmemCopyRate(params)),
      channels_(channels),
      delays_("delays", this) {}

void Dma::end_of_elaboration() {
  for (size_t i = 0; i < timing::kRatedSpaces.size(); ++i) {
    const isa::MemorySpace space = timing::kRatedSpaces[i];
    const auto resource = memories[static_cast<int>(timing::IndexOf(space))]->resource();
    if (resource) rated_.push_back({space, *resource, i});
  }
}

flow::FlowId Dma::FlowOn(const Channel& channel, const Rated& memory) {
  const Channel::Bulk& bulk = channel.bulk[memory.index];
  return bulk.rate > 0 ? bulk.flow : channel.flow;
}

void Dma::Issue(int32_t channel, const Transfer& transfer) {
  channels_[channel].queue.push_back({transfer, events::Now() + StartLatency(transfer.write),
                                      static_cast<double>(transfer.bytes.value())});
  Serve(channel);
}

void Transfer::Visit(steady::StateVisitor& visitor) const {
  visitor.Same(write);
  visitor.Same(bytes);
  visitor.Same(accessed.hbm);
  visitor.Same(accessed.cmem);
  visitor.Same(listener);
  visitor.Same(op);
  visitor.Same(follows);
}

void Dma::VisitChannel(Channel& channel, steady::StateVisitor& visitor) {
  visitor.Same(static_cast<int64_t>(channel.queue.size()));
  visitor.Same(channel.moving);
  visitor.Same(channel.delayed);
  for (Queued& queued : channel.queue) {
    const bool moves = channel.moving && &queued == &channel.queue.front();
    queued.transfer.Visit(visitor);
    // To a thousandth of a byte.
    if (!moves) visitor.Same(std::llround(1024 * queued.bytes));
    visitor.Pending(queued.ready);
  }
  if (channel.moving) {
    visitor.Began(channel.began);
  } else {
    // What is issued from now on has a start latency of its own to wait for.
    const Picoseconds waits = channel.queue.empty() ? start_latency_ : Picoseconds(0);
    Picoseconds matters = channel.free - waits;
    visitor.Pending(matters);
    channel.free = matters + waits;
  }
  for (const Channel::Bulk& bulk : channel.bulk) visitor.SameRate(bulk.rate);
  visitor.Counter(channel.ended.hbm);
  visitor.Counter(channel.ended.cmem);
  visitor.Counter(channel.flows);
}

void Dma::VisitAlone(int32_t index, steady::StateVisitor& visitor) {
  Channel& channel = channels_[index];
  VisitChannel(channel, visitor);
  if (channel.moving) visitor.Same(std::llround(1024 * fluid_.Remaining(channel.flow)));
}

void Dma::Visit(steady::StateVisitor& visitor) {
  for (Channel& channel : channels_) VisitChannel(channel, visitor);
}

bool Dma::CanSuspend(int32_t index) const {
  const Channel& channel = channels_[index];
  return !channel.moving || fluid_.Remaining(channel.flow) > 0;
}

ChannelState Dma::Suspend(int32_t index) {
  Channel& channel = channels_[index];
  const Picoseconds now = events::Now();
  ChannelState state;
  for (const Queued& queued : channel.queue) {
    state.queue.push_back(
        {queued.transfer, queued.bytes, std::max(Picoseconds(0), queued.ready - now)});
  }
  state.free = std::max(Picoseconds(0), channel.free - now);
  if (channel.moving) {
    state.queue.front().bytes = fluid_.Remaining(channel.flow);
    state.moved_for = now - channel.began;
    fluid_.Stop(channel.flow);
    channel.flows += Counts(channel.queue.front().transfer);
  }
  channel.moving = false;
  channel.delayed = false;  // a delay that ends now finds nothing, or the same again
  channel.queue.clear();
  return state;
}

void Dma::BeginBulk(int32_t index, const timing::MemoryBytes& moved, Picoseconds period,
                    int64_t times) {
  Channel& channel = channels_[index];
  for (const Rated& memory : rated_) {
    const auto amount = static_cast<double>(moved.In(memory.space).value());
    if (amount == 0) continue;
    const std::array<flow::Use, 1> uses = {{{memory.resource, 1}}};
    Channel::Bulk& bulk = channel.bulk[memory.index];
    bulk.rate = amount / ToSeconds(period);
    bulk.flow = fluid_.Start(amount * static_cast<double>(times), bulk.rate, uses, this,
                             static_cast<uint64_t>(index));
    ++channel.flows;
  }
}

bool Dma::BulkIsSlowed(int32_t index, double share) {
  for (const Channel::Bulk& bulk : channels_[index].bulk) {
    if (bulk.rate > 0 && fluid_.network().Rate(bulk.flow) < bulk.rate * (1 - share)) return true;
  }
  return false;
}

void Dma::EndBulk(int32_t index, const timing::MemoryShares& moved) {
  Channel& channel = channels_[index];
  for (const Rated& memory : rated_) {
    Channel::Bulk& bulk = channel.bulk[memory.index];
    if (bulk.rate == 0) continue;
    fluid_.Stop(bulk.flow, moved.In(memory.space));
    ++channel.flows;
    bulk.rate = 0;
  }
}

void Dma::Resume(int32_t index, const ChannelState& state) {
  Channel& channel = channels_[index];
  const Picoseconds now = events::Now();
  for (const Outstanding& outstanding : state.queue) {
    channel.queue.push_back({outstanding.transfer, now + outstanding.wait, outstanding.bytes});
  }
  channel.free = now + state.free;
  if (!state.moved_for) {
    Serve(index);
    return;
  }
  Move(index);
  channel.began = now - *state.moved_for;
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

Picoseconds Dma::ReadyAt(const Channel& channel) {
  const Queued& front = channel.queue.front();
  const bool turns = front.transfer.follows && !front.transfer.write;
  return turns ? std::max(front.ready, channel.free) : front.ready;
}

void Dma::Serve(int32_t index) {
  Channel& channel = channels_[index];
  if (channel.moving || channel.delayed || channel.queue.empty()) return;
  const Picoseconds ready = ReadyAt(channel);
  if (ready > events::Now()) {
    channel.delayed = true;
    delays_.Push(ready, static_cast<uint64_t>(index));
    return;
  }
  Move(index);
}

void Dma::Move(int32_t index) {
  Channel& channel = channels_[index];
  const Queued& front = channel.queue.front();
  channel.moving = true;
  channel.began = events::Now();
  channel.flow = Start(index, front.bytes, front.transfer);
  channel.flows += Counts(front.transfer);
}

uint64_t Dma::Counts(const Transfer& transfer) {
  uint64_t memories = 0;
  for (const isa::MemorySpace space : timing::kRatedSpaces) {
    memories += static_cast<uint64_t>(transfer.accessed.In(space) > Bytes(0));
  }
  return memories;
}

flow::FlowId Dma::Start(int32_t index, double bytes, const Transfer& transfer) {
  std::array<flow::Use, timing::kRatedSpaces.size()> uses;
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
  Channel& channel = channels_[index];
  const Transfer done = channel.queue.front().transfer;
  channel.queue.erase(channel.queue.begin());
  channel.moving = false;
  channel.free = events::Now() + turnaround_;
  channel.ended += done.accessed;
  channel.flows += Counts(done);
  probe_.TransferEnded(static_cast<int32_t>(index), done.op, done.step, channel.began,
                       events::Now(), done.bytes, done.accessed.hbm);
  Serve(static_cast<int32_t>(index));
  done.listener->TransferEnded(done.tag);
}

}  // namespace tpusim::chip
