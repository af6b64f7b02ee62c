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

Dma::Dma(sc_core::sc_module_name name, events::Fluid& fluid, const Hbm& hbm, const Cmem& cmem,
         const configs::ChipParams& params, events::Probe& probe)
    : sc_module(name),
      fluid_(fluid),
      hbm_(hbm),
      cmem_(cmem),
      params_(params),
      probe_(probe),
      start_latency_(params.dma.start_latency),
      write_start_latency_(params.dma.write_start_latency),
      turnaround_(params.dma.turnaround),
      vmem_copy_rate_(VmemCopyRate(params)),
      delays_("delays", this) {}

int32_t Dma::OpenChannel() {
  channels_.emplace_back();
  return static_cast<int32_t>(channels_.size() - 1);
}

void Dma::Issue(int32_t channel, const Transfer& transfer) {
  channels_[channel].queue.push_back({transfer, events::Now() + StartLatency(transfer.write),
                                      static_cast<double>(transfer.bytes.value())});
  Serve(channel);
}

void Transfer::Visit(steady::StateVisitor& visitor) const {
  visitor.Same(write);
  visitor.Same(bytes);
  visitor.Same(touched.hbm);
  visitor.Same(touched.cmem);
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
  visitor.SameRate(channel.bulk_rate);
  visitor.SameRate(channel.bulk_cmem_rate);
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
  const auto start = [&](flow::ResourceId resource, Bytes bytes, double& rate) {
    const auto amount = static_cast<double>(bytes.value());
    const std::array<flow::Use, 1> uses = {{{resource, 1}}};
    rate = amount / ToSeconds(period);
    ++channel.flows;
    return fluid_.Start(amount * static_cast<double>(times), rate, uses, this,
                        static_cast<uint64_t>(index));
  };
  channel.bulk_rate = channel.bulk_cmem_rate = 0;
  if (moved.hbm > Bytes(0)) channel.flow = start(hbm_.resource(), moved.hbm, channel.bulk_rate);
  if (moved.cmem > Bytes(0)) {
    channel.bulk_cmem = start(*cmem_.resource(), moved.cmem, channel.bulk_cmem_rate);
  }
}

bool Dma::BulkIsSlowed(int32_t index, double share) {
  const Channel& channel = channels_[index];
  const auto slowed = [&](flow::FlowId flow, double rate) {
    return rate > 0 && fluid_.network().Rate(flow) < rate * (1 - share);
  };
  return slowed(channel.flow, channel.bulk_rate) ||
         slowed(channel.bulk_cmem, channel.bulk_cmem_rate);
}

void Dma::EndBulk(int32_t index, double hbm, double cmem) {
  Channel& channel = channels_[index];
  if (channel.bulk_rate > 0) {
    fluid_.Stop(channel.flow, hbm);
    ++channel.flows;
  }
  if (channel.bulk_cmem_rate > 0) {
    fluid_.Stop(channel.bulk_cmem, cmem);
    ++channel.flows;
  }
  channel.bulk_rate = channel.bulk_cmem_rate = 0;
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
  double sum = fluid_.network().CarriedUntil(events::Now(), hbm_.resource());
  if (cmem_.resource()) sum += fluid_.network().CarriedUntil(events::Now(), *cmem_.resource());
  return sum;
}

uint64_t Dma::OtherPopulation(int32_t index) const {
  uint64_t population = fluid_.network().Population(hbm_.resource());
  if (cmem_.resource()) population += fluid_.network().Population(*cmem_.resource());
  return population - channels_[index].flows;
}

double Dma::OtherRates(int32_t index) const {
  const Channel& channel = channels_[index];
  double sum = fluid_.network().OtherRates(hbm_.resource(), channel.flow);
  if (cmem_.resource()) {
    const bool bulk = channel.bulk_cmem_rate > 0;
    sum += fluid_.network().OtherRates(*cmem_.resource(), bulk ? channel.bulk_cmem : channel.flow);
  }
  return sum;
}

Picoseconds Dma::NextOtherCompletion(int32_t index) const {
  const Channel& channel = channels_[index];
  Picoseconds next = fluid_.network().NextOtherCompletion(hbm_.resource(), channel.flow);
  if (cmem_.resource()) {
    next = std::min(next, fluid_.network().NextOtherCompletion(*cmem_.resource(), channel.flow));
  }
  return next;
}

void Dma::Watch(events::ConditionsListener* listener) {
  fluid_.Watch(hbm_.resource(), listener);
  if (cmem_.resource()) fluid_.Watch(*cmem_.resource(), listener);
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
  return static_cast<uint64_t>(transfer.touched.hbm > Bytes(0)) +
         static_cast<uint64_t>(transfer.touched.cmem > Bytes(0));
}

flow::FlowId Dma::Start(int32_t index, double bytes, const Transfer& transfer) {
  const timing::MemoryBytes& touched = transfer.touched;
  std::array<flow::Use, 2> uses;
  size_t count = 0;
  if (touched.hbm > Bytes(0)) {
    uses[count++] = {hbm_.resource(), timing::ShareOf(touched.hbm, transfer.bytes)};
  }
  if (touched.cmem > Bytes(0)) {
    uses[count++] = {*cmem_.resource(), timing::ShareOf(touched.cmem, transfer.bytes)};
  }
  const double rate =
      count == 0 ? vmem_copy_rate_ : timing::MoveRate(params_, touched, transfer.bytes).value();
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
  channel.ended += done.touched;
  channel.flows += Counts(done);
  probe_.TransferEnded(static_cast<int32_t>(index), done.op, done.step, channel.began,
                       events::Now(), done.bytes, done.touched.hbm);
  Serve(static_cast<int32_t>(index));
  done.listener->TransferEnded(done.tag);
}

}  // namespace tpusim::chip
