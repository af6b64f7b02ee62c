#include "models/chip/dma.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/chip/sim_time.h"

namespace tpusim::chip {
namespace {

int TouchesHbm(const Transfer& transfer) {
  return (transfer.from == isa::MemorySpace::kHbm) + (transfer.to == isa::MemorySpace::kHbm);
}

// A copy inside VMEM is loads and stores of whole registers.
double VmemCopyRate(const configs::ChipParams& params) {
  const configs::VpuParams& vpu = params.vpu;
  return static_cast<double>(params.CoresPerDevice() * std::min(vpu.load_slots, vpu.store_slots) *
                             vpu.sublanes * vpu.lanes * 4) *
         params.clock.value();
}

}  // namespace

Dma::Dma(sc_core::sc_module_name name, Fluid& fluid, const Hbm& hbm,
         const configs::ChipParams& params, Probe& probe)
    : sc_module(name),
      fluid_(fluid),
      hbm_(hbm),
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
  const bool write = transfer.to == isa::MemorySpace::kHbm;
  const Picoseconds latency = write ? write_start_latency_ : start_latency_;
  channels_[channel].queue.push_back(
      {transfer, Now() + latency, static_cast<double>(transfer.bytes.value())});
  Serve(channel);
}

void Dma::Observe(int32_t index, std::vector<int64_t>& state) const {
  const Channel& channel = channels_[index];
  const int64_t now = Now().value();
  const auto ahead = [now](Picoseconds t) { return std::max<int64_t>(0, t.value() - now); };
  // Whatever is issued from now on has a latency of its own to wait for.
  state.push_back(channel.queue.empty() ? std::max(ahead(channel.free), start_latency_.value())
                                        : -1 - static_cast<int64_t>(channel.moving));
  for (const Queued& queued : channel.queue) {
    const bool moves = channel.moving && &queued == &channel.queue.front();
    state.push_back(moves ? 0 : ahead(queued.ready));
    // To a thousandth of a byte.
    state.push_back(std::llround(1024 * (moves ? fluid_.Remaining(channel.flow) : queued.bytes)));
  }
  if (!channel.queue.empty() && !channel.moving) state.push_back(ahead(ReadyAt(channel)));
}

bool Dma::CanSuspend(int32_t index) const {
  const Channel& channel = channels_[index];
  return !channel.moving || fluid_.Remaining(channel.flow) > 0;
}

ChannelState Dma::Suspend(int32_t index) {
  Channel& channel = channels_[index];
  const Picoseconds now = Now();
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
    ++channel.flows;
  }
  channel.moving = false;
  channel.delayed = false;  // a delay that ends now finds nothing, or the same again
  channel.queue.clear();
  return state;
}

void Dma::BeginBulk(int32_t index, double bytes, double rate) {
  Channel& channel = channels_[index];
  const std::array<flow::Use, 1> uses = {{{hbm_.resource(), 1}}};
  channel.bulk_rate = rate;
  channel.flow = fluid_.Start(bytes, rate, uses, this, static_cast<uint64_t>(index));
  ++channel.flows;
}

bool Dma::BulkIsSlowed(int32_t index, double share) {
  const Channel& channel = channels_[index];
  return fluid_.network().Rate(channel.flow) < channel.bulk_rate * (1 - share);
}

void Dma::EndBulk(int32_t index, double moved) {
  Channel& channel = channels_[index];
  fluid_.Stop(channel.flow, moved);
  ++channel.flows;
}

void Dma::Resume(int32_t index, const ChannelState& state) {
  Channel& channel = channels_[index];
  const Picoseconds now = Now();
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

uint64_t Dma::OtherPopulation(int32_t index) const {
  return fluid_.network().Population(hbm_.resource()) - channels_[index].flows;
}

double Dma::OtherRates(int32_t index) const {
  return fluid_.network().OtherRates(hbm_.resource(), channels_[index].flow);
}

Picoseconds Dma::NextOtherCompletion(int32_t index) const {
  return fluid_.network().NextOtherCompletion(hbm_.resource(), channels_[index].flow);
}

Picoseconds Dma::ReadyAt(const Channel& channel) {
  const Queued& front = channel.queue.front();
  const bool turns = front.transfer.follows && front.transfer.to != isa::MemorySpace::kHbm;
  return turns ? std::max(front.ready, channel.free) : front.ready;
}

void Dma::Serve(int32_t index) {
  Channel& channel = channels_[index];
  if (channel.moving || channel.delayed || channel.queue.empty()) return;
  const Picoseconds ready = ReadyAt(channel);
  if (ready > Now()) {
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
  channel.began = Now();
  const int touches_hbm = TouchesHbm(front.transfer);
  if (touches_hbm == 0) {
    channel.flow =
        fluid_.Start(front.bytes, vmem_copy_rate_, {}, this, static_cast<uint64_t>(index));
    return;
  }
  const std::array<flow::Use, 1> uses = {{{hbm_.resource(), static_cast<double>(touches_hbm)}}};
  channel.flow =
      fluid_.Start(front.bytes, hbm_.rate().value(), uses, this, static_cast<uint64_t>(index));
  ++channel.flows;
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
  channel.free = Now() + turnaround_;
  channel.ended += done.bytes;
  const int touches_hbm = TouchesHbm(done);
  if (touches_hbm > 0) ++channel.flows;
  probe_.TransferEnded(static_cast<int32_t>(index), done.op, done.step, channel.began, Now(),
                       done.bytes, done.bytes * touches_hbm);
  Serve(static_cast<int32_t>(index));
  done.listener->TransferEnded(done.tag);
}

}  // namespace tpusim::chip
