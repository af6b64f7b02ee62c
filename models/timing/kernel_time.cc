#include "models/timing/kernel_time.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "configs/memory.h"
#include "models/steady/state.h"
#include "models/timing/dma_channel.h"
#include "models/timing/kernel_pipeline.h"
#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_timing.h"
#include "models/timing/memory_bytes.h"

namespace tpusim::timing {
namespace {

class Replay {
 public:
  Replay(const configs::ChipParams& chip, const isa::Kernel& kernel)
      : chip_(chip),
        kernel_(kernel),
        rate_(HbmRate(chip)),
        block_(StepTime(chip, kernel.block)),
        channel_(chip.dma),
        iterations_(kernel.grid.size()) {
    pipeline_.Reset(kernel);
  }

  Picoseconds Run() {
    now_ = LaunchTime(chip_, kernel_);
    pipeline_.Launch();
    Issue();
    for (;;) {
      while (!pipeline_.Ready()) WaitForTransfer();
      now_ += Scaled(block_, pipeline_.Fraction());
      while (FirstEndsBy(now_)) EndTransfer();
      const bool more = pipeline_.EndStep();
      Issue();
      if (!more) break;
      Skip();
      pipeline_.NextStep();
    }
    while (!pipeline_.Drained()) WaitForTransfer();
    return now_;
  }

 private:
  void Issue() {
    for (const Transfer& transfer : pipeline_.issued()) channel_.Issue(now_, transfer);
  }

  // The first transfer of the channel.
  void BeginTransfer() {
    channel_.Begin(channel_.NextBegin());
    const Transfer& transfer = channel_.first().transfer;
    const MemoryBytes& accessed = transfer.accessed;
    const BytesPerSecond rate =
        accessed.Total() == accessed.hbm() ? rate_ : MoveRate(chip_, accessed, transfer.bytes);
    first_ends_ = channel_.began() + TransferTime(transfer.bytes, rate);
  }
  bool FirstEndsBy(Picoseconds until) {
    if (channel_.empty()) return false;
    if (!channel_.moving()) {
      if (channel_.NextBegin() > until) return false;
      BeginTransfer();
    }
    return first_ends_ <= until;
  }
  void EndTransfer() { pipeline_.EndTransfer(channel_.End(first_ends_).number); }
  void WaitForTransfer() {
    if (!channel_.moving()) BeginTransfer();
    now_ = std::max(now_, first_ends_);
    EndTransfer();
  }

  // Snapshots the state that the future depends on, relative to now.
  void Observe(steady::Snapshot& state) {
    auto reader = steady::StateVisitor::Read(now_, std::move(state));
    pipeline_.Visit(reader);
    channel_.Visit(reader);
    if (channel_.moving()) reader.Pending(first_ends_);
    state = reader.TakeSnapshot();
  }

  // Between two steps: goes on with a later one if an iteration of some grid dimension
  // begins here just as one of the last ones did.
  void Skip() {
    const int64_t step = pipeline_.step() + 1;
    int64_t inner = 1;  // steps of one iteration
    for (size_t d = kernel_.grid.size(); d-- > 0; inner *= kernel_.grid[d].count) {
      if (step % inner != 0) break;
      const int64_t count = kernel_.grid[d].count;
      const int64_t index = step / inner % count;
      const int64_t repeatable = RepeatableIterations(count, index);
      if (repeatable == 0) continue;
      std::array<GridIteration, kRemembered>& remembered = iterations_[d];
      GridIteration& now = remembered[static_cast<size_t>(index % kRemembered)];
      now.step = step;
      Observe(now.state);
      for (int64_t back = 1; back < kRemembered && back < index && back <= repeatable; ++back) {
        const GridIteration& before = remembered[static_cast<size_t>((index - back) % kRemembered)];
        if (before.step != step - inner * back) break;
        if (steady::PeriodsAhead(before.state, now.state) != steady::kUnlimited) continue;
        const int64_t times = repeatable / back;
        const int64_t steps = inner * back * times;
        const Picoseconds by = (now_ - before.state.at) * times;
        now_ += by;
        first_ends_ += by;
        channel_.Shift(by, steps);
        pipeline_.Skip(steps);
        return;
      }
    }
  }

  // Transfers and steps take turns: it may take several iterations to come back.
  static constexpr int64_t kRemembered = 5;  // with the one that begins
  struct GridIteration {
    int64_t step = -1;
    steady::Snapshot state;
  };

  const configs::ChipParams& chip_;
  const isa::Kernel& kernel_;
  const BytesPerSecond rate_;
  const Picoseconds block_;
  KernelPipeline pipeline_;
  DmaChannel<Transfer> channel_;
  Picoseconds now_{0};
  Picoseconds first_ends_{0};  // the moving transfer
  // Per grid dimension, those that began last, by their index.
  std::vector<std::array<GridIteration, kRemembered>> iterations_;
};

}  // namespace

Picoseconds KernelTime(const configs::ChipParams& chip, const isa::Kernel& kernel) {
  return Replay(chip, kernel).Run();
}

Picoseconds KernelTimeBound(const configs::ChipParams& chip, const isa::Kernel& kernel) {
  const double steps = kernel.FullSteps();
  const KernelTraffic traffic = TrafficOf(kernel);
  const double compute = ToSeconds(StepTime(chip, kernel.block)) * steps;
  double data = 0;
  for (const isa::MemorySpace space : configs::kRatedSpaces) {
    const Bytes bytes = traffic.both_ways.In(space);
    if (bytes == Bytes(0)) continue;
    data = std::max(
        data, static_cast<double>(bytes.value()) / configs::MemoryOf(space).rate(chip).value());
  }
  // A picosecond per step for what the replay rounds.
  return LaunchTime(chip, kernel) + FromSeconds(std::max(compute, data)) -
         Picoseconds(kernel.Steps());
}

}  // namespace tpusim::timing
