#include "models/timing/kernel_time.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_timing.h"
#include "models/timing/memory_bytes.h"

namespace tpusim::timing {
namespace {

// The output windows of a kernel, each with the times at which the last
// write-back of each of its buffers ends.
struct Output {
  uint32_t moves_with = 0;
  int64_t block = 0;  // blocks begun before the current one
  std::vector<Picoseconds> write_back;

  Picoseconds& Current() { return Ahead(0); }
  Picoseconds& Ahead(int64_t blocks) {
    return write_back[static_cast<size_t>(block + blocks) % write_back.size()];
  }
};

class Replay {
 public:
  Replay(const configs::ChipParams& chip, const isa::Kernel& kernel)
      : chip_(chip), kernel_(kernel), rate_(HbmRate(chip)), block_(StepTime(chip, kernel.block)) {
    steps_.Reset(kernel);
    for (const isa::Window& w : kernel.windows) {
      if (w.kind != isa::WindowKind::kOutput || w.space == isa::MemorySpace::kVmem) continue;
      outputs_.push_back(
          {w.moves_with, 0, std::vector<Picoseconds>(static_cast<size_t>(w.buffers))});
    }
    iterations_.resize(kernel.grid.size());
  }

  Picoseconds Run() {
    end_ = LaunchTime(chip_, kernel_);
    Fetch(steps_.At(0).fetch_single + steps_.At(0).fetch_double, 0);
    Fetch(steps_.At(1).fetch_double, 1);
    for (int64_t step = 0; step < steps_.steps(); ++step) {
      if (step > 0) step = SkipFrom(step);
      RunStep(step);
    }
    return std::max(end_, channel_);
  }

 private:
  // Data of the transfer end at the returned time. Issued at end_.
  Picoseconds Move(const MemoryBytes& moved, Picoseconds latency, Picoseconds gap) {
    const Bytes bytes = moved.Total();
    const BytesPerSecond rate = moved.cmem == Bytes(0) ? rate_ : MoveRate(chip_, moved, bytes);
    channel_ = std::max(end_ + latency, channel_ + gap) + TransferTime(bytes, rate);
    return channel_;
  }
  void Fetch(const MemoryBytes& moved, int64_t step) {
    if (moved.empty()) return;
    // Nothing is before the first transfer.
    const Picoseconds gap = channel_ > Picoseconds(0) ? chip_.dma.turnaround : Picoseconds(0);
    fetched_[step & 1] = std::max(fetched_[step & 1], Move(moved, chip_.dma.start_latency, gap));
  }

  void RunStep(int64_t step) {
    Picoseconds start = std::max(end_, fetched_[step & 1]);
    fetched_[step & 1] = Picoseconds(0);
    if (step > 0) {
      for (Output& output : outputs_) {
        if ((output.moves_with & steps_.At(step).changed) == 0) continue;
        ++output.block;
        start = std::max(start, output.Current());
      }
    }
    end_ = start + Scaled(block_, steps_.At(step).fraction);

    const bool last = step + 1 == steps_.steps();
    if (const MemoryBytes write = steps_.At(step).write; !write.empty()) {
      const Picoseconds written = Move(write, chip_.dma.write_start_latency, Picoseconds(0));
      const uint32_t leaving = last ? ~0U : steps_.At(step + 1).changed;
      for (Output& output : outputs_) {
        if (last || (output.moves_with & leaving) != 0) output.Current() = written;
      }
    }
    Fetch(steps_.At(step + 1).fetch_single, step + 1);
    Fetch(steps_.At(step + 2).fetch_double, step + 2);
  }

