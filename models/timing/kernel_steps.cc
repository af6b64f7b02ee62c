#include "models/timing/kernel_steps.h"

#include <algorithm>
#include <cmath>

#include "configs/status_macros.h"

namespace tpusim::timing {

int64_t RepeatableIterations(int64_t count, int64_t index) {
  // Between the first, the two to compare and the last three.
  constexpr int64_t kShortest = 6;
  if (count < kShortest || index == 0) return 0;
  return std::max<int64_t>(0, count - 3 - index);
}

Picoseconds Scaled(Picoseconds t, double fraction) {
  if (fraction == 1) return t;
  return Picoseconds(ToCount(std::round(static_cast<double>(t.value()) * fraction)));
}

Bytes Scaled(Bytes bytes, double fraction) {
  if (fraction == 1) return bytes;
  return Bytes(ToCount(std::round(static_cast<double>(bytes.value()) * fraction)));
}

void KernelSteps::Reset(const isa::Kernel& kernel) {
  kernel_ = &kernel;
  steps_ = kernel.Steps();
  generated_ = 0;
  index_.assign(kernel.grid.size(), 0);
  ragged_ = false;
  for (const isa::GridDim& dim : kernel.grid) ragged_ |= dim.last_fraction != 1;
}

void KernelSteps::Seek(int64_t step) {
  TPUSIM_CHECK(step > 0 && step < steps_, "a kernel has no such step");
  generated_ = step;
  int64_t rest = step - 1;  // Generate() moves on from the step before
  for (size_t d = index_.size(); d-- > 0;) {
    index_[d] = rest % kernel_->grid[d].count;
    rest /= kernel_->grid[d].count;
  }
}

const StepPlan& KernelSteps::At(int64_t step) {
  if (step >= steps_) return nothing_;
  // What a step writes is known when the step after it is.
  const int64_t wanted = step + 2 < steps_ ? step + 2 : steps_;
  while (generated_ < wanted) Generate();
  TPUSIM_CHECK(step > generated_ - 1 - kAhead, "a step of a kernel was asked for too late");
  return plans_[step & (kAhead - 1)];
}

Bytes KernelSteps::WindowBytes(const isa::Window& window) const {
  if (!ragged_) return window.bytes;
  double fraction = 1;
  for (size_t d = 0; d < index_.size(); ++d) {
    const isa::GridDim& dim = kernel_->grid[d];
    if ((window.moves_with >> d & 1U) != 0 && index_[d] == dim.count - 1) {
      fraction *= dim.last_fraction;
    }
  }
  return Scaled(window.bytes, fraction);
}

void KernelSteps::Generate() {
  const int64_t step = generated_++;
  uint32_t changed = ~0U;  // at the first step everything is new
  if (step > 0) {
    changed = 0;
    size_t d = index_.size();
    while (d-- > 0) {
      if (kernel_->grid[d].count > 1) changed |= 1U << d;
      if (index_[d] + 1 < kernel_->grid[d].count) break;
    }
    StepPlan& before = plans_[(step - 1) & (kAhead - 1)];
    for (const isa::Window& window : kernel_->windows) {
      if (window.kind != isa::WindowKind::kOutput || window.space == isa::MemorySpace::kVmem) {
        continue;
      }
      if ((window.moves_with & changed) != 0) before.write.In(window.space) += WindowBytes(window);
    }
    d = index_.size();
    while (d-- > 0) {
      if (++index_[d] < kernel_->grid[d].count) break;
      index_[d] = 0;
    }
  }

  StepPlan& plan = plans_[step & (kAhead - 1)];
  plan = StepPlan{};
  plan.changed = changed;
  if (ragged_) {
    for (size_t d = 0; d < index_.size(); ++d) {
      const isa::GridDim& dim = kernel_->grid[d];
      if (index_[d] == dim.count - 1) plan.fraction *= dim.last_fraction;
    }
  }
  const bool last = step == steps_ - 1;
  for (const isa::Window& window : kernel_->windows) {
    if (window.space == isa::MemorySpace::kVmem) continue;
    if (window.kind == isa::WindowKind::kInput) {
      if (step > 0 && (window.moves_with & changed) == 0) continue;
      (window.buffers > 1 ? plan.fetch_double : plan.fetch_single).In(window.space) +=
          WindowBytes(window);
    } else if (last) {
      plan.write.In(window.space) += WindowBytes(window);
    }
  }
}

}  // namespace tpusim::timing
