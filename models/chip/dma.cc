#include "models/chip/dma.h"

#include <algorithm>
#include <array>
#include <limits>

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

void Dma::IssueBulk(int32_t channel, const Transfer& transfer, double bytes, Picoseconds until) {
  channels_[channel].queue.push_back({transfer, Now(), bytes, until});
  Serve(channel);
}

std::vector<Outstanding> Dma::OutstandingOf(int32_t index) {
  const Channel& channel = channels_[index];
  const Picoseconds now = Now();
  std::vector<Outstanding> outstanding;
  for (const Queued& queued : channel.queue) {
    outstanding.push_back(
        {queued.transfer, queued.bytes, std::max(Picoseconds(0), queued.ready - now)});
  }
  if (!outstanding.empty()) {
    // What it waits for is counted; it does not wait for a turnaround again.
    Outstanding& front = outstanding.front();
    if (!channel.moving) front.wait = std::max(Picoseconds(0), ReadyAt(channel) - now);
    front.transfer.follows = false;
  }
  if (channel.moving) outstanding.front().bytes = fluid_.Remaining(channel.flow);
  return outstanding;
}

void Dma::Resume(int32_t channel, const Outstanding& outstanding) {
  channels_[channel].queue.push_back(
      {outstanding.transfer, Now() + outstanding.wait, outstanding.bytes});
  Serve(channel);
}

Picoseconds Dma::ReadyAt(const Channel& channel) {
  const Queued& front = channel.queue.front();
  const bool turns = front.transfer.follows && front.transfer.to != isa::MemorySpace::kHbm;
  return turns ? std::max(front.ready, channel.free) : front.ready;
}

void Dma::Serve(int32_t index) {
  Channel& channel = channels_[index];
  if (channel.moving || channel.delayed || channel.queue.empty()) return;
  const Queued& front = channel.queue.front();
  const Picoseconds now = Now();
  const Picoseconds ready = ReadyAt(channel);
  if (ready > now) {
    channel.delayed = true;
    delays_.Push(ready, static_cast<uint64_t>(index));
    return;
  }
  channel.moving = true;
  channel.began = now;
  double rate = hbm_.rate().value();
  if (front.until > now) rate = std::min(rate, front.bytes / ToSeconds(front.until - now));
  const int touches_hbm = TouchesHbm(front.transfer);
  if (touches_hbm == 0) {
    channel.flow =
        fluid_.Start(front.bytes, vmem_copy_rate_, {}, this, static_cast<uint64_t>(index));
    return;
  }
  const std::array<flow::Use, 1> uses = {{{hbm_.resource(), static_cast<double>(touches_hbm)}}};
  channel.flow = fluid_.Start(front.bytes, rate, uses, this, static_cast<uint64_t>(index));
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
  probe_.TransferEnded(static_cast<int32_t>(index), done.op, done.step, channel.began, done.bytes,
                       done.bytes * TouchesHbm(done));
  Serve(static_cast<int32_t>(index));
  done.listener->TransferEnded(done.tag);
}

}  // namespace tpusim::chip
