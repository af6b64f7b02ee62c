#include "models/chip/tensor_core.h"

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"
#include "models/chip/sim_time.h"
#include "models/timing/kernel_timing.h"

namespace tpusim::chip {
namespace {

// Kernels of so few steps have none that repeat (timing/kernel_time.cc).
constexpr int64_t kFewSteps = 5;

}  // namespace

TensorCore::TensorCore(sc_core::sc_module_name name, const configs::ChipParams& params,
                       const TensorCoreParts& parts, bool every_step, Probe& probe)
    : sc_module(name), params_(params), parts_(parts), every_step_(every_step), probe_(probe) {
  SC_HAS_PROCESS(TensorCore);
  SC_METHOD(TimerFired);
  sensitive << timer_;
  dont_initialize();
}

void TensorCore::Measure(const isa::Block& block, Picoseconds total) {
  const timing::BlockCycles cycles = timing::TimeBlock(params_, block);
  block_total_ = total;
  block_mxu_ = std::min(total, ToTime(cycles.mxu, params_.clock));
  block_vpu_ = std::min(total, ToTime(cycles.vpu, params_.clock));
  block_xlu_ = std::min(total, parts_.xlu.TimeOf(block.xlu));
}

// So many blocks from now on, in `total`.
void TensorCore::Begin(int64_t step, double blocks, Picoseconds total) {
  // Partial blocks are rounded one by one in `total`, together here.
  const auto busy = [&](Picoseconds block) {
    return std::min(total, timing::Scaled(block, blocks));
  };
  const Picoseconds mxu = busy(block_mxu_), vpu = busy(block_vpu_);
  parts_.mxu.Occupy(mxu);
  parts_.vpu.Occupy(vpu);
  parts_.xlu.Occupy(busy(block_xlu_));
  probe_.BlockBegan(op_, step, mxu, vpu, total);
  timer_.notify(ScTime(total));
}

void TensorCore::Run(const isa::Block& block, int32_t op, WorkListener* listener) {
  TPUSIM_CHECK(idle(), "a block was given to a TensorCore that is busy");
  listener_ = listener;
  op_ = op;
  Measure(block, ToTime(timing::TimeBlock(params_, block).total, params_.clock));
  phase_ = Phase::kBlock;
  Begin(-1, 1, block_total_);
}

absl::Status TensorCore::Run(const isa::Kernel& kernel, int32_t op, int32_t channel,
                             WorkListener* listener) {
  TPUSIM_CHECK(idle(), "a kernel was given to a TensorCore that is busy");
  windows_ = Vmem::WindowsOf(kernel);
  RETURN_IF_ERROR(parts_.vmem.Alloc("a kernel's windows", windows_));
  listener_ = listener;
  op_ = op;
  channel_ = channel;
  kernel_ = &kernel;
  Measure(kernel.block, timing::StepTime(params_, kernel.block));
  steps_.Reset(kernel);
  next_run_ = 0;
  const auto [runs, fresh] = runs_.try_emplace(&kernel);
  if (fresh && !every_step_ && steps_.steps() > kFewSteps) {
    runs->second = timing::SteadyRuns(params_, kernel);
  }
  kernel_runs_ = &runs->second;
  issued_ = ended_ = 0;
  fetch_.fill(0);
  output_count_ = 0;
  for (const isa::Window& window : kernel.windows) {
    if (window.kind != isa::WindowKind::kOutput || window.space == isa::MemorySpace::kVmem) {
      continue;
    }
    if (output_count_ == outputs_.size()) outputs_.emplace_back();
    OutputState& output = outputs_[output_count_++];
    output.moves_with = window.moves_with;
    output.buffers = window.buffers;
    output.block = 0;
    output.write_back.assign(static_cast<size_t>(window.buffers), 0);
  }
  phase_ = Phase::kLaunch;
  timer_.notify(ScTime(timing::LaunchTime(params_, kernel)));
  return absl::OkStatus();
}

void TensorCore::Issue(Bytes bytes, int64_t step, bool write) {
  if (bytes == Bytes(0)) return;
  Transfer transfer;
  transfer.bytes = bytes;
  transfer.listener = this;
  transfer.follows = issued_ > 0;
  transfer.tag = ++issued_;
  transfer.op = op_;
  transfer.step = step;
  if (write) std::swap(transfer.from, transfer.to);
  parts_.dma.Issue(channel_, transfer);
  if (!write) fetch_[step & 3] = issued_;
}

void TensorCore::TimerFired() {
  switch (phase_) {
    case Phase::kBlock:
      phase_ = Phase::kIdle;
      listener_->WorkEnded();
      return;
    case Phase::kLaunch: {
      const timing::StepPlan& first = steps_.At(0);
      const Bytes all = first.fetch_single + first.fetch_double;
      Issue(all, 0, /*write=*/false);
      Issue(steps_.At(1).fetch_double, 1, /*write=*/false);
      Reach(0);
      return;
    }
    case Phase::kStep:
      EndStep();
      return;
    case Phase::kSteady:
      phase_ = Phase::kSteadyData;
      TryEndSteady();
      return;
    default:
      TPUSIM_CHECK(false, "a TensorCore's timer fired while nothing ran");
  }
}

void TensorCore::Reach(int64_t step) {
  step_ = step;
  needed_ = std::exchange(fetch_[step & 3], 0);
  if (step > 0) {
    const uint32_t changed = steps_.At(step).changed;
    for (size_t i = 0; i < output_count_; ++i) {
      OutputState& output = outputs_[i];
      if ((output.moves_with & changed) == 0) continue;
      ++output.block;
      needed_ = std::max(needed_, output.write_back[output.block % output.buffers]);
    }
  }
  phase_ = Phase::kWaitData;
  TryStep();
}

void TensorCore::TryStep() {
  if (ended_ < needed_) return;
  phase_ = Phase::kStep;
  const double fraction = steps_.At(step_).fraction;
  Begin(step_, fraction, timing::Scaled(block_total_, fraction));
}

void TensorCore::EndStep() {
  const bool last = step_ + 1 == steps_.steps();
  const Bytes write = steps_.At(step_).write;
  if (write > Bytes(0)) {
    Issue(write, step_, /*write=*/true);
    const uint32_t leaving = last ? ~0U : steps_.At(step_ + 1).changed;
    for (size_t i = 0; i < output_count_; ++i) {
      OutputState& output = outputs_[i];
      if (!last && (output.moves_with & leaving) == 0) continue;
      output.write_back[output.block % output.buffers] = issued_;
    }
  }
  if (last) {
    phase_ = Phase::kDrain;
    TryEnd();
    return;
  }
  Issue(steps_.At(step_ + 1).fetch_single, step_ + 1, /*write=*/false);
  Issue(steps_.At(step_ + 2).fetch_double, step_ + 2, /*write=*/false);
  if (!BeginSteady(step_ + 1)) Reach(step_ + 1);
}

bool TensorCore::BeginSteady(int64_t step) {
  if (next_run_ == kernel_runs_->size() || (*kernel_runs_)[next_run_].from != step) return false;
  const timing::SteadyRun& run = (*kernel_runs_)[next_run_++];
  outstanding_ = parts_.dma.OutstandingOf(channel_);
  double remaining = 0;
  Bytes issued(0);
  for (const Outstanding& o : outstanding_) {
    remaining += o.bytes;
    issued += o.transfer.bytes;
  }
  // What is outstanding now moves during the run, and as much will be outstanding
  // at its end. The books take a transfer when it ends.
  if (run.bytes < issued) return false;  // too much for so short a run: step by step
  const double moving = static_cast<double>(run.bytes.value()) - remaining;
  if (moving > 0) {
    Transfer bulk;
    bulk.bytes = run.bytes - issued;
    bulk.listener = this;
    bulk.tag = ++issued_;
    bulk.op = op_;
    bulk.step = step;
    parts_.dma.IssueBulk(channel_, bulk, moving, Now() + run.duration);
  }
  needed_ = issued_;
  phase_ = Phase::kSteady;
  step_ = step;
  Begin(step, run.blocks, run.duration);
  return true;
}

void TensorCore::TryEndSteady() {
  if (ended_ < needed_) return;
  const int64_t steps = (*kernel_runs_)[next_run_ - 1].steps;
  // Everybody who waited for an outstanding transfer waits for its successor.
  const auto successor = [this](uint64_t sequence) -> uint64_t {
    for (size_t n = 0; n < outstanding_.size(); ++n) {
      if (outstanding_[n].transfer.tag == sequence) return needed_ + n + 1;
    }
    return 0;
  };
  std::array<uint64_t, 4> fetch{};
  for (int64_t ahead = 0; ahead < 2; ++ahead) {
    fetch[(step_ + steps + ahead) & 3] = successor(fetch_[(step_ + ahead) & 3]);
  }
  fetch_ = fetch;
  for (size_t i = 0; i < output_count_; ++i) {
    for (uint64_t& sequence : outputs_[i].write_back) sequence = successor(sequence);
  }
  for (Outstanding& o : outstanding_) {
    o.transfer.tag = ++issued_;
    o.transfer.step += steps;
    parts_.dma.Resume(channel_, o);
  }
  steps_.Seek(step_ + steps);
  Reach(step_ + steps);
}

void TensorCore::TryEnd() {
  if (ended_ < issued_) return;
  phase_ = Phase::kIdle;
  const absl::Status freed = parts_.vmem.Free("a kernel's windows", windows_);
  TPUSIM_CHECK(freed.ok(), Message(freed));
  listener_->WorkEnded();
}

void TensorCore::TransferEnded(uint64_t sequence) {
  TPUSIM_CHECK(sequence == ended_ + 1, "transfers of a kernel ended out of order");
  ended_ = sequence;
  if (phase_ == Phase::kWaitData) TryStep();
  if (phase_ == Phase::kSteadyData) TryEndSteady();
  if (phase_ == Phase::kDrain) TryEnd();
}

}  // namespace tpusim::chip
