// Stubs of the interfaces of models/chip for the ports of a module under test: they note what they
// are asked for and when, and do as the test says.
#ifndef TPUSIM_TESTS_MODELS_STUBS_H_
#define TPUSIM_TESTS_MODELS_STUBS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/chip/dma_interface.h"
#include "models/chip/interfaces.h"
#include "models/events/fluid.h"
#include "models/events/probe.h"
#include "models/events/sim_time.h"

namespace tpusim::testing {

inline int64_t NowPs() { return events::Now().value(); }

// Notes that something has ended.
struct Note : chip::WorkListener, chip::TransferListener, chip::FlagListener, events::FlowListener {
  std::vector<int64_t> times;  // when it was told

  void WorkEnded() override { times.push_back(NowPs()); }
  void TransferEnded(uint64_t) override { times.push_back(NowPs()); }
  void FlagReached() override { times.push_back(NowPs()); }
  void FlowEnded(uint64_t) override { times.push_back(NowPs()); }
  void VisitFlow(uint64_t, steady::StateVisitor&) override {}
  int64_t OrderOfFlow(uint64_t) const override { return 0; }
};

struct NoProbe : events::Probe {
  void LabelBegan(const events::StreamRef&, int32_t) override {}
  void LabelEnded(const events::StreamRef&, int32_t) override {}
  void BlockBegan(int32_t, int64_t, Picoseconds, Picoseconds, Picoseconds) override {}
  void TransferEnded(int32_t, int32_t, int64_t, Picoseconds, Picoseconds, Bytes, Bytes) override {}
  void RepeatBegan(const events::RepeatingCore&) override {}
  void RepeatEnded(int32_t, Picoseconds, Picoseconds, Picoseconds, Picoseconds, Bytes) override {}
  bool WantsEverything() const override { return false; }
  void HostTransferEnded(int32_t, bool, Picoseconds, Bytes) override {}
  void LiveBytesChanged(isa::MemorySpace, Bytes, int32_t, bool) override {}
  void StreamFinished() override {}
};

struct StubMemory : chip::MemoryInterface {
  std::optional<flow::ResourceId> served_by;
  Bytes capacity{1'000'000'000}, used{0};

  std::optional<flow::ResourceId> resource() const override { return served_by; }
  absl::Status Alloc(std::string_view what, Bytes bytes) override {
    if (used + bytes > capacity)
      return absl::ResourceExhaustedError(std::string(what) + " is too large");
    used += bytes;
    return absl::OkStatus();
  }
  absl::Status Free(std::string_view, Bytes bytes) override {
    used -= bytes;
    return absl::OkStatus();
  }
  Bytes live() const override { return used; }
};

struct StubServer : chip::ServerInterface {
  flow::ResourceId served_by{};
  flow::ResourceId resource() const override { return served_by; }
};

struct StubSlot : chip::SlotInterface {
  std::vector<std::pair<int64_t, int64_t>> busy;  // start, duration
  void Occupy(Picoseconds start, Picoseconds duration) override {
    busy.emplace_back(start.value(), duration.value());
  }
};

struct StubFlags : chip::FlagsInterface {
  struct Raised {
    int32_t flag = 0;
    int64_t times = 0;
    int64_t at = 0;
    bool operator==(const Raised&) const = default;
  };
  std::vector<Raised> raised;
  bool taken = true;                                // what Take says
  std::vector<std::pair<int32_t, int64_t>> wanted;  // flag, count

  void Raise(int32_t flag, int64_t times) override { raised.push_back({flag, times, NowPs()}); }
  bool Take(int32_t flag, int64_t count, chip::FlagListener*) override {
    wanted.emplace_back(flag, count);
    return taken;
  }
};

// Transfers end when the test says so, in the order of issue.
struct StubDma : chip::BulkDmaInterface {
  struct Issued {
    int32_t channel = 0;
    chip::DmaTransfer transfer;
    int64_t at = 0;
  };
  std::vector<Issued> issued;
  size_t over = 0;
  timing::MemoryBytes ended;