  // What the future depends on, relative to the end of the last step. Times that
  // every later one exceeds anyway are all the same.
  void Observe(int64_t step, std::vector<int64_t>& state) {
    const auto relative = [this](Picoseconds t) {
      return std::max<int64_t>((t - end_).value(), 0);
    };
    state.clear();
    const Picoseconds soonest =
        std::min(chip_.dma.start_latency - chip_.dma.turnaround, chip_.dma.write_start_latency);
    state.push_back(std::max(channel_ - end_, soonest).value());
    state.push_back(relative(fetched_[step & 1]));
    state.push_back(relative(fetched_[(step + 1) & 1]));
    for (Output& output : outputs_) {
      for (size_t n = 0; n < output.write_back.size(); ++n) {
        state.push_back(relative(output.Ahead(static_cast<int64_t>(n))));
      }
    }
  }

  // The step to go on with: `step`, or a later one if an iteration of some grid
  // dimension begins here just as one of the last ones did.
  int64_t SkipFrom(int64_t step) {
    int64_t inner = 1;  // steps of one iteration
    for (size_t d = kernel_.grid.size(); d-- > 0; inner *= kernel_.grid[d].count) {
      if (step % inner != 0) break;
      const int64_t count = kernel_.grid[d].count;
      const int64_t index = step / inner % count;
      const int64_t skipped = RepeatableIterations(count, index);
      if (skipped == 0) continue;
      std::array<Iteration, kRemembered>& remembered = iterations_[d];
      Observe(step, state_);
      for (int64_t back = 1; back <= kRemembered && back < index && back <= skipped; ++back) {
        const Iteration& before = remembered[static_cast<size_t>(back - 1)];
        if (before.step != step - inner * back) break;
        if (before.state != state_) continue;
        const int64_t times = skipped / back;
        Shift((end_ - before.end) * times, inner * back * times);
        step += inner * back * times;
        steps_.Seek(step);
        return step;
      }
      std::rotate(remembered.begin(), remembered.end() - 1, remembered.end());
      remembered.front().step = step;
      remembered.front().end = end_;
      remembered.front().state.swap(state_);
    }
    return step;
  }

  void Shift(Picoseconds by, int64_t steps) {
    end_ += by;
    channel_ += by;
    for (Picoseconds& t : fetched_) t += by;
    if (steps % 2 != 0) std::swap(fetched_[0], fetched_[1]);
    for (Output& output : outputs_) {
      for (Picoseconds& t : output.write_back) t += by;
    }
  }

  // Transfers and steps take turns: it may take several iterations to come back.
  static constexpr int64_t kRemembered = 4;
  struct Iteration {
    int64_t step = -1;
    Picoseconds end{0};
    std::vector<int64_t> state;
  };

  const configs::ChipParams& chip_;
  const isa::Kernel& kernel_;
  const BytesPerSecond rate_;
  const Picoseconds block_;
  KernelSteps steps_;
  std::vector<Output> outputs_;
  Picoseconds end_{0};                 // of the last step
  Picoseconds channel_{0};             // when the last transfer ends
  Picoseconds fetched_[2] = {{}, {}};  // inputs of the next step and the one after
  // Per grid dimension, the last that began, the latest first.
  std::vector<std::array<Iteration, kRemembered>> iterations_;
  std::vector<int64_t> state_;
};

}  // namespace

Picoseconds KernelTime(const configs::ChipParams& chip, const isa::Kernel& kernel) {
  return Replay(chip, kernel).Run();
}

Picoseconds KernelTimeBound(const configs::ChipParams& chip, const isa::Kernel& kernel) {
  const double steps = kernel.FullSteps();
  const KernelTraffic traffic = TrafficOf(kernel);
  const double compute = ToSeconds(StepTime(chip, kernel.block)) * steps;
  double data =
      static_cast<double>((traffic.read + traffic.written).value()) / HbmRate(chip).value();
  if (traffic.cmem > Bytes(0)) {
    data = std::max(data, static_cast<double>(traffic.cmem.value()) / CmemRate(chip).value());
  }
  // A picosecond per step for what the replay rounds.
  return LaunchTime(chip, kernel) + FromSeconds(std::max(compute, data)) -
         Picoseconds(kernel.Steps());
}

}  // namespace tpusim::timing
