// Steps of a kernel that repeat: when they do, and where the core stands when they end.
#include <algorithm>
#include <cmath>
#include <utility>

#include "models/chip/tensor_core.h"
#include "models/events/sim_time.h"
#include "models/timing/kernel_steps.h"

namespace tpusim::chip {
namespace {

// Entries of a log that are kept; a longer iteration is not compared.
constexpr size_t kLongestLog = 1 << 14;
// Iterations that must fit before another flow on HBM is known to end.
constexpr int64_t kWorthwhile = 3;

// The largest relative difference between the rates of others in a repetition and in what it
// repeats.
constexpr double kNoticeable = 1e-3;

constexpr Picoseconds kForever(int64_t{1} << 62);

}  // namespace

void TensorCore::Resumption::AddMoved(const timing::MemoryBytes& accessed) {
  for (size_t i = 0; i < moved.of.size(); ++i) {
    moved.of[i] += static_cast<double>(accessed.of[i].value());
  }
}

void TensorCore::Resumption::AddMoved(const timing::Transfer& transfer, double bytes) {
  for (size_t i = 0; i < moved.of.size(); ++i) {
    moved.of[i] += bytes * timing::ShareOf(transfer.accessed.of[i], transfer.bytes);
  }
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
  if (kernel_->polls && !told_.empty()) return false;
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
  StepLog::LoggedIteration iteration;
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
  const double others_rate =
      std::max(0.0, now.carried - before.carried -
                        static_cast<double>(iteration.work.moved.Total().value())) /
      ToSeconds(iteration.period);
  repeat_ = Repeat{iteration, times, now.at, now.others, others_rate, dma->Suspend(channel_)};
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
  const double rounding = 3 * static_cast<double>(repeat_->iteration.steps) /
                          static_cast<double>(repeat_->iteration.period.value());
  // What changed when the flow of this core did is no other condition, if they get what they had.
  if (events::Now() == repeat_->began && dma->OtherPopulation(channel_) == repeat_->others &&
      !dma->BulkIsSlowed(channel_, rounding)) {
    const double rate = dma->OtherRates(channel_);
    const double own = static_cast<double>(repeat_->iteration.work.moved.Total().value()) /
                       ToSeconds(repeat_->iteration.period);
    const double noticeable = kNoticeable * std::max(rate, kNoticeable * own);
    if (std::abs(rate - repeat_->others_rate) <= noticeable) return;
    unsteady_ = repeat_->others;
  }
  EndRepeat();
}

Picoseconds TensorCore::ComputeSoFar() const {
  return log_.ComputeUntil(repeat_->iteration, repeat_->began, events::Now());
}

void TensorCore::PassOver(const StepWork& work, Picoseconds from, Picoseconds until) {
  mxu->Occupy(from, work.mxu);
  vpu->Occupy(from, work.vpu);
  xlu->Occupy(from, work.xlu);
  work_ = work_ + work;
  dma->AddEnded(channel_, work.moved);
  probe_.RepeatEnded(op_, until, work.mxu, work.vpu, work.compute, work.moved.hbm());
}

void TensorCore::Replay(const StepLog::Event& event, Resumption& at) {
  using Kind = StepLog::EventKind;
  if (event.kind == Kind::kRepeated) {
    PassOver(event.work, event.at - event.duration, event.at);
    pipeline_.Skip(event.steps);
    at.AddMoved(event.work.moved);
    at.channel.Shift(event.duration, event.steps);
    return;
  }
  if (std::exchange(at.between_steps, false)) pipeline_.NextStep();
  if (event.kind == Kind::kBlockBegan) {
    at.computes_until = event.at + Begin(pipeline_.step(), pipeline_.Fraction(), event.at);
  } else if (event.kind == Kind::kStepEnded) {
    pipeline_.EndStep();
    at.computes_until.reset();
    at.between_steps = true;
    for (const timing::Transfer& transfer : pipeline_.issued()) {
      at.channel.Issue(event.at, Complete(transfer));
    }
  } else {
    if (!at.channel.moving()) at.channel.Begin(at.channel.NextBegin());
    const double bytes = at.channel.first().bytes;
    const DmaTransfer done = at.channel.End(event.at);
    dma->AddEnded(channel_, done.accessed);
    probe_.TransferEnded(channel_, op_, done.step, at.channel.began(), event.at, done.bytes,
                         done.accessed.hbm());
    pipeline_.EndTransfer(done.number);
    at.AddMoved(done, bytes);
  }
}

void TensorCore::AdvanceTransfer(StepLog::Cursor ahead, Picoseconds now, Resumption& at) {
  Channel& channel = at.channel;
  if (!channel.empty() && !channel.moving() && channel.NextBegin() < now) {
    channel.Begin(channel.NextBegin());
  }
  if (!channel.moving() || channel.began() >= now) return;
  std::optional<StepLog::Event> end;
  do {
    end = ahead.Next(kForever, /*everything=*/true);
  } while (end->kind != StepLog::EventKind::kTransferEnded);
  const double bytes = channel.first().bytes;
  const double left = bytes * ToSeconds(end->at - now) / ToSeconds(end->at - channel.counted());
  at.AddMoved(channel.first().transfer, bytes - left);
  channel.Count(now, left);
}

void TensorCore::EndRepeat() {
  timer_.cancel();
  const Picoseconds now = events::Now();
  const StepLog::LoggedIteration& iteration = repeat_->iteration;
  const bool moves = !iteration.work.moved.empty();
  if (moves) dma->Watch(nullptr);
  const int64_t whole = (now - repeat_->began).value() / iteration.period.value();
  const bool everything = probe_.WantsEverything();

  // Whole iterations at once, the rest of the last one event by event.
  const int64_t passed = everything ? 0 : whole;
  const Picoseconds from = repeat_->began + iteration.period * passed;
  PassOver(iteration.work * passed, repeat_->began, from);
  if (passed > 0) pipeline_.Skip(iteration.steps * passed);
  Resumption at{.channel = repeat_->channel.Take(), .computes_until = {}};
  at.AddMoved(iteration.work.moved * passed);
  at.channel.Shift(from - repeat_->began, iteration.steps * passed);
  StepLog::Cursor cursor(log_, iteration, from);
  while (const std::optional<StepLog::Event> event = cursor.Next(now, everything)) {
    Replay(*event, at);
  }
  AdvanceTransfer(cursor, now, at);
  if (moves) dma->EndBulk(channel_, at.moved);
  dma->Resume(channel_, at.channel);

  if (whole == repeat_->times) {
    log_.AddRepeated(repeat_->began, iteration, repeat_->times);
  } else {
    ForgetIterations();
  }
  if (at.computes_until) {
    phase_ = Phase::kStep;
    log_.Add(StepLog::EventKind::kBlockBegan, now, compute_);
    SetTimer(*at.computes_until - now);
    return;
  }
  if (at.between_steps) pipeline_.NextStep();
  phase_ = Phase::kWaitData;
  TryStep();
}

}  // namespace tpusim::chip
