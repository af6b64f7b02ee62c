#include "models/timing/kernel_pipeline.h"

#include <algorithm>
#include <utility>

#include "configs/status_macros.h"

namespace tpusim::timing {

void KernelPipeline::Reset(const isa::Kernel& kernel) {
  steps_.Reset(kernel);
  step_ = 0;
  last_issued_ = ended_ = needed_ = 0;
  fetch_.fill(0);
  transfer_count_ = 0;
  output_count_ = 0;
  for (const isa::Window& window : kernel.windows) {
    if (window.kind != isa::WindowKind::kOutput || window.space == isa::MemorySpace::kVmem) {
      continue;
    }
    if (output_count_ == outputs_.size()) outputs_.emplace_back();
    Output& output = outputs_[output_count_++];
    output.moves_with = window.moves_with;
    output.buffers = window.buffers;
    output.block = 0;
    output.write_back.assign(static_cast<size_t>(window.buffers), 0);
  }
}

void KernelPipeline::Issue(const MemoryBytes& moved, int64_t step, bool write) {
  if (moved.empty()) return;
  Transfer& transfer = transfers_[transfer_count_++];
  transfer.write = write;
  transfer.bytes = moved.Total();
  transfer.accessed = moved;
  transfer.number = ++last_issued_;
  transfer.follows = last_issued_ > 1;
  transfer.step = step;
  if (!write) fetch_[step & 3] = last_issued_;
}

void KernelPipeline::Launch() {
  transfer_count_ = 0;
  const StepPlan& first = steps_.At(0);
  Issue(first.fetch_single + first.fetch_double, 0, /*write=*/false);
  Issue(steps_.At(1).fetch_double, 1, /*write=*/false);
  needed_ = std::exchange(fetch_[0], 0);
}

bool KernelPipeline::EndStep() {
  transfer_count_ = 0;
  const bool last = step_ + 1 == steps_.steps();
  if (const MemoryBytes write = steps_.At(step_).write; !write.empty()) {
    Issue(write, step_, /*write=*/true);
    const uint32_t leaving = last ? ~0U : steps_.At(step_ + 1).changed;
    for (size_t i = 0; i < output_count_; ++i) {
      Output& output = outputs_[i];
      if (!last && (output.moves_with & leaving) == 0) continue;
      output.write_back[output.block % output.buffers] = last_issued_;
    }
  }
  if (last) return false;
  Issue(steps_.At(step_ + 1).fetch_single, step_ + 1, /*write=*/false);
  Issue(steps_.At(step_ + 2).fetch_double, step_ + 2, /*write=*/false);
  return true;
}

void KernelPipeline::NextStep() {
  ++step_;
  needed_ = std::exchange(fetch_[step_ & 3], 0);
  const uint32_t changed = steps_.At(step_).changed;
  for (size_t i = 0; i < output_count_; ++i) {
    Output& output = outputs_[i];
    if ((output.moves_with & changed) == 0) continue;
    ++output.block;
    needed_ = std::max(needed_, output.write_back[output.block % output.buffers]);
  }
}

void KernelPipeline::EndTransfer(uint64_t number) {
  TPUSIM_CHECK(number == ended_ + 1, "transfers of a kernel ended out of order");
  ended_ = number;
}

void KernelPipeline::Skip(int64_t steps) {
  std::array<uint64_t, 4> fetch{};
  for (int64_t ahead = 1; ahead <= 2; ++ahead) {
    fetch[(step_ + steps + ahead) & 3] = fetch_[(step_ + ahead) & 3];
  }
  fetch_ = fetch;
  step_ += steps;
  steps_.Seek(step_);
}

void KernelPipeline::Visit(steady::StateVisitor& visitor) const {
  const auto waits_for = [&](uint64_t number) {
    visitor.Same(number > ended_ ? static_cast<int64_t>(number - ended_) : int64_t{0});
  };
  waits_for(needed_);
  waits_for(last_issued_);
  for (int64_t ahead = 1; ahead <= 2; ++ahead) waits_for(fetch_[(step_ + ahead) & 3]);
  for (size_t i = 0; i < output_count_; ++i) {
    const Output& output = outputs_[i];
    for (int64_t n = 0; n < output.buffers; ++n) {
      waits_for(output.write_back[(output.block + n) % output.buffers]);
    }
  }
}

}  // namespace tpusim::timing
