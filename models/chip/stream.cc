#include "models/chip/stream.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "configs/status_macros.h"
#include "models/events/sim_time.h"
#include "models/timing/kernel_timing.h"
#include "models/timing/memory_bytes.h"

namespace tpusim::chip {
namespace {

// Shorter loops have ended before a steady state pays.
constexpr int64_t kFewestPasses = 4;

}  // namespace

bool Tokens::Begin(int32_t token) {
  Entry& entry = states_[token];
  if (entry.state != State::kFree) return false;
  entry.state = State::kRunning;
  ++taken_;
  return true;
}

void Tokens::Finish(int32_t token) {
  Entry& entry = states_[token];
  entry.state = State::kFinished;
  if (entry.waiter == nullptr) return;
  entry.state = State::kFree;
  --taken_;
  std::exchange(entry.waiter, nullptr)->Wake();
}

Tokens::Joined Tokens::Join(int32_t token, Stream* waiter) {
  Entry& entry = states_[token];
  switch (entry.state) {
    case State::kFinished:
      entry.state = State::kFree;
      --taken_;
      return Joined::kYes;
    case State::kRunning:
      TPUSIM_CHECK(entry.waiter == nullptr, "two streams wait for one token");
      entry.waiter = waiter;
      return Joined::kWait;
    case State::kFree:
      break;
  }
  return Joined::kNeverStarted;
}

void Tokens::Visit(steady::StateVisitor& visitor) {
  int64_t left = taken_;
  for (size_t token = 0; left > 0; ++token) {
    const Entry& entry = states_[token];
    if (entry.state == State::kFree) continue;
    --left;
    visitor.Same(static_cast<int64_t>(token));
    visitor.Same(static_cast<int64_t>(entry.state));
    visitor.Same(entry.waiter);
  }
}

Stream::Stream(sc_core::sc_module_name name, const DeviceParts& parts, const events::StreamRef& ref)
    : sc_module(name), parts_(parts), ref_(ref), channel_(parts.dma.OpenChannel()) {
  SC_HAS_PROCESS(Stream);
  SC_METHOD(Run);
  sensitive << wake_;
  dont_initialize();
}

void Stream::Enqueue(const isa::Body& body, int32_t token) {
  queue_.push_back({&body, token});
  if (!active_) wake_.notify(sc_core::SC_ZERO_TIME);
}

void Stream::Wake() { wake_.notify(sc_core::SC_ZERO_TIME); }

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
  parts_.faults.Report(std::move(status));
  return Sleep(Blocked::kWork);
}

void Stream::Enter(const isa::Body& body, int64_t times, bool told) {
  if (times > 0 && !body.empty()) frames_.push_back({&body, 0, times - 1, told, events::Now()});
}

void Stream::WakeAfter(Picoseconds delay) {
  timed_ = true;
  wakes_at_ = events::Now() + delay;
  wake_.notify(events::ScTime(delay));
}

void Stream::Visit(steady::StateVisitor& visitor) {
  if (ref_.ordinal == 0) {
    parts_.flags.Visit(visitor);
    parts_.tokens.Visit(visitor);
  }
  visitor.Same(static_cast<int64_t>(queue_.size()));
  for (const Queued& queued : queue_) {
    visitor.Same(queued.body);
    visitor.Same(queued.token);
  }
  visitor.Same(static_cast<int64_t>(frames_.size()));
  for (Frame& frame : frames_) {
    visitor.Same(frame.body);
    visitor.Same(static_cast<int64_t>(frame.next));
    visitor.Began(frame.entered);
    int64_t passes = frame.repeats + 1;  // with the running one
    visitor.Left(passes);
    frame.repeats = passes - 1;
  }
  visitor.Same(static_cast<int64_t>(labels_.size()));
  for (const int32_t label : labels_) visitor.Same(label);
  visitor.Same(token_);
  visitor.Same(active_);
  visitor.Same(static_cast<int64_t>(blocked_));
  visitor.Same(blocked_on_);
  visitor.Same(blocked_count_);
  visitor.Same(timed_);
  if (!timed_ || !visitor.Pending(wakes_at_)) return;
  wake_.cancel();
  wake_.notify(events::ScTime(wakes_at_ - events::Now()));
}

void Stream::Run() {
  blocked_ = Blocked::kNo;
  timed_ = false;
  for (;;) {
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      if (frame.next == frame.body->size()) {
        if (frame.repeats == 0) {
          if (frame.told) parts_.loops->LoopEnds(*this, *frame.body);
          frames_.pop_back();
        } else {
          --frame.repeats;
          frame.next = 0;
        }
        continue;
      }
      if (frame.told && frame.next == 0) parts_.loops->PassBegins(*this, *frame.body);
      const isa::Instruction& instruction = (*frame.body)[frame.next++];
      if (const auto* call = std::get_if<isa::Call>(&instruction.kind)) {
        Enter(*call->body, 1);
        continue;
      }
      ++retired_;
      if (!parts_.faults.Count()) {
        Sleep(Blocked::kWork);
        return;
      }
      if (!std::visit([this](const auto& kind) { return Execute(kind); }, instruction.kind)) {
        return;
      }
    }
    if (active_) {
      active_ = false;
      if (token_ >= 0) parts_.tokens.Finish(token_);
      parts_.probe.StreamFinished();
    }
    if (queue_.empty()) return;
    const Queued next = queue_.front();
    queue_.pop_front();
    token_ = next.token;
    active_ = true;
    Enter(*next.body, 1);
  }
}