  void Issue(int32_t channel, const chip::DmaTransfer& transfer) override {
    issued.push_back({channel, transfer, NowPs()});
  }
  void EndNext() {
    const chip::DmaTransfer transfer = issued.at(over++).transfer;
    ended += transfer.accessed;
    transfer.listener->TransferEnded(transfer.number);
  }
  const timing::MemoryBytes& Ended(int32_t) const override { return ended; }
  void AddEnded(int32_t, const timing::MemoryBytes& bytes) override { ended += bytes; }
  // Nothing repeats here.
  void VisitAlone(int32_t, steady::StateVisitor&) override {}
  bool CanSuspend(int32_t) const override { return false; }
  chip::Channel Suspend(int32_t) override { return chip::Channel(configs::DmaParams{}); }
  void BeginBulk(int32_t, const timing::MemoryBytes&, Picoseconds, int64_t) override {}
  bool BulkIsSlowed(int32_t, double) override { return false; }
  void EndBulk(int32_t, const timing::MemoryShares&) override {}
  void Resume(int32_t, const chip::Channel&) override {}
  double Carried() override { return 0; }
  uint64_t OtherPopulation(int32_t) const override { return 0; }
  double OtherRates(int32_t) const override { return 0; }
  Picoseconds NextOtherCompletion(int32_t) const override {
    return Picoseconds(flow::Network::kNever);
  }
  void Watch(events::ConditionsListener*) override {}
};

struct StubCompute : chip::ComputeInterface {
  absl::Status refuses;  // kernels, if it is no success
  int blocks = 0, kernels = 0;
  std::vector<int32_t> ops;

  absl::Status Run(const isa::Kernel&, int32_t op, int32_t, chip::WorkListener*) override {
    if (!refuses.ok()) return refuses;
    ++kernels;
    ops.push_back(op);
    return absl::OkStatus();
  }
  void Run(const isa::Block&, int32_t op, chip::WorkListener*) override {
    ++blocks;
    ops.push_back(op);
  }
  chip::TimeSplit Split(Picoseconds) const override { return {}; }
  std::vector<chip::StepListener*> told;
  void TellStep(chip::StepListener* listener) override { told.push_back(listener); }
  void ForgetStep(chip::StepListener* listener) override { std::erase(told, listener); }
};

struct StubHost : chip::HostInterface {
  std::vector<chip::HostTransfer> issued;
  void Issue(const chip::HostTransfer& transfer) override { issued.push_back(transfer); }
};

struct StubNetwork : chip::NetworkInterface {
  std::vector<int64_t> sent, signalled;  // when
  std::vector<int32_t> ops;              // of what was sent

  void Send(int32_t, const isa::Rdma&, const isa::RouteEnd&, const events::StreamRef&, int32_t op,
            const isa::Iteration&) override {
    sent.push_back(NowPs());
    ops.push_back(op);
  }
  void Signal(int32_t, const isa::Signal&, const isa::RouteEnd&, const isa::Iteration&) override {
    signalled.push_back(NowPs());
  }
};

struct StubForkJoin : chip::ForkJoinInterface {
  bool forks = true;
  Joined joined = Joined::kYes;
  std::vector<int32_t> forked, finished;  // tokens

  bool Fork(const isa::StreamId&, const isa::Body&, int32_t token, const isa::Iteration&) override {
    if (forks) forked.push_back(token);
    return forks;
  }
  void Finish(int32_t token) override { finished.push_back(token); }
  Joined Join(int32_t, chip::StreamInterface*) override { return joined; }
};

struct StubStream : chip::StreamInterface {
  events::StreamRef as;
  std::vector<int32_t> queued;  // tokens
  int woken = 0;

  const events::StreamRef& ref() const override { return as; }
  void Enqueue(const isa::Body&, int32_t token, const isa::Iteration&) override {
    queued.push_back(token);
  }
  void Wake() override { ++woken; }
  std::vector<int32_t> awaited;  // tokens
  void Awaited(int32_t token) override { awaited.push_back(token); }
};

struct StubDuplex : chip::NicInterface {
  flow::ResourceId out{}, in{};
  int64_t equal = 1;
  Bytes sent{0}, received{0};

  flow::ResourceId outward() const override { return out; }
  flow::ResourceId inward() const override { return in; }
  int64_t multiplicity() const override { return equal; }
  void Sent(Bytes bytes, int64_t senders) override { sent += bytes * senders; }
  void Received(Bytes bytes, int64_t senders) override { received += bytes * senders; }
};

}  // namespace tpusim::testing

#endif  // TPUSIM_TESTS_MODELS_STUBS_H_
