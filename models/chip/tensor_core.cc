#include "models/chip/tensor_core.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/events/sim_time.h"
#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_timing.h"

namespace tpusim::chip {
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
  visitor.Same(static_cast<int64_t>(told_.size()));
  for (StepListener*& listener : told_) visitor.Same(listener);
  visitor.Same(static_cast<int64_t>(phase_));
  if (phase_ == Phase::kIdle) return;
  visitor.Same(listener_);
  visitor.Named(isa::NameKind::kOp, op_);
  if (phase_ != Phase::kBlock) VisitKernel(visitor);
  if (!Timed() || !visitor.Pending(fires_at_)) return;
  timer_.cancel();
  timer_.notify(events::ScTime(fires_at_ - events::Now()));
}

void TensorCore::VisitKernel(steady::StateVisitor& visitor) {
  visitor.Same(kernel_);
  visitor.Same(pipeline_.step());
  pipeline_.Visit(visitor);
  for (Bytes& moved : moved_before_.of) visitor.Counter(moved);
  const bool moved = visitor.Began(kernel_began_);
  if (phase_ != Phase::kRepeat) {
    // What is remembered of iterations serves to find a repetition, no more.
    if (visitor.moves()) ForgetIterations();
    return;
  }
  visitor.Same(repeat_->iteration.period);
  visitor.Same(repeat_->iteration.steps);
  visitor.Same(repeat_->times);
  visitor.Same(static_cast<int64_t>(repeat_->channel.queue().size()));
  for (Channel::Item& item : repeat_->channel.outstanding()) {
    item.transfer.Visit(visitor);
    visitor.Same(std::max(Picoseconds(0), item.ready - repeat_->began));
  }
  if (visitor.Began(repeat_->began)) repeat_->channel.Shift(visitor.by(), /*steps=*/0);
  if (!moved) return;
  log_.Shift(visitor.by());
  repeat_->iteration.origin += visitor.by();
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
  work_ = work_ + StepWork{mxu_time, vpu_time, xlu_time, compute_, {}, total};
  probe_.BlockBegan(op_, step, at, mxu_time, vpu_time);
  return total;
}

void TensorCore::Run(const isa::Block& block, int32_t op, WorkListener* listener) {
  TPUSIM_CHECK(idle(), "a block was given to a TensorCore that is busy");
  listener_ = listener;
  op_ = op;
  Measure(block, ToTime(timing::TimeBlock(params_, block).total, params_.clock));
  phase_ = Phase::kBlock;
  kernel_ = nullptr;
  work_ = StepWork();
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
  work_ = StepWork();
  moved_before_ = dma->Ended(channel);
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

TimeSplit TensorCore::Split(Picoseconds duration) const {
  TimeSplit split;
  // All blocks are alike, so that the slots of one kind are the fuller ones in all of them.
  const Picoseconds vector = std::max(work_.vpu, work_.xlu);
  (work_.mxu >= vector ? split.mxu : split.vpu) = std::max(work_.mxu, vector);
  if (kernel_ != nullptr) {
    const Picoseconds waited =
        duration - std::min(duration, timing::LaunchTime(params_, *kernel_) + work_.steps);
    const timing::MemoryBytes moved = dma->Ended(channel_) + moved_before_ * -1;
    for (const isa::MemorySpace space : configs::kRatedSpaces) {
      const Bytes bytes = moved.In(space);
      if (bytes == Bytes(0)) continue;
      split.hbm = std::max(split.hbm, TransferTime(bytes, configs::MemoryOf(space).rate(params_)));
    }
    split.hbm = std::min(waited, split.hbm);
  }
  split.latency = duration - std::min(duration, split.mxu + split.vpu + split.hbm);
  return split;
}

void TensorCore::TellStep(StepListener* listener) {
  told_.push_back(listener);
  if (phase_ == Phase::kRepeat && kernel_->polls) EndRepeat();
}

void TensorCore::ForgetStep(StepListener* listener) { std::erase(told_, listener); }

DmaTransfer TensorCore::Complete(const timing::Transfer& transfer) {
  DmaTransfer complete{transfer};
  complete.listener = this;
  complete.op = op_;
  return complete;
}

void TensorCore::IssueTransfers() {
  for (const timing::Transfer& transfer : pipeline_.issued()) {
    dma->Issue(channel_, Complete(transfer));
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
      IssueTransfers();
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
  if (kernel_->polls) {
    for (StepListener* listener : std::exchange(told_, {})) listener->StepBegan();
  }
  SetTimer(Begin(pipeline_.step(), pipeline_.Fraction(), events::Now()));
  if (logging_) log_.Add(StepLog::EventKind::kBlockBegan, events::Now(), compute_);
}

void TensorCore::EndStep() {
  if (logging_) log_.Add(StepLog::EventKind::kStepEnded, events::Now());
  const bool more = pipeline_.EndStep();
  IssueTransfers();
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
  if (logging_) log_.Add(StepLog::EventKind::kTransferEnded, events::Now());
  pipeline_.EndTransfer(number);
  if (phase_ == Phase::kWaitData) TryStep();
  if (phase_ == Phase::kDrain) TryEnd();
}

}  // namespace tpusim::chip