bool Stream::Execute(const isa::Block& block) {
  if (ref_.id.kind == isa::StreamKind::kTensorCore) {
    parts_.tensor_core.Run(block, op(), this);
  } else {
    // Control work beside the TensorCore: it takes time and no slot.
    const Cycles cycles = timing::TimeBlock(parts_.params, block).total;
    WakeAfter(ToTime(cycles, parts_.params.clock));
  }
  return Sleep(Blocked::kWork);
}

bool Stream::Execute(const isa::Kernel& kernel) {
  const absl::Status status = parts_.tensor_core.Run(kernel, op(), channel_, this);
  if (!status.ok()) {
    const int32_t label = op();
    return Fail(absl::Status(
        status.code(),
        fmt::format("{}{}", label < 0 ? "" : parts_.program.info.ops[label].name + ": ",
                    Message(status))));
  }
  return Sleep(Blocked::kWork);
}

bool Stream::Execute(const isa::Dma& dma) {
  Transfer transfer;
  transfer.write = timing::IsWrite(dma);
  transfer.bytes = dma.bytes;
  transfer.touched = timing::TouchedBy(dma);
  transfer.listener = this;
  transfer.op = op();
  parts_.dma.Issue(channel_, transfer);
  return Sleep(Blocked::kWork);
}

bool Stream::Execute(const isa::HostDma& dma) {
  parts_.host_link.Issue(parts_.hbm, parts_.copies, dma, op(), parts_.probe, this, 0);
  return Sleep(Blocked::kWork);
}

bool Stream::Execute(const isa::Rdma& rdma) {
  parts_.network.Send(parts_.device, rdma, parts_.program.routes[rdma.route].from[parts_.device],
                      ref_, op());
  return true;
}

bool Stream::Execute(const isa::Signal& signal) {
  parts_.network.Signal(parts_.device, signal,
                        parts_.program.routes[signal.route].from[parts_.device]);
  return true;
}

bool Stream::Execute(const isa::Wait& wait) {
  if (parts_.flags.Take(wait.flag, wait.count, this)) return true;
  return Sleep(Blocked::kFlag, wait.flag, wait.count);
}

bool Stream::Execute(const isa::Loop& loop) {
  Enter(*loop.body, loop.count, parts_.loops != nullptr && loop.count >= kFewestPasses);
  return true;
}

bool Stream::Execute(const isa::Call&) {
  TPUSIM_CHECK(false, "a call is no instruction of its own");
}

bool Stream::Execute(const isa::Branch& branch) {
  Enter(*branch.bodies[branch.taken], 1);
  return true;
}

bool Stream::Execute(const isa::Label& label) {
  if (label.begin) {
    labels_.push_back(label.op);
    parts_.probe.LabelBegan(ref_, label.op);
  } else {
    parts_.probe.LabelEnded(ref_, label.op);
    labels_.pop_back();
  }
  return true;
}

absl::Status Stream::Change(isa::MemorySpace space, int32_t buffer, bool alloc) {
  const isa::BufferInfo& info = parts_.program.info.buffers[buffer];
  const auto change = [&](auto& memory) {
    return alloc ? memory.Alloc(info.name, info.bytes) : memory.Free(info.name, info.bytes);
  };
  switch (space) {
    case isa::MemorySpace::kHbm:
      RETURN_IF_ERROR(change(parts_.hbm));
      parts_.probe.LiveHbmChanged(parts_.hbm.live());
      break;
    case isa::MemorySpace::kCmem:
      RETURN_IF_ERROR(change(parts_.cmem));
      parts_.probe.LiveCmemChanged(parts_.cmem.live());
      break;
    default:
      return change(parts_.vmem);
  }
  return absl::OkStatus();
}

bool Stream::Execute(const isa::Alloc& alloc) {
  absl::Status status = Change(alloc.space, alloc.buffer, /*alloc=*/true);
  return status.ok() || Fail(std::move(status));
}

bool Stream::Execute(const isa::Free& free) {
  absl::Status status = Change(free.space, free.buffer, /*alloc=*/false);
  return status.ok() || Fail(std::move(status));
}

bool Stream::Execute(const isa::Start& start) {
  if (!parts_.tokens.Begin(start.token)) {
    return Fail(absl::InternalError(
        fmt::format("{}: token {} is started again before its Done", name(), start.token)));
  }
  for (Stream* stream : parts_.streams) {
    if (stream->ref().id == start.stream) {
      stream->Enqueue(*start.body, start.token);
      return true;
    }
  }
  TPUSIM_CHECK(false, "a body was started on a stream that does not exist");
}

bool Stream::Execute(const isa::Done& done) {
  switch (parts_.tokens.Join(done.token, this)) {
    case Tokens::Joined::kYes:
      return true;
    case Tokens::Joined::kWait:
      return Sleep(Blocked::kToken, done.token);
    case Tokens::Joined::kNeverStarted:
      break;
  }
  return Fail(absl::InternalError(
      fmt::format("{}: Done of token {}, which was not started", name(), done.token)));
}

}  // namespace tpusim::chip
