#include "models/chip/tensor_core.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "configs/status_macros.h"
#include "models/events/sim_time.h"
#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_timing.h"

namespace tpusim::chip {
namespace {

// Entries of a log that are kept; a longer iteration is not compared.
constexpr size_t kLongestLog = 1 << 14;
// Iterations that must fit before somebody else on HBM is known to end.
constexpr int64_t kWorthwhile = 3;

// By how much the rate of others may differ between a repetition and what it
// repeats.
constexpr double kNoticeable = 1e-3;

constexpr Picoseconds kForever(int64_t{1} << 62);

}  // namespace

TensorCore::TensorCore(sc_core::sc_module_name name, const configs::ChipParams& params,
                       bool every_step, events::Probe& probe)
    : sc_module(name), params_(params), every_step_(every_step), probe_(probe) {
  SC_HAS_PROCESS(TensorCore);
  SC_METHOD(TimerFired);
  sensitive << timer_;
  dont_initialize();
}

void TensorCore::SetTimer(Picoseconds after) {
  fires_at_ = events::Now() + after;
  timer_.notify(events::ScTime(after));
}

bool TensorCore::Timed() const {
  return phase_ == Phase::kBlock || phase_ == Phase::kLaunch || phase_ == Phase::kStep ||
         phase_ == Phase::kRepeat;
}

void TensorCore::Visit(steady::StateVisitor& visitor) {
  visitor.Same(static_cast<int64_t>(phase_));
  if (phase_ == Phase::kIdle) return;
  visitor.Same(listener_);
  visitor.Same(op_);
  if (phase_ != Phase::kBlock) VisitKernel(visitor);
  if (!Timed() || !visitor.Pending(fires_at_)) return;
  timer_.cancel();
  timer_.notify(events::ScTime(fires_at_ - events::Now()));
}

void TensorCore::VisitKernel(steady::StateVisitor& visitor) {
  visitor.Same(kernel_);
  visitor.Same(pipeline_.step());
  pipeline_.Visit(visitor);
  const bool moved = visitor.Began(kernel_began_);
  if (phase_ != Phase::kRepeat) {
    // What is remembered of iterations serves to find a repetition, no more.
    if (visitor.moves()) ForgetIterations();
    return;
  }
  visitor.Same(repeat_.iteration.period);
  visitor.Same(repeat_.iteration.steps);
  visitor.Same(repeat_.times);
  visitor.Began(repeat_.began);
  visitor.Same(static_cast<int64_t>(repeat_.channel.queue.size()));
  for (const Outstanding& outstanding : repeat_.channel.queue) {
    outstanding.transfer.Visit(visitor);
    visitor.Same(outstanding.wait);
  }
  if (!moved) return;
  log_.Shift(visitor.by());
  repeat_.iteration.origin += visitor.by();
  for (std::array<Boundary, kRemembered>& remembered : boundaries_) {
    for (Boundary& boundary : remembered) boundary.at += visitor.by();
  }
}

void TensorCore::Measure(const isa::Block& block, Picoseconds total) {
  const timing::BlockCycles cycles = timing::TimeBlock(params_, block);
  block_total_ = total;
  block_mxu_ = std::min(total, ToTime(cycles.mxu, params_.clock));
  block_vpu_ = std::min(total, ToTime(cycles.vpu, params_.clock));
  block_xlu_ = std::min(total, timing::XluTime(params_, block.xlu));
}

Picoseconds TensorCore::Begin(int64_t step, double fraction, Picoseconds at) {
  const Picoseconds total = timing::Scaled(block_total_, fraction);
  const auto busy = [&](Picoseconds full) {
    return std::min(total, timing::Scaled(full, fraction));
  };
  const Picoseconds mxu_time = busy(block_mxu_), vpu_time = busy(block_vpu_);
  const Picoseconds xlu_time = busy(block_xlu_);
  mxu->Occupy(at, mxu_time);
  vpu->Occupy(at, vpu_time);
  xlu->Occupy(at, xlu_time);
  compute_ = std::max(mxu_time, vpu_time);
  work_ = work_ + Work{mxu_time, vpu_time, xlu_time, compute_, {}};
  probe_.BlockBegan(op_, step, at, mxu_time, vpu_time);
  return total;
}

void TensorCore::Run(const isa::Block& block, int32_t op, WorkListener* listener) {
  TPUSIM_CHECK(idle(), "a block was given to a TensorCore that is busy");
  listener_ = listener;
  op_ = op;
  Measure(block, ToTime(timing::TimeBlock(params_, block).total, params_.clock));
  phase_ = Phase::kBlock;
  SetTimer(Begin(-1, 1, events::Now()));
}

absl::Status TensorCore::Run(const isa::Kernel& kernel, int32_t op, int32_t channel,
                             WorkListener* listener) {
  TPUSIM_CHECK(idle(), "a kernel was given to a TensorCore that is busy");
  windows_ = timing::WindowBytes(kernel);
  RETURN_IF_ERROR(vmem->Alloc("a kernel's windows", windows_));
  listener_ = listener;
  op_ = op;
  channel_ = channel;
  kernel_ = &kernel;
  kernel_began_ = events::Now();
  Measure(kernel.block, timing::StepTime(params_, kernel.block));
  pipeline_.Reset(kernel);
  work_ = Work();
  unsteady_.reset();
  logging_ = false;
  for (size_t d = kernel.grid.size(); d-- > 0;) {
    if (every_step_ || timing::RepeatableIterations(kernel.grid[d].count, 1) == 0) continue;
    logging_ = true;
    outermost_ = d;
  }
  if (logging_) {
    if (boundaries_.size() < kernel.grid.size()) boundaries_.resize(kernel.grid.size());
    ForgetIterations();
  }
  phase_ = Phase::kLaunch;
  SetTimer(timing::LaunchTime(params_, kernel));
  return absl::OkStatus();
}

Transfer TensorCore::TransferOf(const KernelPipeline::Move& move) {
  Transfer transfer;
  transfer.bytes = move.moved.Total();
  transfer.accessed = move.moved;
  transfer.write = move.write;
  transfer.listener = this;
  transfer.follows = move.number > 1;
  transfer.tag = move.number;
  transfer.op = op_;
  transfer.step = move.step;
  return transfer;
}

void TensorCore::IssueMoves() {
  for (const KernelPipeline::Move& move : pipeline_.moves()) {
    dma->Issue(channel_, TransferOf(move));
  }
}

void TensorCore::TimerFired() {
  switch (phase_) {
    case Phase::kBlock:
      phase_ = Phase::kIdle;
      listener_->WorkEnded();
      return;
    case Phase::kLaunch:
      pipeline_.Launch();
      IssueMoves();
      phase_ = Phase::kWaitData;
      TryStep();
      return;
    case Phase::kStep:
      EndStep();
      return;
    case Phase::kRepeat:
      EndRepeat();
      return;
    default:
      TPUSIM_CHECK(false, "a TensorCore's timer fired while nothing ran");
  }
}

void TensorCore::TryStep() {
  if (!pipeline_.Ready()) return;
  phase_ = Phase::kStep;
  SetTimer(Begin(pipeline_.step(), pipeline_.Fraction(), events::Now()));
  if (logging_) log_.Add(StepLog::Kind::kBlockBegan, events::Now(), compute_);
}

void TensorCore::EndStep() {
  if (logging_) log_.Add(StepLog::Kind::kStepEnded, events::Now());
  const bool more = pipeline_.EndStep();
  IssueMoves();
  if (!more) {
    phase_ = Phase::kDrain;
    TryEnd();
    return;
  }
  if (logging_ && BeginRepeat()) return;
  pipeline_.NextStep();
  phase_ = Phase::kWaitData;
  TryStep();
}

void TensorCore::TryEnd() {
  if (!pipeline_.Drained()) return;
  phase_ = Phase::kIdle;
  const absl::Status freed = vmem->Free("a kernel's windows", windows_);
  TPUSIM_CHECK(freed.ok(), Message(freed));
  listener_->WorkEnded();
}

void TensorCore::TransferEnded(uint64_t number) {
  if (logging_) log_.Add(StepLog::Kind::kTransferEnded, events::Now());
  pipeline_.EndTransfer(number);
  if (phase_ == Phase::kWaitData) TryStep();
  if (phase_ == Phase::kDrain) TryEnd();
}

void TensorCore::ForgetIterations() {
  for (std::array<Boundary, kRemembered>& remembered : boundaries_) {
    for (Boundary& boundary : remembered) boundary.step = -1;
  }
  log_.DropBefore(log_.size());
}

TensorCore::Boundary& TensorCore::Observe(int64_t step) {
  observed_.step = step;
  observed_.at = events::Now();
  observed_.log = log_.size();
  observed_.work = work_;
  observed_.work.moved = dma->Ended(channel_);
  observed_.others = dma->OtherPopulation(channel_);
  observed_.others_rate = dma->OtherRates(channel_);
  observed_.carried = dma->Carried();
  auto reader = steady::StateVisitor::Read(events::Now(), std::move(observed_.state));
  pipeline_.Visit(reader);
  dma->VisitAlone(channel_, reader);
  observed_.state = reader.TakeSnapshot();
  return observed_;
}

bool TensorCore::BeginRepeat() {
  if (log_.kept() > kLongestLog) ForgetIterations();
  const int64_t step = pipeline_.step() + 1;
  int64_t inner = 1;  // steps of one iteration
  for (size_t d = kernel_->grid.size(); d-- > 0; inner *= kernel_->grid[d].count) {
    if (step % inner != 0) break;
    const int64_t count = kernel_->grid[d].count;
    const int64_t index = step / inner % count;
    const int64_t times = timing::RepeatableIterations(count, index);
    if (times == 0) continue;
    Boundary& now = Observe(step);
    std::array<Boundary, kRemembered>& remembered = boundaries_[d];
    for (int64_t back = 1; back <= kRemembered && back < index && back <= times; ++back) {
      const Boundary& before = remembered[back - 1];
      if (before.step != step - inner * back) break;
      if (steady::PeriodsAhead(before.state, now.state) == steady::kUnlimited &&
          BeginRepeat(before, now, times / back)) {
        return true;
      }
    }
    std::rotate(remembered.begin(), remembered.end() - 1, remembered.end());
    std::swap(remembered.front(), now);
    // What is older than any iteration that is still compared.
    if (d == outermost_ && remembered.back().step >= 0) log_.DropBefore(remembered.back().log);
  }
  return false;
}

bool TensorCore::BeginRepeat(const Boundary& before, const Boundary& now, int64_t times) {
  StepLog::Iteration iteration;
  iteration.begin = before.log;
  iteration.end = now.log;
  iteration.origin = before.at;
  iteration.period = now.at - before.at;
  iteration.steps = now.step - before.step;
  iteration.work = now.work - before.work;
  const bool moves = !iteration.work.moved.empty();
  if (iteration.period <= Picoseconds(0) || iteration.steps * times < 2 ||
      !dma->CanSuspend(channel_))
    return false;
  if (moves) {
    if (before.others != now.others || unsteady_ == now.others ||
        std::abs(before.others_rate - now.others_rate) > 1e-9 * now.others_rate ||
        dma->NextOtherCompletion(channel_) - now.at < iteration.period * kWorthwhile) {
      return false;
    }
  }
  repeat_.iteration = iteration;
  repeat_.times = times;
  repeat_.began = now.at;
  repeat_.others = now.others;
  repeat_.others_rate =
      std::max(0.0, now.carried - before.carried -
                        static_cast<double>(iteration.work.moved.Total().value())) /
      ToSeconds(iteration.period);
  repeat_.channel = dma->Suspend(channel_);
  if (moves) {
    // More than it will move: it is stopped.
    dma->BeginBulk(channel_, iteration.work.moved, iteration.period, times + 1);
    dma->Watch(this);
  }
  phase_ = Phase::kRepeat;
  SetTimer(iteration.period * times);
  probe_.RepeatBegan(*this);
  return true;
}

void TensorCore::ConditionsChanged() {
  if (phase_ != Phase::kRepeat) return;
  // Times are whole picoseconds: with up to three transfers per step, each rounded,
  // the rate asked for may be a little more than HBM has.
  const double rounding = 3 * static_cast<double>(repeat_.iteration.steps) /
                          static_cast<double>(repeat_.iteration.period.value());
  // What changed when the flow of this core did is no other condition, if they get
  // what they had.
  if (events::Now() == repeat_.began && dma->OtherPopulation(channel_) == repeat_.others &&
      !dma->BulkIsSlowed(channel_, rounding)) {
    const double rate = dma->OtherRates(channel_);
    const double own = static_cast<double>(repeat_.iteration.work.moved.Total().value()) /
                       ToSeconds(repeat_.iteration.period);
    const double noticeable = kNoticeable * std::max(rate, kNoticeable * own);
    if (std::abs(rate - repeat_.others_rate) <= noticeable) return;
    unsteady_ = repeat_.others;
  }
  EndRepeat();
}

Picoseconds TensorCore::ComputeSoFar() const {
  return log_.ComputeUntil(repeat_.iteration, repeat_.began, events::Now());
}

struct TensorCore::Channel {
  struct Item {
    Transfer transfer;
    double bytes = 0;   // from `since` on
    Picoseconds ready;  // when its start latency has passed
  };
  std::deque<Item> queue;
  bool began_before = false;  // the first moves since before `since`
  Picoseconds began_at;       // if so
  Picoseconds since;
  Picoseconds last_end;
  Picoseconds free;
  timing::MemoryShares moved;

