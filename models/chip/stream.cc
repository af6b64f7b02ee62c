#include "models/chip/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/events/sim_time.h"
#include "models/timing/kernel_timing.h"
#include "models/timing/memory_bytes.h"

namespace tpusim::chip {
namespace {

// Shorter loops have ended before a steady state pays.
constexpr int64_t kFewestPasses = 4;

}  // namespace

Stream::Stream(sc_core::sc_module_name name, const StreamContext& context,
               const events::StreamRef& ref)
    : sc_module(name), context_(context), ref_(ref) {
  SC_HAS_PROCESS(Stream);
  SC_METHOD(Run);
  sensitive << wake_;
  dont_initialize();
  if (context_.causes != nullptr) cause_ = context_.causes->Start();
}

void Stream::Enqueue(const isa::Body& body, int32_t token, const isa::Iteration& in) {
  // It follows what the stream executes, or the stream that gave it.
  if (!active_ && queue_.empty() && context_.causes != nullptr) cause_ = context_.causes->current();
  queue_.push_back({&body, token, in});
  if (!active_) Resume();
}

void Stream::Wake() {
  if (context_.causes != nullptr) cause_ = context_.causes->current();
  Resume();
}

void Stream::Awaited(int32_t token) {
  if (!Holds(token)) return;
  awaited_ = token;
  if (blocked_ != Blocked::kStep) return;
  tensor_core->ForgetStep(this);
  StepBegan();
}

void Stream::StepBegan() {
  if (context_.causes != nullptr) Spend(events::Now(), events::Spent::kLatency);
  Resume();
}

void Stream::WorkEnded() {
  if (context_.causes != nullptr) {
    Picoseconds at = context_.causes->At(cause_);
    const TimeSplit split = tensor_core->Split(events::Now() - at);
    Spend(at += split.latency, events::Spent::kLatency);
    Spend(at += split.hbm, events::Spent::kHbm);
    Spend(at += split.vpu, events::Spent::kVpu);
    Spend(events::Now(), events::Spent::kMxu);
  }
  Resume();
}

void Stream::TransferEnded(uint64_t) {
  if (context_.causes != nullptr) {
    const Picoseconds began = context_.causes->At(cause_);
    Spend(std::min(began + start_latency_, events::Now()), events::Spent::kLatency);
    Spend(events::Now(), moved_by_);
  }
  Resume();
}

void Stream::Spend(Picoseconds end, events::Spent spent) {
  context_.causes->Spend(cause_, end, op(), spent);
}

bool Stream::Holds(int32_t token) const {
  if (active_ && token_ == token) return true;
  for (const Queued& queued : queue_) {
    if (queued.token == token) return true;
  }
  return false;
}

bool Stream::Sleep(Blocked why, int32_t on, int64_t count) {
  blocked_ = why;
  blocked_on_ = on;
  blocked_count_ = count;
  return false;
}

bool Stream::Fail(absl::Status status) {
  context_.faults.Report(std::move(status));
  return Sleep(Blocked::kWork);
}

void Stream::Enter(const isa::Body& body, const isa::Iteration& in) {
  if (!body.empty()) frames_.push_back({.body = &body, .entered = events::Now(), .in = in});
}

void Stream::WakeAfter(Picoseconds delay) {
  timed_ = true;
  wakes_at_ = events::Now() + delay;
  wake_.notify(events::ScTime(delay));
}

void Stream::Visit(steady::StateVisitor& visitor) {
  cause_.Visit(visitor);
  visitor.Same(static_cast<int64_t>(queue_.size()));
  for (Queued& queued : queue_) {
    visitor.Same(queued.body);
    visitor.Named(isa::NameKind::kToken, queued.token);
    visitor.Iteration(queued.in);
  }
  visitor.Same(static_cast<int64_t>(frames_.size()));
  for (BodyFrame& frame : frames_) {
    visitor.Same(frame.body);
    visitor.Same(static_cast<int64_t>(frame.next));
    visitor.Began(frame.entered);
    int64_t passes = frame.repeats + 1;  // with the running one
    visitor.Left(passes);
    frame.repeats = passes - 1;
    visitor.Iteration(frame.in);
  }
  visitor.Same(static_cast<int64_t>(labels_.size()));
  for (int32_t& label : labels_) visitor.Named(isa::NameKind::kOp, label);
  visitor.Same(active_);
  if (active_) visitor.Named(isa::NameKind::kToken, token_);
  visitor.Same(awaited_ >= 0);
  if (awaited_ >= 0) visitor.Named(isa::NameKind::kToken, awaited_);
  visitor.Same(static_cast<int64_t>(blocked_));
  if (blocked_ == Blocked::kFlag) visitor.Named(isa::NameKind::kFlag, blocked_on_);
  if (blocked_ == Blocked::kToken) visitor.Named(isa::NameKind::kToken, blocked_on_);
  if (blocked_ != Blocked::kNo) visitor.Same(blocked_count_);
  visitor.Same(timed_);
  if (!timed_ || !visitor.Pending(wakes_at_)) return;
  wake_.cancel();
  wake_.notify(events::ScTime(wakes_at_ - events::Now()));
}

void Stream::Run() {
  ready_ = false;
  blocked_ = Blocked::kNo;
  if (timed_ && context_.causes != nullptr) Spend(events::Now(), events::Spent::kLatency);
  timed_ = false;
  for (;;) {
    while (!frames_.empty()) {
      BodyFrame& frame = frames_.back();
      if (frame.next == frame.body->size()) {
        if (frame.repeats == 0) {
          if (frame.told) context_.loops->LoopEnds(*this, *frame.loop);
          frames_.pop_back();
        } else {
          --frame.repeats;
          frame.next = 0;
          if (frame.loop->iterations != nullptr) ++frame.in.number;
        }
        continue;
      }
      if (frame.told && frame.next == 0) context_.loops->PassBegins(*this, *frame.loop);
      const isa::Instruction& instruction = (*frame.body)[frame.next++];
      if (const auto* call = std::get_if<isa::Call>(&instruction.kind)) {
        Enter(*call->body, frame.in);
        continue;
      }
      const auto* loop = std::get_if<isa::Loop>(&instruction.kind);
      if (loop != nullptr && loop->iterations != nullptr) {
        Execute(*loop);
        continue;
      }
      ++retired_;
      if (!context_.faults.Count()) {
        Sleep(Blocked::kWork);
        return;
      }
      if (!std::visit([this](const auto& kind) { return Execute(kind); }, instruction.kind)) {
        return;
      }
    }
    if (active_) {
      active_ = false;
      TellCause();
      if (context_.causes != nullptr) context_.causes->Finished(cause_);
      if (token_ == awaited_) awaited_ = -1;
      if (token_ >= 0) fork_join->Finish(token_);
      context_.probe.StreamFinished();
    }
    if (queue_.empty()) return;
    const Queued next = queue_.front();
    queue_.pop_front();
    token_ = next.token;
    active_ = true;
    Enter(*next.body, next.in);
  }
}

bool Stream::Execute(const isa::Block& block) {
  if (ref_.id.kind == isa::StreamKind::kTensorCore) {
    tensor_core->Run(block, op(), this);
  } else {
    // Control work beside the TensorCore: it takes time and no slot.
    const Cycles cycles = timing::TimeBlock(context_.params, block).total;
    WakeAfter(ToTime(cycles, context_.params.clock));
  }
  return Sleep(Blocked::kWork);
}

bool Stream::Execute(const isa::Kernel& kernel) {
  const absl::Status status = tensor_core->Run(kernel, op(), ref_.ordinal, this);
  if (!status.ok()) {
    const int32_t label = op();
    return Fail(absl::Status(
        status.code(),
        fmt::format("{}{}", label < 0 ? "" : context_.program.info.ops[label].name + ": ",
                    Message(status))));
  }
  return Sleep(Blocked::kWork);
}

bool Stream::Execute(const isa::Dma& copy) {
  DmaTransfer transfer;
  transfer.write = timing::IsWrite(copy);
  transfer.bytes = copy.bytes;
  transfer.accessed = timing::AccessedBy(copy);
  transfer.listener = this;
  transfer.op = op();
  start_latency_ =
      transfer.write ? context_.params.dma.write_start_latency : context_.params.dma.start_latency;
  moved_by_ = events::Spent::kHbm;
  dma->Issue(ref_.ordinal, transfer);
  return Sleep(Blocked::kWork);
}

bool Stream::Execute(const isa::HostDma& copy) {
  HostTransfer transfer;
  transfer.dma = copy;
  transfer.hbm = *memories[static_cast<int>(configs::IndexOf(isa::MemorySpace::kHbm))]->resource();
  transfer.multiplicity = context_.multiplicity;
  transfer.op = op();
  transfer.probe = &context_.probe;
  transfer.listener = this;
  start_latency_ = context_.params.host.pcie_latency;
  moved_by_ = events::Spent::kHost;
  host_link->Issue(transfer);
  return Sleep(Blocked::kWork);
}

bool Stream::Execute(const isa::Rdma& rdma) {
  TellCause();
  network->Send(context_.device, rdma, context_.program.routes[rdma.route].from[context_.device],
                ref_, op(), in());
  return true;
}

bool Stream::Execute(const isa::Signal& signal) {
  TellCause();
  network->Signal(context_.device, signal,
                  context_.program.routes[signal.route].from[context_.device], in());
  return true;
}

bool Stream::Execute(const isa::Wait& wait) {
  const int32_t flag = in().Flag(wait.flag);
  if (flags->Take(flag, wait.count, this)) return true;
  return Sleep(Blocked::kFlag, flag, wait.count);
}

bool Stream::Execute(const isa::Poll&) {
  if (awaited_ >= 0) return true;
  tensor_core->TellStep(this);
  return Sleep(Blocked::kStep);
}

bool Stream::Execute(const isa::Loop& loop) {
  if (loop.count == 0 || loop.body->empty()) return true;
  const bool told = context_.loops != nullptr && loop.count >= kFewestPasses;
  isa::Iteration in = this->in();
  if (loop.iterations != nullptr) in = {loop.iterations.get(), 0};
  frames_.push_back({loop.body.get(), 0, loop.count - 1, &loop, told, events::Now(), in});
  return true;
}

bool Stream::Execute(const isa::Call&) {
  TPUSIM_CHECK(false, "a call is no instruction of its own");
}

bool Stream::Execute(const isa::Branch& branch) {
  Enter(*branch.bodies[branch.taken], in());
  return true;
}

bool Stream::Execute(const isa::Label& label) {
  const int32_t op = in().Op(label.op);
  if (label.begin) {
    labels_.push_back(op);
    context_.probe.LabelBegan(ref_, op);
  } else {
    context_.probe.LabelEnded(ref_, op);
    labels_.pop_back();
  }
  return true;
}

bool Stream::Change(isa::MemorySpace space, int32_t buffer, bool alloc) {
  const isa::BufferInfo& info = context_.program.info.buffers[buffer];
  MemoryInterface& memory = *memories[static_cast<int>(configs::IndexOf(space))];
  absl::Status status =
      alloc ? memory.Alloc(info.name, info.bytes) : memory.Free(info.name, info.bytes);
  if (!status.ok()) return Fail(std::move(status));
  context_.probe.LiveBytesChanged(space, memory.live(), buffer, alloc);
  return true;
}

bool Stream::Execute(const isa::Alloc& alloc) {
  return Change(alloc.space, alloc.buffer, /*alloc=*/true);
}

bool Stream::Execute(const isa::Free& free) {
  return Change(free.space, free.buffer, /*alloc=*/false);
}

bool Stream::Execute(const isa::Start& start) {
  TellCause();
  const int32_t token = in().Token(start.token);
  if (fork_join->Fork(start.stream, *start.body, token, in())) return true;
  return Fail(absl::InternalError(
      fmt::format("{}: token {} is started again before its Done", name(), token)));
}

bool Stream::Execute(const isa::Done& done) {
  const int32_t token = in().Token(done.token);
  switch (fork_join->Join(token, this)) {
    case ForkJoinInterface::Joined::kYes:
      return true;
    case ForkJoinInterface::Joined::kWait:
      return Sleep(Blocked::kToken, token);
    case ForkJoinInterface::Joined::kNeverStarted:
      break;
  }
  return Fail(absl::InternalError(
      fmt::format("{}: Done of token {}, which was not started", name(), token)));
}

}  // namespace tpusim::chip
