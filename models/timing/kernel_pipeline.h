// The state of a running kernel, without time: which step is next, what it waits
// for, what has been issued. kernel_steps.h says what a pipeline does. The TensorCore
// of the machine runs it, and KernelTime for a kernel alone on its chip.
//
// How to call: Launch, then EndStep and EndTransfer as they happen. Launch and
// EndStep leave in issued() what is to be issued at that moment; NextStep follows
// EndStep, unless it was the last. A step may compute as soon as Ready().
//
//   pipeline.Reset(kernel); pipeline.Launch();        -> issued()
//   ... transfer `n` has ended: pipeline.EndTransfer(n);
//   ... Ready(): compute for Fraction() of a block, then
//   if (pipeline.EndStep()) pipeline.NextStep();       -> issued()
//
// Transfers are numbered from 1 in the order of issue, which is also the order in which they end.
#ifndef TPUSIM_MODELS_TIMING_KERNEL_PIPELINE_H_
#define TPUSIM_MODELS_TIMING_KERNEL_PIPELINE_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/isa/program.h"
#include "models/steady/state.h"
#include "models/timing/dma_channel.h"
#include "models/timing/kernel_steps.h"

namespace tpusim::timing {

class KernelPipeline {
 public:
  // The kernel must outlive its run.
  void Reset(const isa::Kernel& kernel);
  void Launch();
  // Ends the step; false: it was the last.
  bool EndStep();
  void NextStep();
  void EndTransfer(uint64_t number);

  std::span<const Transfer> issued() const { return {transfers_.data(), transfer_count_}; }
  int64_t step() const { return step_; }
  int64_t steps() const { return steps_.steps(); }
  double Fraction() { return steps_.At(step_).fraction; }
  bool Ready() const { return ended_ >= needed_; }
  bool Drained() const { return ended_ >= last_issued_; }

  // Skips so many steps that leave everything as it is now; to be called after EndStep.
  void Skip(int64_t steps);
  // Shows what the future depends on besides the step and the outstanding transfers,
  // which are counted from the oldest.
  void Visit(steady::StateVisitor& visitor) const;

 private:
  struct Output {
    uint32_t moves_with = 0;
    int32_t buffers = 1;
    int64_t block = 0;                 // blocks begun before the current one
    std::vector<uint64_t> write_back;  // per buffer: the transfer that emptied it last
  };

  void Issue(const MemoryBytes& moved, int64_t step, bool write);

  KernelSteps steps_;
  std::vector<Output> outputs_;
  size_t output_count_ = 0;
  std::array<Transfer, 3> transfers_;
  size_t transfer_count_ = 0;
  int64_t step_ = 0;
  uint64_t last_issued_ = 0;
  uint64_t ended_ = 0;
  uint64_t needed_ = 0;              // the step may start when this one has ended
  std::array<uint64_t, 4> fetch_{};  // last fetch of each of the next steps
};

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_KERNEL_PIPELINE_H_