  void Moved(const timing::MemoryBytes& accessed) {
    moved.hbm += static_cast<double>(accessed.hbm.value());
    moved.cmem += static_cast<double>(accessed.cmem.value());
  }
  void Moved(const Transfer& transfer, double bytes) {
    moved.hbm += bytes * timing::ShareOf(transfer.accessed.hbm, transfer.bytes);
    moved.cmem += bytes * timing::ShareOf(transfer.accessed.cmem, transfer.bytes);
  }
  void Shift(Picoseconds by) {
    for (Item& item : queue) item.ready += by;
    began_at += by;
    since += by;
    last_end += by;
    free += by;
  }
  // When the first one's data begins, and from when on its bytes count.
  Picoseconds Begin() const {
    if (began_before) return began_at;
    const Item& first = queue.front();
    const bool turns = first.transfer.follows && !first.transfer.write;
    return std::max(std::max(first.ready, last_end), turns ? free : last_end);
  }
  Picoseconds Counted() const { return began_before ? since : Begin(); }
};

void TensorCore::EndRepeat() {
  using Kind = StepLog::Kind;
  timer_.cancel();
  const Picoseconds now = events::Now();
  const StepLog::Iteration& iteration = repeat_.iteration;
  const bool moves = !iteration.work.moved.empty();
  if (moves) dma->Watch(nullptr);
  const int64_t whole = (now - repeat_.began).value() / iteration.period.value();
  const bool everything = probe_.WantsEverything();

  // Whole iterations at once.
  const auto pass = [&](const Work& work, Picoseconds from, Picoseconds until) {
    mxu->Occupy(from, work.mxu);
    vpu->Occupy(from, work.vpu);
    xlu->Occupy(from, work.xlu);
    work_ = work_ + work;
    dma->AddEnded(channel_, work.moved);
    probe_.RepeatEnded(op_, until, work.mxu, work.vpu, work.compute, work.moved.hbm);
  };
  const int64_t passed = everything ? 0 : whole;
  const Picoseconds from = repeat_.began + iteration.period * passed;
  pass(iteration.work * passed, repeat_.began, from);
  if (passed > 0) pipeline_.Skip(iteration.steps * passed);
  Channel channel;
  channel.Moved(iteration.work.moved * passed);
  for (const Outstanding& o : repeat_.channel.queue) {
    channel.queue.push_back({o.transfer, o.bytes, from + o.wait});
    channel.queue.back().transfer.step += iteration.steps * passed;
  }
  channel.since = channel.last_end = from;
  channel.free = from + repeat_.channel.free;
  if (repeat_.channel.moved_for) {
    channel.began_before = true;
    channel.began_at = from - *repeat_.channel.moved_for;
  }

  // The rest event by event.
  StepLog::Cursor cursor(log_, iteration, from);
  bool between_steps = true;
  std::optional<Picoseconds> computes_until;
  while (const std::optional<StepLog::Event> event = cursor.Next(now, everything)) {
    const Picoseconds at = event->at;
    if (event->kind == Kind::kRepeated) {
      pass(event->work, at - event->duration, at);
      pipeline_.Skip(event->steps);
      for (Channel::Item& item : channel.queue) item.transfer.step += event->steps;
      channel.Moved(event->work.moved);
      channel.Shift(event->duration);
      continue;
    }
    if (std::exchange(between_steps, false)) pipeline_.NextStep();
    if (event->kind == Kind::kBlockBegan) {
      computes_until = at + Begin(pipeline_.step(), pipeline_.Fraction(), at);
    } else if (event->kind == Kind::kStepEnded) {
      pipeline_.EndStep();
      computes_until.reset();
      between_steps = true;
      for (const KernelPipeline::Move& move : pipeline_.moves()) {
        channel.queue.push_back({TransferOf(move), static_cast<double>(move.moved.Total().value()),
                                 at + dma->StartLatency(move.write)});
      }
    } else {
      const Channel::Item& done = channel.queue.front();
      const Bytes bytes = done.transfer.bytes;
      dma->AddEnded(channel_, done.transfer.accessed);
      probe_.TransferEnded(channel_, op_, done.transfer.step, channel.Begin(), at, bytes,
                           done.transfer.accessed.hbm);
      pipeline_.EndTransfer(done.transfer.tag);
      channel.Moved(done.transfer, done.bytes);
      channel.began_before = false;
      channel.last_end = at;
      channel.free = at + dma->turnaround();
      channel.queue.pop_front();
    }
  }

  // Where the channel stands now.
  ChannelState state;
  if (!channel.queue.empty() && channel.Begin() < now) {
    StepLog::Cursor ahead = cursor;
    std::optional<StepLog::Event> end;
    do {
      end = ahead.Next(kForever, /*everything=*/true);
    } while (end->kind != Kind::kTransferEnded);
    double& bytes = channel.queue.front().bytes;
    const double left = bytes * ToSeconds(end->at - now) / ToSeconds(end->at - channel.Counted());
    channel.Moved(channel.queue.front().transfer, bytes - left);
    bytes = left;
    state.moved_for = now - channel.Begin();
  }
  for (const Channel::Item& item : channel.queue) {
    state.queue.push_back({item.transfer, item.bytes, std::max(Picoseconds(0), item.ready - now)});
  }
  state.free = std::max(Picoseconds(0), channel.free - now);
  if (moves) dma->EndBulk(channel_, channel.moved);
  dma->Resume(channel_, state);

  if (whole == repeat_.times) {
    log_.AddRepeated(repeat_.began, iteration, repeat_.times);
  } else {
    ForgetIterations();
  }
  if (computes_until) {
    phase_ = Phase::kStep;
    log_.Add(Kind::kBlockBegan, now, compute_);
    SetTimer(*computes_until - now);
    return;
  }
  if (between_steps) pipeline_.NextStep();
  phase_ = Phase::kWaitData;
  TryStep();
}

}  // namespace tpusim::chip
